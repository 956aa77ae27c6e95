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
    int is_odd = any(odd);
    for (; i < columns; i++) {
        top = row[i] > top ? row[i] : top;
        is_odd |= row[i] != row[i];
    }
    if (is_odd || top - top != 0) return -1;
    for (i = 0; i + LANES <= columns; i += LANES) {
        Signed equal = load(row + i) == top;
        if (any(equal)) break;
    }
    while (row[i] != top) i++;
    return i;
}

/* Numbers that may be among the best, in the order of their places: where a branch would go either
   way, as it does here, the processor waits longer than it computes. */
enum { MOST = 8 * LANES, BLOCKS = 64 };

typedef struct {
    float scores[MOST];
    int32_t places[MOST];
    int32_t count;
} Candidates;

INLINE void put_if(Candidates *to, int is_one, float score, int32_t place) {
    to->scores[to->count] = score;
    to->places[to->count] = place;
    to->count += is_one;
}

/* The best `count` in order, of equals the first; each goes where as many are before it. */
static void keep_best(Candidates *of, int32_t count) {
    Candidates sorted;
    int32_t vectors = (of->count + LANES - 1) / LANES;
    for (int32_t i = of->count; i < vectors * LANES; i++) of->scores[i] = -__builtin_inff();
    for (int32_t v = 0; v < vectors; v++) {
        Lanes score = load(of->scores + v * LANES);
        Signed index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, before = {0};
        for (int32_t i = 0; i < of->count; i++) {
            Lanes other = all(of->scores[i]);
            before -= (other > score) | ((other == score) & (index + v * LANES > i));
        }
        for (int32_t i = v * LANES; i < of->count && i < (v + 1) * LANES; i++) {
            sorted.scores[before[i % LANES]] = of->scores[i];
            sorted.places[before[i % LANES]] = of->places[i];
        }
    }
    of->count = of->count < count ? of->count : count;
    for (int32_t i = 0; i < of->count; i++) {
        of->scores[i] = sorted.scores[i];
        of->places[i] = sorted.places[i];
    }
}

/* The largest numbers of sixteen parts of the row, or of 64, stand in as many columns: no number
   below the last of the best `count` among them is among the best. */
static float bound_of(const float *row, int64_t whole, int32_t count) {
    Lanes most[BESIDE];
    for (int v = 0; v < BESIDE; v++) most[v] = all(-__builtin_inff());
    int64_t i = 0;
    for (; i + BESIDE * LANES <= whole; i += BESIDE * LANES)
        for (int v = 0; v < BESIDE; v++) most[v] = larger_number(load(row + i + v * LANES), most[v]);
    for (; i < whole; i += LANES) most[0] = larger_number(load(row + i), most[0]);
    if (count <= LANES)
        most[0] = larger_number(larger_number(most[0], most[1]), larger_number(most[2], most[3]));
    Candidates parts = {.count = count <= LANES ? LANES : BESIDE * LANES};
    for (int v = 0; v < parts.count / LANES; v++) store(parts.scores + v * LANES, most[v]);
    keep_best(&parts, count);
    return parts.scores[count - 1];
}

void best_few(const float *row, int64_t columns, int32_t count, float *scores, int32_t *places) {
    int64_t whole = columns / LANES * LANES;
    float bound = bound_of(row, whole, count);
    Candidates found = {.count = 0};
    for (int64_t start = 0; start < whole; start += BLOCKS * LANES) {
        int64_t end = start + BLOCKS * LANES < whole ? start + BLOCKS * LANES : whole;
        int32_t blocks[BLOCKS + 1], num_blocks = 0;
        for (int64_t i = start; i < end; i += LANES) {
            Signed reaches = load(row + i) >= bound;
            blocks[num_blocks] = (int32_t)i;
            num_blocks += any(reaches);
        }
        for (int32_t b = 0; b < num_blocks; b++) {
            if (found.count >= MOST - LANES) keep_best(&found, count);
            for (int32_t i = blocks[b]; i < blocks[b] + LANES; i++)
                put_if(&found, row[i] >= bound, row[i], i);
        }
    }
    if (found.count >= MOST - LANES) keep_best(&found, count);
    for (int64_t i = whole; i < columns; i++) put_if(&found, row[i] >= bound, row[i], (int32_t)i);
    keep_best(&found, count);
    for (int32_t k = 0; k < count; k++) {
        scores[k] = k < found.count ? found.scores[k] : -__builtin_inff();
        places[k] = k < found.count ? found.places[k] : k;
    }
}
