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

typedef struct {
    const float *scores;
    int64_t columns;
    int32_t ranks;
    int32_t *best;
    float *chances;
} Ranking;

/* The best of one head's scores, and what it gives them. */
static void rank_row(void *context, int32_t head, int32_t worker) {
    const Ranking *ranking = context;
    (void)worker;
    const float *row = ranking->scores + head * ranking->columns;
    float best_scores[MOST_FEW];
    best_few(row, ranking->columns, ranking->ranks, best_scores, ranking->best + head * ranking->ranks);
    Softmax whole = softmax_of(row, ranking->columns, best_scores[0]);
    for (int32_t r = 0; r < ranking->ranks; r++)
        ranking->chances[head * ranking->ranks + r] = chance(best_scores[r], whole);
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
        linear_each(pool, heads->rest + d * heads->num_heads, count, states, packed, turned);
        add_active(states, turned, count * heads->hidden);
    }
    if (heads->is_shared)
        linear(pool, heads->projections, states, packed, count, NULL, scores);
    else
        linear_each(pool, heads->projections, count, states, packed, scores);
    Ranking ranking = {scores, columns, ranks, best, chances};
    share(pool, rank_row, &ranking, count);
}
