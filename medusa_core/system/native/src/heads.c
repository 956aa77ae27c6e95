#include "abi.h"
#include "lanes.h"
#include "linear.h"

#include <stddef.h>
#include <string.h>

/* x += SiLU(y) */
static void add_silu(float *x, const float *y, int32_t size) {
    for (int32_t i = 0; i < size; i += LANES) store(x + i, load(x + i) + silu(load(y + i)));
}

/* Copy a token's embedding. [hidden_size] */
static void embed(const void *embedding, int32_t is_bf16, int64_t token_id, int32_t size, float *to) {
    for (int32_t i = 0; i < size; i += LANES) {
        int64_t at = token_id * size + i;
        store(to + i, is_bf16 ? load_bf16((const uint16_t *)embedding + at)
                              : load((const float *)embedding + at));
    }
}

/* Input of the first layers: the hidden state, and after it the root's embedding if they read it. */
static const float *input_of(const Heads *heads, const float *hidden, int64_t root_id, float *to) {
    int32_t size = heads->hidden_size;
    if (heads->embedding == NULL) return hidden;
    memcpy(to, hidden, size * sizeof(float));
    embed(heads->embedding, heads->embedding_is_bf16, root_id, size, to + size);
    return to;
}

void run_heads(const Heads *heads, const float *hidden, int64_t root_id, int32_t count, float *scratch,
               float *logits, const Ranking *ranking, Pool *pool) {
    int64_t size = heads->hidden_size;
    float *states = scratch, *projected = scratch + count * size, *input = scratch + 2 * count * size;
    uint32_t *packed = (uint32_t *)(input + 2 * size);
    for (int32_t h = 0; h < count; h++) memcpy(states + h * size, hidden, size * sizeof(float));
    if (heads->first != NULL) {
        Linear wanted = *heads->first;
        wanted.outputs = count * heads->hidden_size;
        linear(pool, &wanted, input_of(heads, hidden, root_id, input), packed, 1, NULL, projected);
        add_silu(states, projected, count * heads->hidden_size);
    }
    for (int32_t d = 0; d < heads->num_rest; d++) {
        linear_each(pool, heads->rest + d * heads->num_heads, count, states, packed, projected);
        add_silu(states, projected, count * heads->hidden_size);
    }
    if (heads->shares_projection)
        linear(pool, heads->projections, states, packed, count, NULL, logits);
    else
        linear_each(pool, heads->projections, count, states, packed, logits);
    rank_rows(logits, heads->num_columns, count, ranking, pool); /* while they are still in the cache */
}

void run_path_head(const PathHead *head, const float *hidden, int64_t root_id, const int32_t *paths,
                   int32_t count, float *scratch, float *logits, const Ranking *ranking, Pool *pool) {
    int64_t size = head->hidden_size, width = (1 + head->num_tokens) * size, outputs = head->first->outputs;
    float *inputs = scratch, *projected = inputs + count * width, *states = projected + 2 * count * size;
    uint32_t *packed = (uint32_t *)(states + count * size);
    for (int64_t p = 0; p < count; p++) {
        float *to = inputs + p * width;
        memcpy(to, hidden, (size_t)size * sizeof(float));
        for (int32_t t = 0; t < head->num_tokens; t++) {
            int64_t token_id = t == 0 ? root_id : paths[p * (head->num_tokens - 1) + t - 1];
            embed(head->embedding, head->embedding_is_bf16, token_id, head->hidden_size, to + (1 + t) * size);
        }
    }
    linear(pool, head->first, inputs, packed, count, NULL, projected);
    for (int64_t p = 0; p < count; p++) {
        const float *from = projected + p * outputs;
        float *state = states + p * size;
        memcpy(state, outputs > size ? from + size : hidden, (size_t)size * sizeof(float));
        add_silu(state, from, head->hidden_size);
    }
    for (int32_t d = 0; d < head->num_rest; d++) {
        linear(pool, head->rest + d, states, packed, count, NULL, projected);
        add_silu(states, projected, count * head->hidden_size);
    }
    linear(pool, head->projection, states, packed, count, NULL, logits);
    rank_rows(logits, head->projection->outputs, count, ranking, pool);
}
