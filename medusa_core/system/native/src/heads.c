#include "abi.h"
#include "best.h"
#include "lanes.h"
#include "linear.h"
#include "pool.h"
#include "softmax.h"

#include <stddef.h>
#include <string.h>

/* x += SiLU(y) */
static void add_silu(float *x, const float *y, int32_t size) {
    for (int32_t i = 0; i < size; i += LANES) store(x + i, load(x + i) + silu(load(y + i)));
}

/* Input of the first layers: the hidden state, and after it the root's embedding if they read it. */
static const float *input_of(const Heads *heads, const float *hidden, int64_t root_id, float *to) {
    int32_t size = heads->hidden_size;
    if (heads->embedding == NULL) return hidden;
    memcpy(to, hidden, size * sizeof(float));
    for (int32_t i = 0; i < size; i += LANES) {
        int64_t at = root_id * size + i;
        store(to + size + i, heads->embedding_is_bf16
                                 ? load_bf16((const uint16_t *)heads->embedding + at)
                                 : load((const float *)heads->embedding + at));
    }
    return to;
}

typedef struct {
    const float *logits;
    int64_t columns;
    int32_t k;
    int32_t *best;
    float *probabilities;
} TopJob;

/* The best columns of one head, and their probabilities. */
static void rank_row(void *context, int32_t head, int32_t worker) {
    const TopJob *job = context;
    (void)worker;
    const float *row = job->logits + head * job->columns;
    float best[MAX_TOP_K];
    top_k(row, job->columns, job->k, best, job->best + head * job->k);
    Softmax softmax = softmax_of(row, job->columns, best[0]);
    for (int32_t r = 0; r < job->k; r++)
        job->probabilities[head * job->k + r] = probability(best[r], softmax);
}

void run_heads(const Heads *heads, const float *hidden, int64_t root_id, int32_t count, int32_t k,
               float *scratch, float *logits, int32_t *best, float *probabilities, Pool *pool) {
    int64_t size = heads->hidden_size, columns = heads->num_columns;
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
    TopJob job = {logits, columns, k, best, probabilities};
    parallel_for(pool, rank_row, &job, count); /* while the logits are still in the cache */
}
