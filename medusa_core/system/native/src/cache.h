/* The layout of keys and values in a cache, which is that of weights for multiplications.

   Words are float32 or pairs of bfloat16. Keys are in panels of 16 slots: the first words of all slots,
   then the second ones. Values are slot by slot; of bfloat16 two slots share a row of words, and each
   word has a number of both. */

#ifndef MEDUSA_CACHE_H
#define MEDUSA_CACHE_H

#include "abi.h"

/* Consecutive slots in one piece of memory: words of the first, and the slot where the piece ends. */
typedef struct {
    const uint32_t *words;
    int64_t end;
} Slots;

/* Keys, or values, of a head from a slot on; the slot is a multiple of LANES. */
Slots keys_from(const Cache *cache, int32_t layer, int32_t head, int64_t slot);
Slots values_from(const Cache *cache, int32_t layer, int32_t head, int64_t slot);

/* Store a key, or a value, in a slot. [head_dim] */
void put_key(const Cache *cache, int32_t layer, int32_t head, int64_t slot, const float *key);
void put_value(const Cache *cache, int32_t layer, int32_t head, int64_t slot, const float *value);

#endif
