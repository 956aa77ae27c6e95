#include "heads.h"

#include <stddef.h>
#include <string.h>

#include "best.h"
#include "lanes.h"
#include "softmax.h"

/* x + SiLU(y), in place of x. */
static void add_active(float *x, const float *y, int32_t size) {
    for (int32_t i = 0; i < size; i += LANES) store(x + i, load(x + i) + silu(load(y + i)));
}

/* What the first layers read: the state, and behind it the root's vector where they read it. */
static const float *input_of(const Heads *heads, const float *hidden, int64_t root_id, float *to) {
    int32_t size = heads->hidden;
    if (heads->embedding == NULL) return hidden;
    memcpy(to, hidden, size * sizeof(float));
    for (int32_t i = 0; i < size; i += LANES) {
        int64_t at = root_id * size + i;
        store(to + size + i, heads->embedding_is_half
                                 ? load_halves((const uint16_t *)heads->embedding + at)
                                 : load((const float *)heads->embedding + at));
    }
    return to;
}

void rank(const Heads *heads, const float *hidden, int64_t root_id, int32_t count, int32_t ranks,
          float *scratch, float *scores, int32_t *best, float *chances, Pool *pool) {
    int64_t size = heads->hidden, columns = heads->columns;
    float *states = scratch, *turned = scratch + count * size, *read = scratch + 2 * count * size;
    uint32_t *packed = (uint32_t *)(read + 2 * size);
    for (int32_t h = 0; h < count; h++) memcpy(states + h * size, hidden, size * sizeof(float));
    if (heads->first != NULL) {
        Linear wanted = *heads->first;
        wanted.outputs = count * heads->hidden;
        linear(pool, &wanted, input_of(heads, hidden, root_id, read), packed, 1, NULL, turned);
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
        const float *row = scores + h * columns;
        float best_scores[MOST_FEW];
        best_few(row, columns, ranks, best_scores, best + h * ranks);
        Softmax whole = softmax_of(row, columns, best_scores[0]);
        for (int32_t r = 0; r < ranks; r++) chances[h * ranks + r] = chance(best_scores[r], whole);
    }
}
