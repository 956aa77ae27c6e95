#include "experts.h"

#include <string.h>

#include "lanes.h"

/* Where the parts of a run keep their numbers. */
typedef struct {
    float *scores, *weights, *read, *gate_up, *active, *made, *open;
    uint32_t *packed;
    int32_t *chosen;
} Rooms;

static int64_t larger_of(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t set_out(const Experts *e, int64_t hidden, int64_t rows, float *scratch, Rooms *rooms) {
    int64_t inner = larger_of(e->shape.inner, e->shared.inner);
    int64_t widest = larger_of(larger_of(hidden, inner), e->packed_width);
    int64_t widths[] = {e->count, e->chosen, e->chosen, hidden, 2 * inner, inner, hidden, 1, widest};
    float **places[] = {&rooms->scores, &rooms->weights, (float **)&rooms->chosen,
                        &rooms->read,   &rooms->gate_up, &rooms->active,
                        &rooms->made,   &rooms->open,    (float **)&rooms->packed};
    int64_t used = 0;
    for (int i = 0; i < 9; i++) {
        if (scratch != NULL) *places[i] = scratch + used;
        used += (rows * widths[i] + LANES - 1) / LANES * LANES;
    }
    return used;
}

int64_t experts_scratch(const Experts *e, int32_t hidden, int32_t rows) {
    Rooms rooms;
    return set_out(e, hidden, rows, NULL, &rooms);
}

/* Σ e^(x − top) of some scores. */
static float whole_of(const float *scores, int32_t count, float top) {
    float whole = 0;
    for (int32_t i = 0; i < count; i++) whole += exponential(all(scores[i] - top))[0];
    return whole;
}

/* Each number's sigmoid in its place; their count may be any. */
static void sigmoids(float *x, int32_t count) {
    for (int32_t i = 0; i < count; i += LANES) {
        float some[LANES] = {0};
        size_t size = (size_t)(count - i < LANES ? count - i : LANES) * sizeof *x;
        memcpy(some, x + i, size);
        store(some, sigmoid(load(some)));
        memcpy(x + i, some, size);
    }
}

/* The experts of the largest ranks, rising; of equal ones the first. Returns the largest one's number. */
static int32_t choose_largest(const Experts *e, const float *ranks, int32_t *chosen) {
    uint8_t is_taken[e->count];
    memset(is_taken, 0, sizeof is_taken);
    int32_t first = -1;
    for (int32_t k = 0; k < e->chosen; k++) {
        int32_t best = -1;
        for (int32_t i = 0; i < e->count; i++)
            if (!is_taken[i] && (best < 0 || ranks[i] > ranks[best])) best = i;
        is_taken[best] = 1;
        if (k == 0) first = best;
    }
    for (int32_t i = 0, k = 0; i < e->count; i++)
        if (is_taken[i]) chosen[k++] = i;
    return first;
}

/* Choose by sigmoids and bias; the routing weights are the sigmoids alone. */
static void route_by_sigmoids(const Experts *e, float *scores, int32_t *chosen, float *weights) {
    float biased[e->count], whole = 0;
    sigmoids(scores, e->count);
    for (int32_t i = 0; i < e->count; i++) biased[i] = e->bias == NULL ? scores[i] : scores[i] + e->bias[i];
    choose_largest(e, biased, chosen);
    for (int32_t k = 0; k < e->chosen; k++) whole += weights[k] = scores[chosen[k]];
    if (e->normalises)
        for (int32_t k = 0; k < e->chosen; k++) weights[k] = weights[k] / (whole + e->sum_eps);
}

static void route_by_softmax(const Experts *e, const float *scores, int32_t *chosen, float *weights) {
    float top = scores[choose_largest(e, scores, chosen)];
    for (int32_t k = 0; k < e->chosen; k++) weights[k] = scores[chosen[k]];
    /* A softmax over all that is then normalised is one over the chosen experts. */
    int32_t is_among_chosen = e->normalises || e->routing == TOPK_SOFTMAX;
    float whole = is_among_chosen ? whole_of(weights, e->chosen, top) : whole_of(scores, e->count, top);
    for (int32_t k = 0; k < e->chosen; k++) weights[k] = exponential(all(weights[k] - top))[0] / whole;
}

/* A row's experts, rising, and their routing weights; its scores are overwritten. */
static void route(const Experts *e, float *scores, int32_t *chosen, float *weights) {
    if (e->routing == SIGMOIDS)
        route_by_sigmoids(e, scores, chosen, weights);
    else
        route_by_softmax(e, scores, chosen, weights);
    for (int32_t k = 0; k < e->chosen; k++) {
        if (e->scales != NULL) weights[k] *= e->scales[chosen[k]];
        weights[k] *= e->scale;
    }
}

/* The place of an expert among a row's, or −1. */
static int32_t place_of(const Rooms *rooms, const Experts *e, int64_t row, int32_t expert) {
    for (int32_t k = 0; k < e->chosen; k++)
        if (rooms->chosen[row * e->chosen + k] == expert) return k;
    return -1;
}

/* Rows through an MLP; the result is added to `plus`, which may be NULL, or y. */
static void run_mlp(Pool *pool, const MlpShape *shape, const Linear *gate_up, const Linear *down,
                    const Gate *gate, const float *x, int32_t rows, const Rooms *rooms,
                    const float *plus, float *y) {
    int64_t stride = shape->up_at + shape->inner;
    linear(pool, gate_up, x, rooms->packed, rows, NULL, rooms->gate_up);
    Activation job = {rooms->gate_up, rooms->gate_up + shape->up_at, stride, stride,
                      rooms->active,  shape->inner,                  rows,   *gate};
    activate(pool, &job);
    linear(pool, down, rooms->active, rooms->packed, rows, plus, y);
}

/* y += weight · x of one row. */
static void add_row(const float *x, float weight, int32_t hidden, float *y) {
    for (int32_t i = 0; i < hidden; i += LANES) store(y + i, fma(load(x + i), all(weight), load(y + i)));
}

/* The rows that chose an expert, through it. */
static void run_expert(Pool *pool, const Experts *e, const Gate *gate, int32_t hidden, const float *x,
                       int32_t rows, int32_t expert, const Rooms *rooms, float *y) {
    int32_t count = 0;
    for (int64_t r = 0; r < rows; r++)
        if (place_of(rooms, e, r, expert) >= 0)
            memcpy(rooms->read + (int64_t)count++ * hidden, x + r * hidden, hidden * sizeof *x);
    if (count == 0) return;
    run_mlp(pool, &e->shape, e->gate_ups + expert, e->downs + expert, gate, rooms->read, count, rooms,
            NULL, rooms->made);
    const float *made = rooms->made;
    for (int64_t r = 0; r < rows; r++) {
        int32_t k = place_of(rooms, e, r, expert);
        if (k < 0) continue;
        add_row(made, rooms->weights[r * e->chosen + k], hidden, y + r * hidden);
        made += hidden;
    }
}

/* All rows through the shared expert. */
static void run_shared(Pool *pool, const Experts *e, const Gate *gate, int32_t hidden, const float *x,
                       int32_t rows, const Rooms *rooms, float *y) {
    int32_t is_gated = e->shared_gate.outputs > 0;
    run_mlp(pool, &e->shared, &e->shared_gate_up, &e->shared_down, gate, x, rows, rooms,
            is_gated ? NULL : y, is_gated ? rooms->made : y);
    if (!is_gated) return;
    linear(pool, &e->shared_gate, x, rooms->packed, rows, NULL, rooms->open);
    sigmoids(rooms->open, rows);
    for (int64_t r = 0; r < rows; r++)
        add_row(rooms->made + r * hidden, rooms->open[r], hidden, y + r * hidden);
}

void run_experts(Pool *pool, const Experts *e, const Gate *gate, int32_t hidden, const float *x,
                 const float *routed, int32_t rows, float *scratch, float *y) {
    Rooms rooms;
    set_out(e, hidden, rows, scratch, &rooms);
    linear(pool, &e->router, routed, rooms.packed, rows, NULL, rooms.scores);
    for (int64_t r = 0; r < rows; r++)
        route(e, rooms.scores + r * e->count, rooms.chosen + r * e->chosen,
              rooms.weights + r * e->chosen);
    memset(y, 0, (size_t)rows * hidden * sizeof *y);
    for (int32_t expert = 0; expert < e->count; expert++)
        run_expert(pool, e, gate, hidden, x, rows, expert, &rooms, y);
    if (e->shared.inner > 0) run_shared(pool, e, gate, hidden, x, rows, &rooms, y);
}
