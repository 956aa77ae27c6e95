/* What a trace keeps of rows of scores. */

#ifndef MEDUSA_SUMMARY_H
#define MEDUSA_SUMMARY_H

#include <stdint.h>

enum { FEW = 5 }; /* how many of the best are kept of a row */

/* Probabilities under softmax of entries of some rows: entry i stands in row rows[i], column
   places[i]. Entries of one row come together.
   `columns` is at least 16. scores: [rows, columns] */
void probabilities(const float *scores, int64_t columns, const int32_t *rows,
                   const int32_t *places, int32_t count, float *chances);

/* Of some rows the probability of one entry each, and of the best few besides: where they stand, best
   first. `columns` is at least 16. scores: [rows, columns]; chances: [count];
   other_chances, others: [count, FEW] */
void summarise(const float *scores, int64_t columns, const int32_t *rows, const int32_t *places,
               int32_t count, float *chances, float *other_chances, int32_t *others);

#endif
