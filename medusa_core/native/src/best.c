#include "best.h"

#include "lanes.h"

enum { BESIDE = 4 }; /* vectors of largest numbers */

int64_t best_of_row(const float *row, int64_t columns) {
    Lanes most = all(-__builtin_inff());
    Signed odd = {0};
    int64_t i = 0;
    for (; i + LANES <= columns; i += LANES) {
        Lanes x = load(row + i);
        most = larger_number(x, most);
        odd |= x != x;
    }
    float top = largest(most);
    int is_odd = __builtin_reduce_or(odd) != 0;
    for (; i < columns; i++) {
        top = row[i] > top ? row[i] : top;
        is_odd |= row[i] != row[i];
    }
    if (is_odd || top - top != 0) return -1;
    for (i = 0; i + LANES <= columns; i += LANES) {
        Signed equal = load(row + i) == top;
        if (__builtin_reduce_or(equal) != 0) break;
    }
    while (row[i] != top) i++;
    return i;
}

INLINE void insert(float *scores, int32_t *places, int32_t count, float score, int32_t place) {
    int32_t k = count - 1;
    if (!(score > scores[k])) return;
    for (; k > 0 && score > scores[k - 1]; k--) {
        scores[k] = scores[k - 1];
        places[k] = places[k - 1];
    }
    scores[k] = score;
    places[k] = place;
}

static void clear(float *scores, int32_t *places, int32_t count) {
    for (int32_t k = 0; k < count; k++) scores[k] = -__builtin_inff(), places[k] = k;
}

/* The largest numbers of 64 parts of the row stand in as many columns: no number below the last of
   the best `count` among them is among the best. */
static float bound_of(const float *row, int64_t whole, int32_t count) {
    Lanes most[BESIDE];
    float scores[MOST_FEW];
    int32_t places[MOST_FEW];
    for (int v = 0; v < BESIDE; v++) most[v] = all(-__builtin_inff());
    int64_t i = 0;
    for (; i + BESIDE * LANES <= whole; i += BESIDE * LANES)
        for (int v = 0; v < BESIDE; v++) most[v] = larger_number(load(row + i + v * LANES), most[v]);
    for (; i < whole; i += LANES) most[0] = larger_number(load(row + i), most[0]);
    clear(scores, places, count);
    for (int v = 0; v < BESIDE; v++)
        for (int l = 0; l < LANES; l++) insert(scores, places, count, most[v][l], 0);
    return scores[count - 1];
}

void best_few(const float *row, int64_t columns, int32_t count, float *scores, int32_t *places) {
    int64_t whole = columns / LANES * LANES, i = 0;
    Lanes bound = all(bound_of(row, whole, count));
    clear(scores, places, count);
    for (; i < whole; i += LANES) {
        Signed reaches = load(row + i) >= bound;
        if (__builtin_reduce_or(reaches) == 0) continue;
        for (int64_t j = i; j < i + LANES; j++) insert(scores, places, count, row[j], (int32_t)j);
    }
    for (; i < columns; i++) insert(scores, places, count, row[i], (int32_t)i);
}
