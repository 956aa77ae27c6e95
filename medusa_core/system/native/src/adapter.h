/* What a LoRA adds to a layer that stays as it is: y += B (A x), by few numbers in between. */

#ifndef MEDUSA_ADAPTER_H
#define MEDUSA_ADAPTER_H

#include <stdint.h>

#include "pool.h"

/* B of some of the layer's outputs, its scale in it. Weights lie in tiles of 16 outputs, the last one
   maybe narrower; within a tile numbers in between follow each other, each with its 16 weights. */
typedef struct {
    const void *weight;
    int32_t first, outputs; /* to which of the layer's outputs it adds */
    int32_t start, rank;    /* which of the numbers behind A it reads */
} Up;

/* Weights are floats, or bfloat16 that become floats: rows are never rounded. */
typedef struct {
    const void *down; /* A of all pieces, one below the other. [inner, inputs] */
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
