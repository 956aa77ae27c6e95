/* y = x Wᵀ + b over a few rows: the weights are read once for all of them. */

#ifndef MEDUSA_LINEAR_H
#define MEDUSA_LINEAR_H

#include <stdint.h>

#include "pool.h"

enum { PANEL = 32 }; /* outputs that lie together */

/* Weights as panels of 32 outputs, the last one maybe narrower. Within a panel inputs follow each
   other, each with its 32 numbers; of bfloat16 two inputs lie side by side, as one word. */
typedef struct {
    const void *weight;
    const float *bias; /* or NULL */
    int32_t outputs;
    int32_t inputs;
    int32_t is_half; /* bfloat16, else float32 */
    int32_t reserved;
} Linear;

/* What `linear` wants of its input: floats, or words of two bfloat16, by the weights and the CPU. */
typedef struct {
    const float *x;
    uint32_t *packed; /* room for rows · inputs / 2 words */
} Inputs;

/* Get the input of a layer ready. [rows, inputs] */
void prepare(const Linear *layer, Inputs *inputs, int32_t rows);

/* The first `outputs` numbers of every row; `plus` is added if not NULL, and may be y.
   [rows, inputs] → [rows, outputs], rows of y (and plus) `stride` floats apart. */
void linear(Pool *pool, const Linear *layer, const Inputs *inputs, int32_t rows, int32_t outputs,
            const float *plus, float *y, int32_t stride);

#endif
