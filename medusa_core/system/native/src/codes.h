/* Products of quantized weights of up to 8 bits and int8 inputs, four in a word. Integer sums are exact,
   so all CPUs compute the same.

   Vectors are as wide as lets the registers hold the codes of a whole block. */

#ifndef MEDUSA_CODES_H
#define MEDUSA_CODES_H

#include <string.h>

#include "bytes.h"

#if defined(__AVX512F__)
#define WIDTH 16
#else
#define WIDTH 8
#endif

typedef uint32_t Codes __attribute__((vector_size(4 * WIDTH), aligned(4)));
typedef int32_t Ints __attribute__((vector_size(4 * WIDTH), aligned(4)));
typedef float Sums __attribute__((vector_size(4 * WIDTH), aligned(4)));

/* Whether codes above 127 are stored 128 lower, as signed bytes. */
#if defined(__AVX512BW__) || HAS_INT8_DOT && !defined(__ARM_FEATURE_DOTPROD)
enum { ARE_SIGNED = 0 };
#else
enum { ARE_SIGNED = 1 };
#endif

INLINE Sums all_sums(float x) {
#if WIDTH == 16
    return all(x);
#else
    return (Sums){x, x, x, x, x, x, x, x};
#endif
}

INLINE Sums add_product(Sums a, Sums b, Sums c) {
#if defined(__clang__)
    return __builtin_elementwise_fma(a, b, c);
#else
    for (int i = 0; i < WIDTH; i++) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
#endif
}

/* float16, at any address. */
INLINE Sums load_float16(const uint8_t *from) {
#if defined(__AVX512F__)
    return (Sums)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
#elif defined(__AVX2__)
    return (Sums)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
#else
    _Float16 halves[WIDTH];
    Sums numbers;
    memcpy(halves, from, sizeof halves);
    for (int i = 0; i < WIDTH; i++) numbers[i] = (float)halves[i];
    return numbers;
#endif
}

/* Replace every byte, an index below 16, by its entry in the table. */
INLINE Codes look_up(Codes places, const uint8_t table[16]) {
#if defined(__AVX512BW__)
    __m512i whole = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
    return (Codes)_mm512_shuffle_epi8(whole, (__m512i)places);
#elif defined(__AVX2__)
    __m256i whole = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return (Codes)_mm256_shuffle_epi8(whole, (__m256i)places);
#else
    union {
        Codes whole;
        uint8_t bytes[4 * WIDTH];
    } found = {places};
#if defined(__aarch64__)
    uint8x16_t numbers = vld1q_u8(table);
    for (int i = 0; i < 4 * WIDTH; i += 16)
        vst1q_u8(found.bytes + i, vqtbl1q_u8(numbers, vld1q_u8(found.bytes + i)));
#else
    for (int i = 0; i < 4 * WIDTH; i++) found.bytes[i] = table[found.bytes[i]];
#endif
    return found.whole;
#endif
}

/* begin + codes · x of one row: `count` words of codes, of which the largest is `max_code`, and of inputs. */
#if HAS_INT8_DOT && defined(__AVX512VNNI__)
INLINE Ints multiply_codes(int32_t begin, const Codes *codes, int count, const uint32_t *x, int max_code) {
    (void)max_code;
    __m512i sum = _mm512_set1_epi32(begin);
    for (int i = 0; i < count; i++)
        sum = _mm512_dpbusd_epi32(sum, (__m512i)codes[i], _mm512_set1_epi32((int32_t)x[i]));
    return (Ints)sum;
}
#elif HAS_INT8_DOT && defined(__AVXVNNI__)
INLINE Ints multiply_codes(int32_t begin, const Codes *codes, int count, const uint32_t *x, int max_code) {
    (void)max_code;
    __m256i sum = _mm256_set1_epi32(begin);
    for (int i = 0; i < count; i++)
        sum = _mm256_dpbusd_avx_epi32(sum, (__m256i)codes[i], _mm256_set1_epi32((int32_t)x[i]));
    return (Ints)sum;
}
#elif defined(__AVX2__)
#if defined(__AVX512BW__)
typedef __m512i Register;
#define OPERATION(name) _mm512_##name
#else
typedef __m256i Register;
#define OPERATION(name) _mm256_##name
#endif

