/* Medusa heads on one row, and the best of their scores. */

#ifndef MEDUSA_HEADS_H
#define MEDUSA_HEADS_H

#include <stdint.h>

#include "linear.h"

typedef struct {
    const Linear *first;       /* residual layers of all heads, one after the other, or NULL */
    const Linear *rest;        /* further ones: of every depth one for each head */
    const Linear *projections; /* one per head, or one that all share */
    const void *embedding;     /* where they also read the root's vector: [vocabulary, hidden] */
    int32_t hidden;            /* a multiple of PANEL */
    int32_t columns;
    int32_t num_heads;
    int32_t num_rest; /* depths of `rest` */
    int32_t is_shared;
    int32_t embedding_is_half;
} Heads;

/* Scores of the first `count` heads behind one row of the target, their best columns, and what
   each head gives these; while a head's scores are at hand that costs little.
   hidden: [hidden]; root_id: the token chosen behind it; scratch: [3 · count + 3, hidden];
   scores: [count, columns]; best, chances: [count, ranks], best first; at most MOST_FEW ranks. */
void rank(const Heads *heads, const float *hidden, int64_t root_id, int32_t count, int32_t ranks,
          float *scratch, float *scores, int32_t *best, float *chances, Pool *pool);

#endif
