/* What a trace keeps of rows of scores. */

#ifndef MEDUSA_SUMMARY_H
#define MEDUSA_SUMMARY_H

#include <stdint.h>

enum { FEW = 5 }; /* how many of the best are kept of a row */

/* Probabilities under softmax of entries of some rows: entry i stands in row rows[i], column
   places[i]. Entries of one row come together.
   scores: [rows, columns] */
void probabilities(const float *scores, int64_t columns, const int32_t *rows,
                   const int32_t *places, int32_t count, float *chances);

/* What a trace keeps of the rows that led somewhere: what the target gives each choice and the best
   few besides, and which these are.
   rows: `count` of them, then where their choices stand. read: [count · (1 + FEW)], then ints
   [count · FEW] */
void read_choices(const float *scores, int64_t columns, const int32_t *rows, int32_t count,
                  float *read);

#endif
