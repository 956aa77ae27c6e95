#include "summary.h"

#include "lanes.h"

/* The largest number of every lane; what is left of the row after whole lanes isn't looked at. */
static Lanes largest_per_lane(const float *row, int64_t columns) {
    Lanes most = load(row);
    for (int64_t i = LANES; i + LANES <= columns; i += LANES) most = larger_number(load(row + i), most);
    return most;
}

static float largest_of_row(const float *row, int64_t columns, Lanes most) {
    float top = largest(most);
    for (int64_t i = columns / LANES * LANES; i < columns; i++) top = row[i] > top ? row[i] : top;
    return top;
}

/* e^x for x ≤ 0, to about a millionth of it: half the work of `exponential`. */
INLINE Lanes exponential_to_show(Lanes x) {
    Lanes bounded = larger_number(x, all(-80.0f));
    Lanes magic = all(12582912.0f); /* as there */
    Lanes shifted = fma(bounded, all(1.44269504088896341f), magic);
    Lanes r = fma(shifted - magic, all(-0.69314718056f), bounded);
    Lanes p = fma(all(8.3333337680e-3f), r, all(4.1666667908e-2f));
    p = fma(p, r, all(1.6666667163e-1f));
    p = fma(p, r, all(0.5f));
    p = fma(p, r, all(1.0f));
    p = fma(p, r, all(1.0f));
    return (Lanes)((Signed)p + ((Signed)shifted << 23));
}

/* Σ e^(x − top) of a row, without looking for its largest number first: any number not far below
   serves as `top`. Where it is too far below, `top` becomes the largest. */
static float sum_of_exponentials(const float *row, int64_t columns, float *top) {
    for (;;) {
        Lanes a = {0}, b = {0}, most = all(0.0f);
        int64_t i = 0;
        for (; i + 2 * LANES <= columns; i += 2 * LANES) {
            Lanes x = load(row + i) - *top, y = load(row + i + LANES) - *top;
            most = larger_number(larger_number(x, y), most);
            a += exponential_to_show(x);
            b += exponential_to_show(y);
        }
        float rest = 0, above = largest(most);
        for (; i < columns; i++) {
            float x = row[i] - *top;
            above = x > above ? x : above;
            rest += exponential_to_show(all(x))[0];
        }
        if (!(above > 60.0f)) return sum(a + b) + rest;
        *top += above;
    }
}

static float chance(float score, float top, float whole) {
    return exponential_to_show(all(score - top))[0] / whole;
}

void probabilities(const float *scores, int64_t columns, const int32_t *rows,
                   const int32_t *places, int32_t count, float *chances) {
    for (int32_t i = 0, next = 0; i < count; i = next) {
        const float *row = scores + rows[i] * columns;
        float top = row[places[i]];
        for (next = i + 1; next < count && rows[next] == rows[i]; next++)
            top = row[places[next]] > top ? row[places[next]] : top;
        float whole = sum_of_exponentials(row, columns, &top);
        for (int32_t j = i; j < next; j++) chances[j] = chance(row[places[j]], top, whole);
    }
}

/* The best few of what `insert` was given and one more, best first. */
typedef struct {
    float scores[FEW + 1];
    int32_t places[FEW + 1];
} Best;

/* Of equals the one that came first stays first. */
INLINE void insert(Best *best, float score, int32_t place) {
    if (!(score > best->scores[FEW])) return;
    for (int k = 0; k <= FEW; k++)
        if (score > best->scores[k]) {
            float lower = best->scores[k];
            int32_t behind = best->places[k];
            best->scores[k] = score, best->places[k] = place;
            score = lower, place = behind;
        }
}

static Best none(void) {
    Best best;
    for (int k = 0; k <= FEW; k++) best.scores[k] = -__builtin_inff(), best.places[k] = k;
    return best;
}

/* The best of a row. The largest numbers of the lanes stand in as many columns: no number below the
   last of the best among them is among the best. */
static Best best_of(const float *row, int64_t columns, Lanes most) {
    Best bound = none(), best = none();
    for (int i = 0; i < LANES; i++) insert(&bound, most[i], i);
    Lanes least = all(bound.scores[FEW]);
    int64_t i = 0;
    for (; i + LANES <= columns; i += LANES) {
        Signed reaches = load(row + i) >= least;
        if (__builtin_reduce_or(reaches) == 0) continue;
        for (int64_t j = i; j < i + LANES; j++) insert(&best, row[j], (int32_t)j);
    }
    for (; i < columns; i++) insert(&best, row[i], (int32_t)i);
    return best;
}

void summarise(const float *scores, int64_t columns, const int32_t *rows, const int32_t *places,
               int32_t count, float *chances, float *other_chances, int32_t *others) {
    for (int32_t r = 0; r < count; r++) {
        const float *row = scores + rows[r] * columns;
        Lanes most = largest_per_lane(row, columns);
        float top = largest_of_row(row, columns, most);
        float whole = sum_of_exponentials(row, columns, &top);
        Best best = best_of(row, columns, most);
        chances[r] = chance(row[places[r]], top, whole);
        for (int k = 0, found = 0; found < FEW; k++) {
            if (best.places[k] == places[r]) continue;
            other_chances[r * FEW + found] = chance(best.scores[k], top, whole);
            others[r * FEW + found++] = best.places[k];
        }
    }
}
