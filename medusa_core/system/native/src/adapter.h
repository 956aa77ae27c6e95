/* Output of a LoRA: y += B (A x).

   Weights are float32 or bfloat16, and computed in float32. They are stored in vectors of 16 numbers,
   and these in pairs: float32 one vector after the other, bfloat16 interleaved as words, with the first
   vector in the lower halves. If their number is odd, the last vector is stored by itself.

   A: in tiles of DOWN_TILE rows, the last tile with the rest; within a tile a pair of each row, then
   the next pair of each. Of all ranges, concatenated. [rank, inputs]
   B: in tiles of 16 outputs; within a tile a vector for each column. A narrower last tile is stored
   number by number, column after column. [outputs, rank] */

#ifndef MEDUSA_ADAPTER_H
#define MEDUSA_ADAPTER_H

#include "abi.h"

/* y += B (A x); A and B are read once for all rows. hidden: scratch of rows · rank floats.
   x: [rows, inputs]; y: a row every `stride` floats. */
void add_adapter(Pool *pool, const Adapter *adapter, const float *x, float *hidden, int32_t rows, float *y,
                 int32_t stride);

#endif
