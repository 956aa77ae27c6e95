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

/* A cache in words: floats, or pairs of bfloat16. `capacity` is a multiple of the lanes. The first
   rows may be in another cache, where several caches read them and none writes. */
typedef struct Cache {
    const LayerRows *layers;
    int64_t capacity; /* slots behind the shared rows */
    int32_t num_layers;
    int32_t is_half;
    const struct Cache *prefix; /* or NULL */
    int64_t num_shared;         /* rows of `prefix` before the own ones; a multiple of the lanes */
} Cache;

/* Consecutive slots in one piece of memory: the words of the first, and where the piece ends. */
typedef struct {
    const uint32_t *words;
    int64_t end;
} Slots;

/* A head's keys, or values, from a slot on that is a multiple of the lanes. */
Slots keys_from(const Cache *cache, int32_t layer, int32_t head, int64_t slot);
Slots values_from(const Cache *cache, int32_t layer, int32_t head, int64_t slot);

/* Store a key, or a value, in a slot. [head_dim] */
void put_key(const Cache *cache, int32_t layer, int32_t head, int64_t slot, const float *key);
void put_value(const Cache *cache, int32_t layer, int32_t head, int64_t slot, const float *value);

/* Keep some of the rows behind `length`: `slots` are offsets, ascending. */
void keep_rows(const Cache *cache, int64_t length, const int64_t *slots, int64_t count);

#endif
