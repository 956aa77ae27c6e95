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

/* y = x Wᵀ + b + plus; `plus` may be NULL, or y. packed: room for rows · inputs floats.
   [rows, inputs] → [rows, outputs] */
void linear(Pool *pool, const Linear *layer, const float *x, uint32_t *packed, int32_t rows,
            const float *plus, float *y);

#endif
