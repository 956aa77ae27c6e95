/* What a gate lets through of what is multiplied with it. */

#ifndef MEDUSA_GATE_H
#define MEDUSA_GATE_H

#include <stdint.h>

#include "pool.h"

enum { SILU, GELU, BOUNDED, RELU, GELU_ERF };

typedef struct {
    int32_t kind;
    float bound; /* of BOUNDED, GPT-OSS's: both factors stay within it, and the second is one more */
    float scale; /* gates are multiplied with it first */
} Gate;

/* Rows of `inner` numbers, each so many floats behind the one before. */
typedef struct {
    const float *gate, *factor;
    int64_t gate_stride, factor_stride;
    float *y;
    int32_t inner, rows;
    Gate of;
} Activation;

/* y = active(gate) · factor; inner is a multiple of the lanes. */
void activate(Pool *pool, const Activation *job);

#endif