/* Sums in int16 of as many products as fit, then in int32. */
INLINE Register multiply_few(Register sum, const Codes *codes, int count, const uint32_t *x, int max_code) {
    int fitting = 32767 / (2 * 127 * max_code);
    for (int first = 0; first < count; first += fitting) {
        Register narrow = OPERATION(maddubs_epi16)((Register)codes[first],
                                                   OPERATION(set1_epi32)((int32_t)x[first]));
        for (int i = first + 1; i < first + fitting && i < count; i++)
            narrow = OPERATION(add_epi16)(
                narrow, OPERATION(maddubs_epi16)((Register)codes[i],
                                                 OPERATION(set1_epi32)((int32_t)x[i])));
        sum = OPERATION(add_epi32)(sum, OPERATION(madd_epi16)(narrow, OPERATION(set1_epi16)(1)));
    }
    return sum;
}

INLINE Ints multiply_codes(int32_t begin, const Codes *codes, int count, const uint32_t *x, int max_code) {
    if (max_code <= 127)
        return (Ints)multiply_few(OPERATION(set1_epi32)(begin), codes, count, x, max_code);
#if defined(__AVX512BW__)
    /* The upper and the lower 4 bits, each with sums in int16. */
    Codes low[8], high[8];
    for (int i = 0; i < count; i++) {
        low[i] = codes[i] & 0x0f0f0f0fu;
        high[i] = (codes[i] >> 4) & 0x0f0f0f0fu;
    }
    Register upper = multiply_few(_mm512_setzero_si512(), high, count, x, 15);
    return (Ints)multiply_few(
        _mm512_add_epi32(_mm512_set1_epi32(begin), _mm512_slli_epi32(upper, 4)), low, count, x, 15);
#else
    /* One factor must be unsigned, so the sign is moved to the inputs. */
    Register sum = _mm256_set1_epi32(begin);
    for (int i = 0; i < count; i++) {
        Register inputs = _mm256_sign_epi8(_mm256_set1_epi32((int32_t)x[i]), (Register)codes[i]);
        Register narrow = _mm256_maddubs_epi16(_mm256_abs_epi8((Register)codes[i]), inputs);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(narrow, _mm256_set1_epi16(1)));
    }
    return (Ints)sum;
#endif
}
#elif defined(__aarch64__)
typedef union {
    Codes whole;
    int8x16_t part[WIDTH / 4];
} Parts;

INLINE Ints multiply_codes(int32_t begin, const Codes *codes, int count, const uint32_t *x, int max_code) {
    (void)max_code;
    union {
        Ints whole;
        int32x4_t part[WIDTH / 4];
    } sums;
    for (int p = 0; p < WIDTH / 4; p++) {
#if defined(__ARM_FEATURE_DOTPROD)
        sums.part[p] = vdupq_n_s32(begin);
        for (int i = 0; i < count; i++)
            sums.part[p] = vdotq_s32(sums.part[p], ((Parts){codes[i]}).part[p],
                                     vreinterpretq_s8_u32(vdupq_n_u32(x[i])));
#else
        int32x4_t low = vdupq_n_s32(0), high = low; /* two sums for each of two outputs */
        for (int i = 0; i < count; i++) {
            int8x16_t part = ((Parts){codes[i]}).part[p];
            int8x16_t inputs = vreinterpretq_s8_u32(vdupq_n_u32(x[i]));
            low = vpadalq_s16(low, vmull_s8(vget_low_s8(part), vget_low_s8(inputs)));
            high = vpadalq_s16(high, vmull_high_s8(part, inputs));
        }
        sums.part[p] = vaddq_s32(vpaddq_s32(low, high), vdupq_n_s32(begin));
#endif
    }
    return sums.whole;
}
#else
INLINE Ints multiply_codes(int32_t begin, const Codes *codes, int count, const uint32_t *x, int max_code) {
    (void)max_code;
    Ints sum = (Ints){0} + begin;
    for (int i = 0; i < count; i++)
        for (int b = 0; b < 32; b += 8)
            sum += ((Ints)(codes[i] << (24 - b)) >> 24) * (int32_t)(int8_t)(x[i] >> b);
    return sum;
}
#endif

#endif
