/* Products of int8, four at once. Weights are stored 128 higher, since the instructions need one unsigned
   factor; sums start at −128 times the sum of the inputs to compensate. Integer sums are exact, so all
   CPUs compute the same. */

#ifndef MEDUSA_BYTES_H
#define MEDUSA_BYTES_H

#include "lanes.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || defined(__ARM_FEATURE_DOTPROD)
#define HAS_INT8_DOT 1
#else
#define HAS_INT8_DOT 0
#endif

INLINE uint32_t bits_of(float x) { return ((Words)all(x))[0]; }

/* Round to nearest, ties to even; for |x| below 2^22. */
INLINE Signed round_to_int(Lanes x) {
    Lanes magic = all(12582912.0f); /* 1.5·2^23 */
    return (Signed)((Words)(x + magic) - (Words)magic);
}

/* Unsigned: rounded NaN are arbitrary integers, whose sum may wrap. */
INLINE uint32_t sum_of_ints(Words x) {
    uint32_t total = 0;
    for (int i = 0; i < LANES; i++) total += x[i];
    return total;
}

/* Pack four inputs: one word of int8, or two of int16. */
INLINE void to_bytes(int32_t a, int32_t b, int32_t c, int32_t d, uint32_t *to, int per_word) {
    if (per_word == 1) {
        to[0] = (uint32_t)(a & 0xff) | (uint32_t)(b & 0xff) << 8 | (uint32_t)(c & 0xff) << 16 |
                (uint32_t)d << 24;
    } else {
        to[0] = (uint32_t)(a & 0xffff) | (uint32_t)c << 16;
        to[1] = (uint32_t)(b & 0xffff) | (uint32_t)d << 16;
    }
}

/* Start of a sum: −128 times its inputs if weights are multiplied as unsigned bytes. */
INLINE Signed begin_bytes(int32_t offset) {
#if defined(__ARM_FEATURE_DOTPROD)
    (void)offset;
    return (Signed){0};
#else
    return (Signed){0} + offset;
#endif
}

/* sum + weights · x: four weights in each word, and four packed inputs at `x`. */
INLINE Signed add_bytes(Signed sum, Words weights, const uint32_t *x) {
#if defined(__AVX512VNNI__)
    return (Signed)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights,
                                       _mm512_set1_epi32((int32_t)x[0]));
#elif defined(__AVXVNNI__)
    union {
        Signed whole;
        __m256i half[2];
    } total = {sum};
    union {
        Words whole;
        __m256i half[2];
    } factor = {weights};
    __m256i inputs = _mm256_set1_epi32((int32_t)x[0]);
    for (int i = 0; i < 2; i++)
        total.half[i] = _mm256_dpbusd_avx_epi32(total.half[i], factor.half[i], inputs);
    return total.whole;
#elif defined(__ARM_FEATURE_DOTPROD)
    union {
        Signed whole;
        int32x4_t quarter[4];
    } total = {sum};
    union {
        Words whole;
        int8x16_t quarter[4];
    } factor = {weights ^ 0x80808080u};
    int8x16_t inputs = vreinterpretq_s8_u32(vdupq_n_u32(x[0]));
    for (int i = 0; i < 4; i++)
        total.quarter[i] = vdotq_s32(total.quarter[i], factor.quarter[i], inputs);
    return total.whole;
#else
    Words first = weights & 0x00ff00ffu, second = (weights >> 8) & 0x00ff00ffu;
#if defined(__AVX512BW__)
    __m512i products = _mm512_add_epi32(
        _mm512_madd_epi16((__m512i)first, _mm512_set1_epi32((int32_t)x[0])),
        _mm512_madd_epi16((__m512i)second, _mm512_set1_epi32((int32_t)x[1])));
    return (Signed)((Words)sum + (Words)products);
#elif defined(__AVX2__)
    union {
        Signed whole;
        __m256i half[2];
    } total = {sum};
    union {
        Words whole;
        __m256i half[2];
    } even = {first}, odd = {second};
    __m256i a = _mm256_set1_epi32((int32_t)x[0]), b = _mm256_set1_epi32((int32_t)x[1]);
    for (int i = 0; i < 2; i++)
        total.half[i] = _mm256_add_epi32(
            total.half[i], _mm256_add_epi32(_mm256_madd_epi16(even.half[i], a),
                                            _mm256_madd_epi16(odd.half[i], b)));
    return total.whole;
#else
    int32_t a = (int16_t)x[0], c = (int32_t)x[0] >> 16, b = (int16_t)x[1], d = (int32_t)x[1] >> 16;
    Words total = (Words)sum + (first & 0xffff) * (uint32_t)a + (first >> 16) * (uint32_t)c;
    return (Signed)(total + (second & 0xffff) * (uint32_t)b + (second >> 16) * (uint32_t)d);
#endif
#endif
}

#endif
