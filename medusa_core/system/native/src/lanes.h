/* Vectors of 16 numbers, which the compiler splits into registers, and functions of them.

   The order of every sum is independent of how many rows are computed together: so a token tree has the
   logits of plain decoding, to the bit. */

#ifndef MEDUSA_LANES_H
#define MEDUSA_LANES_H

#include "abi.h"

#define INLINE static inline __attribute__((always_inline))

typedef float Lanes __attribute__((vector_size(64), aligned(4)));
typedef uint32_t Words __attribute__((vector_size(64), aligned(4)));
typedef int32_t Signed __attribute__((vector_size(64), aligned(4)));
typedef uint16_t Halves __attribute__((vector_size(32), aligned(2)));

INLINE Lanes load(const float *from) { return *(const Lanes *)from; }
INLINE void store(float *to, Lanes x) { *(Lanes *)to = x; }
/* Not 0 + x, which the compiler may not omit: it turns −0 into 0. */
INLINE Lanes all(float x) { return (Lanes){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#if defined(__clang__)
INLINE Lanes fma(Lanes a, Lanes b, Lanes c) { return __builtin_elementwise_fma(a, b, c); }
INLINE Lanes larger(Lanes a, Lanes b) { return __builtin_elementwise_max(a, b); }
INLINE int any(Signed mask) { return __builtin_reduce_or(mask) != 0; }
#else /* gcc, for its sanitizers */
INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
    for (int i = 0; i < LANES; i++) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
}
INLINE Lanes larger(Lanes a, Lanes b) {
    for (int i = 0; i < LANES; i++) a[i] = __builtin_fmaxf(a[i], b[i]);
    return a;
}
INLINE int any(Signed mask) {
    int32_t found = 0;
    for (int i = 0; i < LANES; i++) found |= mask[i];
    return found != 0;
}
#endif

/* a where `mask` (the result of a comparison) is set, else b. */
INLINE Lanes choose(Signed mask, Lanes a, Lanes b) {
    return (Lanes)((mask & (Signed)a) | (~mask & (Signed)b));
}

/* Maximum if there is no NaN: one instruction instead of the three of larger(). */
INLINE Lanes larger_number(Lanes a, Lanes b) { return choose(a > b, a, b); }

/* bfloat16 is the upper half of a float. */
INLINE Lanes load_bf16(const uint16_t *from) {
    return (Lanes)(__builtin_convertvector(*(const Halves *)from, Words) << 16);
}

/* Round to bfloat16, ties to even; the result is in the lower half of each word. */
INLINE Words round_to_bf16(Lanes x) {
    Words bits = (Words)x;
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

/* Sum of the lanes: halves are added, then quarters, and so on. */
INLINE float sum(Lanes x) {
    Lanes h = x + __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    h = h + __builtin_shufflevector(h, h, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    h = h + __builtin_shufflevector(h, h, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    h = h + __builtin_shufflevector(h, h, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    return h[0];
}

/* Maximum of the lanes, if there is no NaN. */
INLINE float largest(Lanes x) {
    x = larger_number(x, __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    x = larger_number(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
    x = larger_number(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
    x = larger_number(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
    return x[0];
}

/* e^x for x ≤ 88: x = n·ln 2 + r, a polynomial for e^r, and n is added to the exponent.
   0 below −87; NaN stays NaN. */
INLINE Lanes exponential(Lanes x) {
    Lanes bounded = larger(x, all(-87.0f));
    Lanes magic = all(12582912.0f); /* 1.5·2^23: adding it rounds to an integer */
    Lanes shifted = fma(bounded, all(1.44269504088896341f), magic);
    Lanes n = shifted - magic;
    Lanes r = fma(n, all(-0.693145751953125f), bounded);
    r = fma(n, all(-1.42860682030941723e-6f), r);
    Lanes p = all(1.9875691500e-4f);
    p = fma(p, r, all(1.3981999507e-3f));
    p = fma(p, r, all(8.3334519073e-3f));
    p = fma(p, r, all(4.1665795894e-2f));
    p = fma(p, r, all(1.6666665459e-1f));
    p = fma(p, r, all(5.0000001201e-1f));
    p = fma(p, r * r, r) + 1.0f;
    Lanes result = (Lanes)((Words)p + ((Words)shifted << 23)); /* any bits where it isn't chosen */
    result = choose(x < -87.0f, (Lanes){0}, result);
    return choose(x != x, x, result);
}

/* x / (1 + e^−x) */
INLINE Lanes silu(Lanes x) { return x / (1.0f + exponential(larger(x, all(-88.0f)) * -1.0f)); }
INLINE Lanes sigmoid(Lanes x) { return 1.0f / (1.0f + exponential(larger(x, all(-88.0f)) * -1.0f)); }

/* NaN stays NaN. */
INLINE Lanes relu(Lanes x) { return choose(x < 0.0f, (Lanes){0}, x); }

/* x · (1 + tanh z) / 2 with z = √(2/π) (x + 0.044715 x³), which is x / (1 + e^−2z). */
INLINE Lanes gelu_tanh(Lanes x) {
    Lanes twice = x * fma(x * x, all(0.0713548162726f), all(1.59576912160573f));
    return x / (1.0f + exponential(larger(twice, all(-88.0f)) * -1.0f));
}

/* The exact GELU, x · Φ(x): half of x plus |x| (1 − tail), with a tail of e^(−x²/2) times a polynomial.
   Error below 2e−7 · |x| (Abramowitz and Stegun 1964, 7.1.26). */
INLINE Lanes gelu(Lanes x) {
    Lanes size = choose(x < 0.0f, -x, x);
    Lanes t = 1.0f / fma(size, all(0.231641888f), all(1.0f)); /* 0.3275911 / √2 */
    Lanes p = all(1.061405429f);
    p = fma(p, t, all(-1.453152027f));
    p = fma(p, t, all(1.421413741f));
    p = fma(p, t, all(-0.284496736f));
    p = fma(p, t, all(0.254829592f));
    Lanes tail = p * t * exponential(larger(size * size * -0.5f, all(-88.0f)));
    return 0.5f * (x + size * (1.0f - tail));
}

/* A polynomial near zero, where 1 − 2 / (1 + e^2x) cancels. NaN stays NaN. */
INLINE Lanes tanh_lanes(Lanes x) {
    Lanes size = choose(x < 0.0f, -x, x), square = x * x;
    Lanes p = all(-5.70498872745e-3f);
    p = fma(p, square, all(2.06390887954e-2f));
    p = fma(p, square, all(-5.37397155531e-2f));
    p = fma(p, square, all(1.33314422036e-1f));
    p = fma(p, square, all(-3.33332819422e-1f));
    Lanes near = fma(p * square, x, x);
    Lanes far = 1.0f - 2.0f / (1.0f + exponential(choose(size > 40.0f, all(80.0f), 2.0f * size)));
    return choose(size < 0.625f, near, choose(x < 0.0f, -far, far));
}

/* cap · tanh(scores / cap) */
INLINE Lanes softcapped(Lanes scores, float cap) { return tanh_lanes(scores / cap) * cap; }

#endif
