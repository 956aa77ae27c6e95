/* Softmax of a row of logits. */

#ifndef MEDUSA_SOFTMAX_H
#define MEDUSA_SOFTMAX_H

#include <stdint.h>

/* Denominator of a softmax: sum = Σ e^(x − shift). */
typedef struct {
    float shift, sum;
} Softmax;

/* `shift` is any logit of the row, ideally one of the largest. */
Softmax softmax_of(const float *row, int64_t columns, float shift);

/* The same for logits times a positive factor: sum = Σ e^(factor · (x − shift)). */
Softmax softmax_scaled(const float *row, int64_t columns, float shift, float factor);

/* Probability of one of the row's logits. */
float probability(float logit, Softmax softmax);

#endif
