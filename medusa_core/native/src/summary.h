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

/* All that a trace keeps of a step's scores: what the drafter gave each node (NaN for the root, and
   where `drafted` is NULL), what the target gives each choice and the best few besides, and which these are.
   heads: of every draft. places: of the drafts if there are scores, then `length` rows of `judged`, then
   where their choices stand. read: [1 + drafts + length · (1 + FEW)], then ints [length · FEW] */
void read_step(const float *drafted, int64_t draft_columns, const int32_t *heads, int32_t drafts,
               const float *judged, int64_t columns, const int32_t *places, int32_t length,
               float *read);

#endif
