#include "summary.h"

#include <stddef.h>

#include "best.h"
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
    return (Lanes)((Signed)p + ((Signed)shifted << 23));
}

#define LOG2_E 1.44269504f

/* Σ e^(x − top) of a row. */
typedef struct {
    float top, whole;
} Softmax;

/* Without looking for the largest number first: any number not far below it serves as `top`. Where
   it is too far below, the largest does. */
static Softmax softmax_of(const float *row, int64_t columns, float top) {
    for (;;) {
        Lanes a = {0}, b = {0}, most = load(row), scale = all(LOG2_E), shift = all(-top * LOG2_E);
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

static float chance(float score, Softmax of) {
    return power_of_two(fma(all(score), all(LOG2_E), all(-of.top * LOG2_E)))[0] / of.whole;
}

void probabilities(const float *scores, int64_t columns, const int32_t *rows,
                   const int32_t *places, int32_t count, float *chances) {
    for (int32_t i = 0, next = 0; i < count; i = next) {
        const float *row = scores + rows[i] * columns;
        float top = row[places[i]];
        for (next = i + 1; next < count && rows[next] == rows[i]; next++)
            top = row[places[next]] > top ? row[places[next]] : top;
        Softmax whole = softmax_of(row, columns, top);
        for (int32_t j = i; j < next; j++) chances[j] = chance(row[places[j]], whole);
    }
}

static void summarise(const float *scores, int64_t columns, const int32_t *rows,
                      const int32_t *places, int32_t count, float *chances) {
    float *other_chances = chances + count;
    int32_t *others = (int32_t *)(other_chances + count * FEW);
    for (int32_t r = 0; r < count; r++) {
        const float *row = scores + rows[r] * columns;
        Softmax whole = softmax_of(row, columns, row[places[r]]);
        float top_scores[FEW + 1];
        int32_t best[FEW + 1];
        best_few(row, columns, FEW + 1, top_scores, best);
        chances[r] = chance(row[places[r]], whole);
        for (int k = 0, found = 0; found < FEW; k++) {
            if (best[k] == places[r]) continue;
            other_chances[r * FEW + found] = chance(top_scores[k], whole);
            others[r * FEW + found++] = best[k];
        }
    }
}

void read_step(const float *drafted, int64_t draft_columns, const int32_t *heads, int32_t drafts,
               const float *judged, int64_t columns, const int32_t *places, int32_t length,
               float *read) {
    *read++ = __builtin_nanf("");
    if (drafted == NULL) {
        for (int32_t i = 0; i < drafts; i++) read[i] = __builtin_nanf("");
    } else {
        probabilities(drafted, draft_columns, heads, places, drafts, read);
        places += drafts;
    }
    summarise(judged, columns, places, places + length, length, read + drafts);
}
