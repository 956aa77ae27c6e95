#include "abi.h"
#include "activation.h"
#include "lanes.h"
#include "linear.h"
#include "pool.h"

#include <string.h>

/* Scratch memory, [rows, width] each. */
typedef struct {
    float *scores, *weights, *input, *gate_up, *active, *output, *shared_gate;
    uint32_t *packed;
    int32_t *chosen;
} Buffers;

static int64_t larger_of(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t carve_scratch(const Experts *e, int64_t hidden, int64_t rows, float *scratch,
                             Buffers *buffers) {
    int64_t inner = larger_of(e->mlp.intermediate_size, e->shared_mlp.intermediate_size);
    int64_t widest = larger_of(larger_of(hidden, inner), e->packed_width);
    int64_t chosen = e->num_experts_per_tok;
    int64_t widths[] = {e->num_experts, chosen, chosen, hidden, 2 * inner, inner, hidden, 1, widest};
    float **places[] = {&buffers->scores, &buffers->weights,     (float **)&buffers->chosen,
                        &buffers->input,  &buffers->gate_up,     &buffers->active,
                        &buffers->output, &buffers->shared_gate, (float **)&buffers->packed};
    int64_t used = 0;
    for (int i = 0; i < 9; i++) {
        if (scratch != NULL) *places[i] = scratch + used;
        used += (rows * widths[i] + LANES - 1) / LANES * LANES;
    }
    return used;
}

int64_t experts_scratch(const Experts *e, int32_t hidden, int32_t rows) {
    Buffers buffers;
    return carve_scratch(e, hidden, rows, NULL, &buffers);
}

/* Σ e^(x − top) */
static float sum_exp(const float *scores, int32_t count, float top) {
    float sum = 0;
    for (int32_t i = 0; i < count; i++) sum += exponential(all(scores[i] - top))[0];
    return sum;
}

/* Sigmoid in place, of any number of scores. */
static void sigmoids(float *x, int32_t count) {
    for (int32_t i = 0; i < count; i += LANES) {
        float padded[LANES] = {0};
        size_t size = (size_t)(count - i < LANES ? count - i : LANES) * sizeof *x;
        memcpy(padded, x + i, size);
        store(padded, sigmoid(load(padded)));
        memcpy(x + i, padded, size);
    }
}

/* Choose the experts of the largest scores, of equal ones the first, in ascending order. Returns the index
   of the largest. */
static int32_t choose_top_k(const Experts *e, const float *scores, int32_t *chosen) {
    uint8_t is_taken[e->num_experts];
    memset(is_taken, 0, sizeof is_taken);
    int32_t argmax = -1;
    for (int32_t k = 0; k < e->num_experts_per_tok; k++) {
        int32_t best = -1;
        for (int32_t i = 0; i < e->num_experts; i++)
            if (!is_taken[i] && (best < 0 || scores[i] > scores[best])) best = i;
        is_taken[best] = 1;
        if (k == 0) argmax = best;
    }
    for (int32_t i = 0, k = 0; i < e->num_experts; i++)
        if (is_taken[i]) chosen[k++] = i;
    return argmax;
}

/* Choose by sigmoid + bias; the routing weights are the sigmoids alone. */
static void route_by_sigmoids(const Experts *e, float *scores, int32_t *chosen, float *weights) {
    float biased[e->num_experts], sum = 0;
    sigmoids(scores, e->num_experts);
    for (int32_t i = 0; i < e->num_experts; i++)
        biased[i] = e->router_bias == NULL ? scores[i] : scores[i] + e->router_bias[i];
    choose_top_k(e, biased, chosen);
    for (int32_t k = 0; k < e->num_experts_per_tok; k++) sum += weights[k] = scores[chosen[k]];
    if (e->norm_topk_prob)
        for (int32_t k = 0; k < e->num_experts_per_tok; k++) weights[k] = weights[k] / (sum + e->sum_eps);
}

static void route_by_softmax(const Experts *e, const float *scores, int32_t *chosen, float *weights) {
    float top = scores[choose_top_k(e, scores, chosen)];
    for (int32_t k = 0; k < e->num_experts_per_tok; k++) weights[k] = scores[chosen[k]];
    /* Normalizing a softmax over all experts gives that over the chosen ones. */
    int32_t is_among_chosen = e->norm_topk_prob || e->scoring == TOPK_SOFTMAX;
    float sum = is_among_chosen ? sum_exp(weights, e->num_experts_per_tok, top)
                                : sum_exp(scores, e->num_experts, top);
    for (int32_t k = 0; k < e->num_experts_per_tok; k++)
        weights[k] = exponential(all(weights[k] - top))[0] / sum;
}

/* Choose a row's experts, in ascending order, and compute their weights; overwrites the scores. */
static void route(const Experts *e, float *scores, int32_t *chosen, float *weights) {
    if (e->scoring == SIGMOID)
        route_by_sigmoids(e, scores, chosen, weights);
    else
        route_by_softmax(e, scores, chosen, weights);
    for (int32_t k = 0; k < e->num_experts_per_tok; k++) {
        if (e->expert_scales != NULL) weights[k] *= e->expert_scales[chosen[k]];
        weights[k] *= e->routed_scaling_factor;
    }
}

/* Index of an expert among those of a row, or −1. */
static int32_t place_of(const Buffers *buffers, const Experts *e, int64_t row, int32_t expert) {
    for (int32_t k = 0; k < e->num_experts_per_tok; k++)
        if (buffers->chosen[row * e->num_experts_per_tok + k] == expert) return k;
    return -1;
}

/* y = MLP(x) + residual; `residual` may be NULL, or y. */
static void run_mlp(Pool *pool, const MlpShape *shape, const Linear *gate_up, const Linear *down,
                    const Activation *activation, const float *x, int32_t rows, const Buffers *buffers,
                    const float *residual, float *y) {
    int64_t stride = shape->up_offset + shape->intermediate_size;
    linear(pool, gate_up, x, buffers->packed, rows, NULL, buffers->gate_up);
    ActivationJob job = {buffers->gate_up, buffers->gate_up + shape->up_offset, stride, stride,
                      buffers->active,  shape->intermediate_size,                  rows,   *activation};
    activate(pool, &job);
    linear(pool, down, buffers->active, buffers->packed, rows, residual, y);
}

/* y += weight · x of one row. */
static void add_row(const float *x, float weight, int32_t hidden, float *y) {
    for (int32_t i = 0; i < hidden; i += LANES) store(y + i, fma(load(x + i), all(weight), load(y + i)));
}

/* Add the weighted output of an expert to the rows that chose it. */
static void run_expert(Pool *pool, const Experts *e, const Activation *activation, int32_t hidden,
                       const float *x, int32_t rows, int32_t expert, const Buffers *buffers, float *y) {
    int32_t count = 0;
    for (int64_t r = 0; r < rows; r++)
        if (place_of(buffers, e, r, expert) >= 0)
            memcpy(buffers->input + (int64_t)count++ * hidden, x + r * hidden, hidden * sizeof *x);
    if (count == 0) return;
    run_mlp(pool, &e->mlp, e->gate_ups + expert, e->downs + expert, activation, buffers->input, count,
            buffers, NULL, buffers->output);
    const float *output = buffers->output;
    for (int64_t r = 0; r < rows; r++) {
        int32_t k = place_of(buffers, e, r, expert);
        if (k < 0) continue;
        add_row(output, buffers->weights[r * e->num_experts_per_tok + k], hidden, y + r * hidden);
        output += hidden;
    }
}

/* Add the output of the shared expert. */
static void run_shared(Pool *pool, const Experts *e, const Activation *activation, int32_t hidden,
                       const float *x, int32_t rows, const Buffers *buffers, float *y) {
    int32_t is_gated = e->shared_gate.outputs > 0;
    run_mlp(pool, &e->shared_mlp, &e->shared_gate_up, &e->shared_down, activation, x, rows, buffers,
            is_gated ? NULL : y, is_gated ? buffers->output : y);
    if (!is_gated) return;
    linear(pool, &e->shared_gate, x, buffers->packed, rows, NULL, buffers->shared_gate);
    sigmoids(buffers->shared_gate, rows);
    for (int64_t r = 0; r < rows; r++)
        add_row(buffers->output + r * hidden, buffers->shared_gate[r], hidden, y + r * hidden);
}

void run_experts(Pool *pool, const Experts *e, const Activation *activation, int32_t hidden, const float *x,
                 const float *router_input, int32_t rows, float *scratch, float *y) {
    Buffers buffers;
    carve_scratch(e, hidden, rows, scratch, &buffers);
    linear(pool, &e->router, router_input, buffers.packed, rows, NULL, buffers.scores);
    for (int64_t r = 0; r < rows; r++)
        route(e, buffers.scores + r * e->num_experts, buffers.chosen + r * e->num_experts_per_tok,
              buffers.weights + r * e->num_experts_per_tok);
    memset(y, 0, (size_t)rows * hidden * sizeof *y);
    for (int32_t expert = 0; expert < e->num_experts; expert++)
        run_expert(pool, e, activation, hidden, x, rows, expert, &buffers, y);
    if (e->shared_mlp.intermediate_size > 0) run_shared(pool, e, activation, hidden, x, rows, &buffers, y);
}
