/* The layout of keys and values in a cache, which is that of weights for multiplications.

   Words are float32 or pairs of bfloat16. Keys are in panels of 16 slots: the first words of all slots,
   then the second ones. Values are slot by slot; of bfloat16 two slots share a row of words, and each
   word has a number of both.

   Q8_0: every BLOCK numbers of a row, or fewer at its end, have a float16 scale and signed codes; number =
   scale · code, which is exact in float32. Both keys and values are in panels of 16 slots: codes, then the
   scales of all slots for the first block, for the second one, …; the number of blocks is rounded up to an
   even one. Codes of keys are words of four, those of values are slot by slot. */

#ifndef MEDUSA_CACHE_H
#define MEDUSA_CACHE_H

#include "abi.h"
#include "lanes.h"

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

/* Words of a panel in Q8_0, and of its codes. */
static inline int64_t panel_codes(int32_t head_dim) { return LANES / 4 * head_dim; }
static inline int64_t panel_words(int32_t head_dim) {
    int32_t blocks = (head_dim + BLOCK - 1) / BLOCK;
    return panel_codes(head_dim) + LANES / 2 * ((blocks + 1) / 2 * 2);
}

/* Scales of the slots of a panel for one block; float16 that are positive, or NaN. */
INLINE Lanes panel_scales(const uint32_t *panel, int32_t head_dim, int32_t block) {
    const uint16_t *scales = (const uint16_t *)(panel + panel_codes(head_dim)) + block * LANES;
    Words halves = __builtin_convertvector(*(const Halves *)scales, Words);
    Lanes numbers = (Lanes)(halves << 13) * 0x1p112f;
    return choose((Signed)halves >= 0x7c00, all(__builtin_nanf("")), numbers);
}

/* Four codes of keys are in each word; return those of a dimension, 0 … 3. */
INLINE Lanes key_codes(Words words, int32_t dim) {
    return __builtin_convertvector((Signed)(words << (24 - 8 * dim)) >> 24, Lanes);
}

/* 16 consecutive codes of a value. */
INLINE Lanes value_codes(const int8_t *codes) {
    typedef int8_t Codes __attribute__((vector_size(LANES), aligned(1)));
    return __builtin_convertvector(__builtin_convertvector(*(const Codes *)codes, Signed), Lanes);
}

#endif
