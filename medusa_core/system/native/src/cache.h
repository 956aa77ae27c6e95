/* Where keys and values lie: so that attention multiplies them as a layer does its weights. */

#ifndef MEDUSA_CACHE_H
#define MEDUSA_CACHE_H

#include <stdint.h>

/* What a layer that convolves remembers: the last inputs of the committed rows, and where the inputs
   of the rows of a pass go. */
typedef struct {
    float *tail, *inputs;
} InputMemory;

/* Keys and values of one layer: the keys of all heads, then the values of all heads. head_dim is a
   multiple of the lanes.

   Keys lie in panels of sixteen: their first words side by side, then their second ones. Values lie
   slot by slot; of bfloat16 two slots are one row of words, each of them with a number of both. */
typedef struct {
    uint32_t *words;
    InputMemory memory;
    int32_t kv_heads, head_dim;
    int32_t is_shared; /* an earlier layer has written them */
    int32_t reserved;
} LayerRows;

/* A cache in words: floats, or pairs of bfloat16. `capacity` is a multiple of the lanes. */
typedef struct {
    const LayerRows *layers;
    int64_t capacity;
    int32_t num_layers;
    int32_t is_half;
} Cache;

const uint32_t *keys_of(const Cache *cache, int32_t layer, int32_t head);
const uint32_t *values_of(const Cache *cache, int32_t layer, int32_t head);

/* Store a key, or a value, in a slot. [head_dim] */
void put_key(const Cache *cache, int32_t layer, int32_t head, int64_t slot, const float *key);
void put_value(const Cache *cache, int32_t layer, int32_t head, int64_t slot, const float *value);

/* Keep some of the rows behind `length`: `slots` are offsets, ascending. */
void keep_rows(const Cache *cache, int64_t length, const int64_t *slots, int64_t count);

#endif
