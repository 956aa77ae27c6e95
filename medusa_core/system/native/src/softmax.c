#include "softmax.h"

#include "lanes.h"

/* 2^x for x ≤ 0, to three millionths of it: half the work of `exponential`. */
INLINE Lanes power_of_two(Lanes x) {
    Lanes bounded = larger_number(x, all(-120.0f));
    Lanes magic = all(12582912.0f); /* as there */
    Lanes shifted = bounded + magic;
    Lanes f = bounded - (shifted - magic);
    Lanes p = fma(all(9.5701019081e-3f), f, all(5.5917860319e-2f));
    p = fma(p, f, all(2.4024744828e-1f));
    p = fma(p, f, all(6.9312181474e-1f));
    p = fma(p, f, all(9.9999926145e-1f));
    return (Lanes)((Words)p + ((Words)shifted << 23)); /* may wrap where x is no number */
}

#define LOG2_E 1.44269504f

/* Without looking for the largest number first: any number not far below it serves as `top`. Where
   it is too far below, the largest does. */
Softmax softmax_of(const float *row, int64_t columns, float top) {
    for (;;) {
        Lanes a = {0}, b = {0}, most = all(-__builtin_inff()), scale = all(LOG2_E), shift = all(-top * LOG2_E);
        int64_t i = 0;
        for (; i + 2 * LANES <= columns; i += 2 * LANES) {
            Lanes x = load(row + i), y = load(row + i + LANES);
            most = larger_number(larger_number(x, y), most);
            a += power_of_two(fma(x, scale, shift));
            b += power_of_two(fma(y, scale, shift));
        }
        float rest = 0, largest_one = largest(most);
        for (; i < columns; i++) {
            largest_one = row[i] > largest_one ? row[i] : largest_one;
            rest += power_of_two(fma(all(row[i]), scale, shift))[0];
        }
        if (!(largest_one - top > 60.0f)) return (Softmax){top, sum(a + b) + rest};
        top = largest_one;
    }
}

float chance(float score, Softmax of) {
    return power_of_two(fma(all(score), all(LOG2_E), all(-of.top * LOG2_E)))[0] / of.whole;
}
