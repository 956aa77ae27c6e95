/* Medusa heads on one row, and the best of their scores. */

#ifndef MEDUSA_HEADS_H
#define MEDUSA_HEADS_H

#include <stdint.h>

#include "linear.h"

typedef struct {
    const Linear *first;       /* residual layers of all heads, one after the other, or NULL; may
                                  read as much again as `hidden`, which then lies behind it */
    const Linear *rest;        /* further ones: of every depth one for each head */
    const Linear *projections; /* one per head, or one that all share */
    int32_t hidden;            /* a multiple of PANEL */
    int32_t columns;
    int32_t num_heads;
    int32_t num_rest; /* depths of `rest` */
    int32_t is_shared;
    int32_t reserved;
} Heads;

/* Scores of the first `count` heads behind one row of the target, and their best columns.
   hidden: [hidden]; scratch: [3 · count + 1, hidden]; scores: [count, columns];
   best: [count, ranks], best first. */
void rank(const Heads *heads, const float *hidden, int32_t count, int32_t ranks, float *scratch,
          float *scores, int64_t *best, Pool *pool);

/* The largest number of every row and where it stands; the lowest place of equals; a NaN wins. */
void best_of_rows(const float *scores, int32_t rows, int64_t columns, int64_t *best);

#endif
