/* y = x Wᵀ + b over a few rows: the weights are read once for all of them. */

#ifndef MEDUSA_LINEAR_H
#define MEDUSA_LINEAR_H

#include <stddef.h>
#include <stdint.h>

#include "adapter.h"
#include "kinds.h"
#include "pool.h"

enum { PANEL = 32 }; /* outputs that lie together */

/* Weights as panels of 32 outputs, the last one maybe narrower. Within a panel inputs follow each
   other, each with its 32 numbers; of bfloat16 two inputs lie side by side, as one word, and of
   bytes four. A byte is 128 more than its number, and an output's numbers have a scale. Of bytes
   both inputs and outputs come in multiples of 32. Kinds in blocks lie as blocks.h says. */
typedef struct Linear Linear;
struct Linear {
    const void *weight;
    const float *bias;  /* or NULL */
    const float *scale; /* of bytes, by output; else NULL */
    int32_t outputs;
    int32_t inputs;
    int32_t kind; /* of kinds.h */
    int32_t reserved;
    const Linear *more; /* outputs that come behind these, of the same inputs, or NULL */
    const Adapter *adapter; /* of the first of them: what is added to all of their outputs, or NULL */
};

/* Numbers of a row that `packed` must have room for. */
static inline int64_t packed_width(const Linear *layer) {
    int32_t inner = layer->adapter == NULL ? 0 : layer->adapter->inner;
    return layer->inputs > inner ? layer->inputs : inner;
}

/* y = x Wᵀ + b + plus, and what an adapter adds; `plus` may be NULL, or y.
   packed: room for rows · packed_width floats.
   Where weights are bytes, so are inputs: of every row each 64 by their own largest number.
   [rows, inputs] → [rows, outputs] */
void linear(Pool *pool, const Linear *layer, const float *x, uint32_t *packed, int32_t rows,
            const float *plus, float *y);

/* One row each by some layers of one shape and without adapters, y_i = x_i W_iᵀ + b_i.
   packed: room for count · inputs floats. [count, inputs] → [count, outputs] */
void linear_each(Pool *pool, const Linear *layers, int32_t count, const float *x, uint32_t *packed,
                 float *y);

#endif
