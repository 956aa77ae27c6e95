/* Linear layers for a few rows: weights are read once for all of them.

   Weights are in panels of 32 outputs, the last one with the rest. Within a panel inputs follow each
   other, each with its 32 weights; of BF16 two inputs are interleaved, as words, and of I8 four. An I8
   is stored as a byte, 128 higher, and its inputs and outputs are multiples of 32. Other types are in
   the blocks of blocks.h. */

#ifndef MEDUSA_LINEAR_H
#define MEDUSA_LINEAR_H

#include "abi.h"

#include <stddef.h>

/* Floats of scratch memory per row of input. */
static inline int64_t packed_width(const Linear *layer) {
    int32_t rank = layer->adapter == NULL ? 0 : layer->adapter->rank;
    return layer->inputs > rank ? layer->inputs : rank;
}

/* Apply one layer to each row; the layers have one shape and no adapters.
   packed: scratch of count · inputs floats. [count, inputs] → [count, outputs] */
void linear_each(Pool *pool, const Linear *layers, int32_t count, const float *x, uint32_t *packed,
                 float *y);

#endif
