#include "best.h"

#include "lanes.h"

enum { NUM_VECTORS = 4 }; /* of maxima */

int64_t argmax(const float *row, int64_t columns) {
    Lanes maxima = all(-__builtin_inff());
    Signed has_nan = {0};
    int64_t i = 0;
    for (; i + LANES <= columns; i += LANES) {
        Lanes x = load(row + i);
        maxima = larger_number(x, maxima);
        has_nan |= x != x;
    }
    float top = largest(maxima);
    int is_nan = any(has_nan);
    for (; i < columns; i++) {
        top = row[i] > top ? row[i] : top;
        is_nan |= row[i] != row[i];
    }
    if (is_nan || top - top != 0) return -1;
    for (i = 0; i + LANES <= columns; i += LANES) {
        Signed equal = load(row + i) == top;
        if (any(equal)) break;
    }
    while (row[i] != top) i++;
    return i;
}

/* Numbers that may be among the best, in the order of their columns. Without branches: they would be
   mispredicted, which costs more than the computation. */
enum { MAX_KEPT = 8 * LANES, BLOCK_VECTORS = 64 };

typedef struct {
    float values[MAX_KEPT];
    int32_t places[MAX_KEPT];
    int32_t count;
} Kept;

INLINE void append_if(Kept *to, int is_kept, float value, int32_t place) {
    to->values[to->count] = value;
    to->places[to->count] = place;
    to->count += is_kept;
}

/* Sort them and keep the best `count`, of equal ones the first: the place of each is the number of those
   before it. */
static void keep_best(Kept *of, int32_t count) {
    Kept sorted;
    int32_t vectors = (of->count + LANES - 1) / LANES;
    for (int32_t i = of->count; i < vectors * LANES; i++) of->values[i] = -__builtin_inff();
    for (int32_t v = 0; v < vectors; v++) {
        Lanes value = load(of->values + v * LANES);
        Signed index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, before = {0};
        for (int32_t i = 0; i < of->count; i++) {
            Lanes other = all(of->values[i]);
            before -= (other > value) | ((other == value) & (index + v * LANES > i));
        }
        for (int32_t i = v * LANES; i < of->count && i < (v + 1) * LANES; i++) {
            sorted.values[before[i % LANES]] = of->values[i];
            sorted.places[before[i % LANES]] = of->places[i];
        }
    }
    of->count = of->count < count ? of->count : count;
    for (int32_t i = 0; i < of->count; i++) {
        of->values[i] = sorted.values[i];
        of->places[i] = sorted.places[i];
    }
}

/* A lower bound of the best `count` numbers: the last of the `count` largest among the maxima of 16, or
   64, interleaved parts of the row. */
static float bound_of(const float *row, int64_t whole, int32_t count) {
    Lanes maxima[NUM_VECTORS];
    for (int v = 0; v < NUM_VECTORS; v++) maxima[v] = all(-__builtin_inff());
    int64_t i = 0;
    for (; i + NUM_VECTORS * LANES <= whole; i += NUM_VECTORS * LANES)
        for (int v = 0; v < NUM_VECTORS; v++) maxima[v] = larger_number(load(row + i + v * LANES), maxima[v]);
    for (; i < whole; i += LANES) maxima[0] = larger_number(load(row + i), maxima[0]);
    if (count <= LANES)
        maxima[0] = larger_number(larger_number(maxima[0], maxima[1]), larger_number(maxima[2], maxima[3]));
    Kept parts = {.count = count <= LANES ? LANES : NUM_VECTORS * LANES};
    for (int v = 0; v < parts.count / LANES; v++) store(parts.values + v * LANES, maxima[v]);
    keep_best(&parts, count);
    return parts.values[count - 1];
}

void top_k(const float *row, int64_t columns, int32_t k, float *values, int32_t *places) {
    int64_t whole = columns / LANES * LANES;
    float bound = bound_of(row, whole, k);
    Kept found = {.count = 0};
    for (int64_t start = 0; start < whole; start += BLOCK_VECTORS * LANES) {
        int64_t end = start + BLOCK_VECTORS * LANES < whole ? start + BLOCK_VECTORS * LANES : whole;
        int32_t blocks[BLOCK_VECTORS + 1], num_blocks = 0;
        for (int64_t i = start; i < end; i += LANES) {
            Signed is_kept = load(row + i) >= bound;
            blocks[num_blocks] = (int32_t)i;
            num_blocks += any(is_kept);
        }
        for (int32_t b = 0; b < num_blocks; b++) {
            if (found.count >= MAX_KEPT - LANES) keep_best(&found, k);
            for (int32_t i = blocks[b]; i < blocks[b] + LANES; i++)
                append_if(&found, row[i] >= bound, row[i], i);
        }
    }
    if (found.count >= MAX_KEPT - LANES) keep_best(&found, k);
    for (int64_t i = whole; i < columns; i++) append_if(&found, row[i] >= bound, row[i], (int32_t)i);
    keep_best(&found, k);
    for (int32_t i = 0; i < k; i++) {
        values[i] = i < found.count ? found.values[i] : -__builtin_inff();
        places[i] = i < found.count ? found.places[i] : i;
    }
}
