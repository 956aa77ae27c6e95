/* Activations of gated MLPs. */

#ifndef MEDUSA_ACTIVATION_H
#define MEDUSA_ACTIVATION_H

#include "abi.h"

/* Rows of gate and up projections, [rows, size] each, with the distance from row to row in floats. */
typedef struct {
    const float *gate, *up;
    int64_t gate_stride, up_stride;
    float *y; /* [rows, size] */
    int32_t size, rows; /* size: a multiple of LANES */
    Activation activation;
} ActivationJob;

/* y = activation(gate) · up */
void activate(Pool *pool, const ActivationJob *job);

#endif
