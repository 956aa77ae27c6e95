/* The best numbers of a row. */

#ifndef MEDUSA_BEST_H
#define MEDUSA_BEST_H

#include <stdint.h>

/* Where the largest number stands, of equals the first; −1 if there is a NaN, or it is infinite. */
int64_t best_of_row(const float *row, int64_t columns);

enum { MOST_FEW = 64 };

/* The best `count` numbers, at most MOST_FEW, and where they stand, best first, of equals the first. What is no number
   isn't among them; if too few are left, places follow that say nothing. */
void best_few(const float *row, int64_t columns, int32_t count, float *scores, int32_t *places);

#endif
