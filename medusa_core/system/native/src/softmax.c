#include "softmax.h"

#include "lanes.h"

/* 2^x for x ≤ 0, with a relative error of 3e−6: half the work of exponential(). */
INLINE Lanes power_of_two(Lanes x) {
    Lanes bounded = larger_number(x, all(-120.0f));
    Lanes magic = all(12582912.0f); /* rounds, as in exponential() */
    Lanes shifted = bounded + magic;
    Lanes f = bounded - (shifted - magic);
    Lanes p = fma(all(9.5701019081e-3f), f, all(5.5917860319e-2f));
    p = fma(p, f, all(2.4024744828e-1f));
    p = fma(p, f, all(6.9312181474e-1f));
    p = fma(p, f, all(9.9999926145e-1f));
    return (Lanes)((Words)p + ((Words)shifted << 23)); /* any bits for NaN */
}

#define LOG2_E 1.44269504f

/* Saves the pass that finds the maximum: any shift that isn't far below it serves. If it is too far
   below, a second pass uses the maximum. */
Softmax softmax_scaled(const float *row, int64_t columns, float shift, float factor) {
    for (;;) {
        Lanes a = {0}, b = {0}, maxima = all(-__builtin_inff()), scale = all(factor * LOG2_E);
        Lanes offset = all(-shift * (factor * LOG2_E));
        int64_t i = 0;
        for (; i + 2 * LANES <= columns; i += 2 * LANES) {
            Lanes x = load(row + i), y = load(row + i + LANES);
            maxima = larger_number(larger_number(x, y), maxima);
            a += power_of_two(fma(x, scale, offset));
            b += power_of_two(fma(y, scale, offset));
        }
        float rest = 0, maximum = largest(maxima);
        for (; i < columns; i++) {
            maximum = row[i] > maximum ? row[i] : maximum;
            rest += power_of_two(fma(all(row[i]), scale, offset))[0];
        }
        if (!(factor * (maximum - shift) > 60.0f)) return (Softmax){shift, sum(a + b) + rest};
        shift = maximum;
    }
}

Softmax softmax_of(const float *row, int64_t columns, float shift) {
    return softmax_scaled(row, columns, shift, 1.0f);
}

float probability(float logit, Softmax softmax) {
    return power_of_two(fma(all(logit), all(LOG2_E), all(-softmax.shift * LOG2_E)))[0] / softmax.sum;
}
