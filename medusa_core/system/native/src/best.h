/* The largest numbers of a row. */

#ifndef MEDUSA_BEST_H
#define MEDUSA_BEST_H

#include <stdint.h>

/* Index of the maximum, of equal ones the first; −1 if the row has NaN or its maximum is infinite. */
int64_t argmax(const float *row, int64_t columns);

/* The k largest numbers, at most MAX_TOP_K, in descending order, and their columns; of equal ones the
   first column first. NaN is skipped; if there are too few numbers, −∞ with arbitrary columns follow. */
void top_k(const float *row, int64_t columns, int32_t k, float *values, int32_t *places);

#endif
