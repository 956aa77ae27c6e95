#include "heads.h"

#include <stddef.h>
#include <string.h>

#include "lanes.h"

void best_of_rows(const float *scores, int32_t rows, int64_t columns, int64_t *best) {
    for (int64_t r = 0; r < rows; r++) {
        const float *row = scores + r * columns;
        int64_t whole = columns / LANES * LANES, found = 0;
        float top = row[0];
        for (int64_t i = 0; i < whole; i += LANES) {
            Lanes x = load(row + i);
            Signed beats = (x > top) | (x != x);
            if (__builtin_reduce_or(beats) == 0) continue;
            for (int64_t j = i; j < i + LANES; j++) {
                if (row[j] != row[j]) { best[r] = j; goto next; }
                if (row[j] > top) top = row[j], found = j;
            }
        }
        for (int64_t j = whole; j < columns; j++) {
            if (row[j] != row[j]) { best[r] = j; goto next; }
            if (row[j] > top) top = row[j], found = j;
        }
        best[r] = found;
    next:;
    }
}

/* x + SiLU(y), in place of x. */
static void add_active(float *x, const float *y, int32_t size) {
    for (int32_t i = 0; i < size; i += LANES) store(x + i, load(x + i) + silu(load(y + i)));
}

void rank(const Heads *heads, const float *hidden, int32_t count, int32_t ranks, float *scratch,
          float *scores, int64_t *best, Pool *pool) {
    int64_t size = heads->hidden, columns = heads->columns;
    float *states = scratch, *turned = scratch + count * size;
    uint32_t *packed = (uint32_t *)(scratch + 2 * count * size);
    for (int32_t h = 0; h < count; h++) memcpy(states + h * size, hidden, size * sizeof(float));
    if (heads->first != NULL) {
        Linear wanted = *heads->first;
        wanted.outputs = count * heads->hidden;
        linear(pool, &wanted, hidden, packed, 1, NULL, turned);
        add_active(states, turned, count * heads->hidden);
    }
    for (int32_t d = 0; d < heads->num_rest; d++) {
        for (int32_t h = 0; h < count; h++)
            linear(pool, heads->rest + d * heads->num_heads + h, states + h * size, packed, 1, NULL,
                   turned + h * size);
        add_active(states, turned, count * heads->hidden);
    }
    if (heads->is_shared)
        linear(pool, heads->projections, states, packed, count, NULL, scores);
    else
        for (int32_t h = 0; h < count; h++)
            linear(pool, heads->projections + h, states + h * size, packed, 1, NULL,
                   scores + h * columns);
    for (int32_t h = 0; h < count; h++) {
        float *row = scores + h * columns, taken[64];
        for (int32_t k = 0; k < ranks; k++) {
            int64_t *place = best + h * ranks + k;
            best_of_rows(row, 1, columns, place);
            taken[k] = row[*place];
            row[*place] = -__builtin_inff();
        }
        for (int32_t k = 0; k < ranks; k++) row[best[h * ranks + k]] = taken[k];
    }
}
