/* Words, the units of multiplication: a float, two bfloat16, or four bytes. */

#ifndef MEDUSA_WORDS_H
#define MEDUSA_WORDS_H

#include "bytes.h"
#include "lanes.h"

#if defined(__AVX512BF16__)
#define HAS_BF16_DOT 1
#else
#define HAS_BF16_DOT 0
#endif

INLINE Words load_words(const uint32_t *from) { return *(const Words *)from; }
INLINE void store_words(uint32_t *to, Words x) { *(Words *)to = x; }
INLINE float number(uint32_t bits) { return *(const float *)&bits; }

/* Numbers of a word of weights, and words of the packed inputs that it is multiplied with. Without the
   instructions for bfloat16 and int8, inputs are unpacked to two words of float32 or int16. */
INLINE int32_t word_size(int type) { return type == I8 ? 4 : type == BF16 ? 2 : 1; }
INLINE int32_t input_words(int type) {
    return (type == BF16 && !HAS_BF16_DOT) || (type == I8 && !HAS_INT8_DOT) ? 2 : 1;
}

/* sum + words · x, with the packed inputs at `x`. */
INLINE Lanes add(Lanes sum, Words words, const uint32_t *x, int is_bf16) {
    if (!is_bf16) return fma(all(number(x[0])), (Lanes)words, sum);
#if HAS_BF16_DOT
    return (Lanes)_mm512_dpbf16_ps((__m512)sum, (__m512bh)words,
                                   (__m512bh)_mm512_set1_epi32((int32_t)x[0]));
#else
    sum = fma(all(number(x[0])), (Lanes)(words << 16), sum);
    return fma(all(number(x[1])), (Lanes)(words & 0xffff0000u), sum);
#endif
}

/* A word of two bfloat16. */
INLINE uint32_t pair(Words halves, int i) { return halves[i] | halves[i + 1] << 16; }

/* Pack 16 inputs for add(), and return the number of words; may be in place. */
INLINE int32_t pack_words(Lanes numbers, uint32_t *to, int is_bf16) {
    if (!is_bf16 || !HAS_BF16_DOT) {
        store((float *)to, numbers);
        return LANES;
    }
    Words halves = round_to_bf16(numbers);
    for (int i = 0; i < LANES; i += 2) to[i / 2] = pair(halves, i);
    return LANES / 2;
}

/* The lower or upper bfloat16 of each word, in the lower half. */
INLINE Words bf16_of(Words words, int second) { return second ? words >> 16 : words & 0xffff; }

/* Words with the lower or upper bfloat16 replaced. */
INLINE Words with_bf16(Words words, Words half, int second) {
    return second ? (words & 0xffff) | half << 16 : (words & 0xffff0000u) | half;
}

#endif
