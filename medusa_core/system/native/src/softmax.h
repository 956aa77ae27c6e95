/* Probabilities of a row of scores. */

#ifndef MEDUSA_SOFTMAX_H
#define MEDUSA_SOFTMAX_H

#include <stdint.h>

/* Σ e^(x − top) of a row. */
typedef struct {
    float top, whole;
} Softmax;

/* top: any number of the row; the larger the better. */
Softmax softmax_of(const float *row, int64_t columns, float top);

/* What a row gives one of its scores. */
float chance(float score, Softmax of);

#endif
