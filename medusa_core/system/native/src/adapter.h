/* What a LoRA adds to a layer that stays as it is: y += B (A x), by few numbers in between. */

#ifndef MEDUSA_ADAPTER_H
#define MEDUSA_ADAPTER_H

#include <stdint.h>

#include "pool.h"

/* Weights are floats, or bfloat16 that become floats: rows are never rounded. They lie in vectors of
   sixteen, two by two: those of a pair one behind the other, or of bfloat16 side by side as words, the
   first in the lower halves. Where their number is odd, the last vector lies alone. */
enum { DOWN_TILE = 8 }; /* rows of A that are read side by side */

/* B of some of the layer's outputs, its scale in it. Sixteen outputs are a tile, in which numbers behind
   A follow each other, each with a vector. A narrower last tile has no pairs: a vector is as wide as it. */
typedef struct {
    const void *weight;
    int32_t first, outputs; /* to which of the layer's outputs it adds */
    int32_t start, rank;    /* which of the numbers behind A it reads */
} Up;

typedef struct {
    const void *down; /* A of all pieces, one below the other, in tiles of rows, the last one maybe
                         lower; in a tile a pair of each row, then the next of each. [inner, inputs] */
    const Up *ups;
    int32_t num_ups;
    int32_t inputs; /* a multiple of the lanes */
    int32_t inner;  /* numbers behind A */
    int32_t is_half;
} Adapter;

/* y += B (A x); A and B are read once for all rows. made: room for rows · inner floats.
   [rows, inputs] → a row every `stride` floats */
void add_adapter(Pool *pool, const Adapter *adapter, const float *x, float *made, int32_t rows, float *y,
                 int32_t stride);

#endif
