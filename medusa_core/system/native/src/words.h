/* Numbers in words that are multiplied at once: a word is a float, two bfloat16, or four bytes. */

#ifndef MEDUSA_WORDS_H
#define MEDUSA_WORDS_H

#include "bytes.h"
#include "kinds.h"
#include "lanes.h"

#if defined(__AVX512BF16__)
#define MULTIPLIES_HALVES 1
#else
#define MULTIPLIES_HALVES 0
#endif

INLINE Words load_words(const uint32_t *from) { return *(const Words *)from; }
INLINE void store_words(uint32_t *to, Words x) { *(Words *)to = x; }
INLINE float number(uint32_t bits) { return *(const float *)&bits; }

/* How many numbers a word holds, and how many words stand for one where they are multiplied with it:
   two bfloat16 are one word for the instruction that multiplies them, else two floats; four bytes
   are one word, else two of 16-bit numbers. */
INLINE int32_t word_size(int kind) { return kind == BYTE ? 4 : kind == HALF ? 2 : 1; }
INLINE int32_t numbers_beside(int kind) {
    return (kind == HALF && !MULTIPLIES_HALVES) || (kind == BYTE && !MULTIPLIES_BYTES) ? 2 : 1;
}

/* Words times what stands for one at `x`, added to the sums. */
INLINE Lanes add(Lanes sum, Words words, const uint32_t *x, int is_half) {
    if (!is_half) return fma(all(number(x[0])), (Lanes)words, sum);
#if MULTIPLIES_HALVES
    return (Lanes)_mm512_dpbf16_ps((__m512)sum, (__m512bh)words,
                                   (__m512bh)_mm512_set1_epi32((int32_t)x[0]));
#else
    sum = fma(all(number(x[0])), (Lanes)(words << 16), sum);
    return fma(all(number(x[1])), (Lanes)(words & 0xffff0000u), sum);
#endif
}

/* Two rounded numbers side by side, as one word. */
INLINE uint32_t pair(Words halves, int i) { return halves[i] | halves[i + 1] << 16; }

/* Sixteen numbers as the words, or what stands for words, that `add` multiplies with; returns how
   many there are. May be in place. */
INLINE int32_t to_words(Lanes numbers, uint32_t *to, int is_half) {
    if (!is_half || !MULTIPLIES_HALVES) {
        store((float *)to, numbers);
        return LANES;
    }
    Words halves = round_to_half(numbers);
    for (int i = 0; i < LANES; i += 2) to[i / 2] = pair(halves, i);
    return LANES / 2;
}

/* The first or second number of words of two, as numbers in the lower half. */
INLINE Words half_of(Words words, int second) { return second ? words >> 16 : words & 0xffff; }

/* The words with that number in place of their first or second. */
INLINE Words with_half(Words words, Words half, int second) {
    return second ? (words & 0xffff) | half << 16 : (words & 0xffff0000u) | half;
}

#endif
