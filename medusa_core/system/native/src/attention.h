/* Attention of the rows of a pass over the cache: each row attends to the committed rows, its ancestors
   and itself. */

#ifndef MEDUSA_ATTENTION_H
#define MEDUSA_ATTENTION_H

#include "abi.h"

/* Floats of scratch memory per worker. */
int64_t attention_scratch(int32_t head_dim, int32_t num_committed, int32_t rows);

/* q: scaled queries, head by head, a row every `stride` floats; rows from `first` on are computed.
   output: [rows, num_heads · head_dim], written from row `first` on. */
void attend(Pool *pool, const Cache *cache, int32_t layer, const Attention *attention, const Tree *tree,
            int32_t first, const float *q, int32_t stride, float *output, float *scratch,
            int64_t scratch_size);

#endif
