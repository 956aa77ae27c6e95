#include "experts.h"

#include <string.h>

#include "lanes.h"

/* Where the parts of a run keep their numbers. */
typedef struct {
    float *scores, *shares, *read, *gate_up, *active, *made;
    uint32_t *packed;
    int32_t *chosen;
} Rooms;

static int64_t set_out(const Experts *e, int64_t hidden, int64_t rows, float *scratch, Rooms *rooms) {
    int64_t inner = e->inner, widest = hidden > inner ? hidden : inner;
    if (e->packed_width > widest) widest = e->packed_width;
    int64_t widths[] = {e->count, e->chosen, e->chosen, hidden, 2 * inner, inner, hidden, widest};
    float **places[] = {&rooms->scores, &rooms->shares,  (float **)&rooms->chosen, &rooms->read,
                        &rooms->gate_up, &rooms->active, &rooms->made, (float **)&rooms->packed};
    int64_t used = 0;
    for (int i = 0; i < 8; i++) {
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

/* The experts of the largest scores, rising, and their shares. */
static void choose_experts(const Experts *e, const float *scores, int32_t *chosen, float *shares) {
    uint8_t is_taken[e->count];
    memset(is_taken, 0, sizeof is_taken);
    float top = 0;
    for (int32_t k = 0; k < e->chosen; k++) {
        int32_t best = -1;
        for (int32_t i = 0; i < e->count; i++)
            if (!is_taken[i] && (best < 0 || scores[i] > scores[best])) best = i;
        is_taken[best] = 1;
        if (k == 0) top = scores[best];
    }
    for (int32_t i = 0, k = 0; i < e->count; i++) {
        if (!is_taken[i]) continue;
        chosen[k] = i;
        shares[k++] = scores[i];
    }
    int32_t is_among_chosen = e->normalises || e->chooses_first;
    float whole = is_among_chosen ? whole_of(shares, e->chosen, top) : whole_of(scores, e->count, top);
    for (int32_t k = 0; k < e->chosen; k++) shares[k] = exponential(all(shares[k] - top))[0] / whole;
}

/* The place of an expert among a row's, or −1. */
static int32_t place_of(const Rooms *rooms, const Experts *e, int64_t row, int32_t expert) {
    for (int32_t k = 0; k < e->chosen; k++)
        if (rooms->chosen[row * e->chosen + k] == expert) return k;
    return -1;
}

/* The rows that chose an expert, through it. */
static void run_expert(Pool *pool, const Experts *e, const Gate *gate, int32_t hidden, const float *x,
                       int32_t rows, int32_t expert, const Rooms *rooms, float *y) {
    int32_t count = 0;
    for (int64_t r = 0; r < rows; r++)
        if (place_of(rooms, e, r, expert) >= 0)
            memcpy(rooms->read + (int64_t)count++ * hidden, x + r * hidden, hidden * sizeof *x);
    if (count == 0) return;
    linear(pool, e->gate_ups + expert, rooms->read, rooms->packed, count, NULL, rooms->gate_up);
    Activation job = {rooms->gate_up, rooms->gate_up + e->inner, 2 * e->inner, 2 * e->inner,
                      rooms->active,  e->inner,                  count,        *gate};
    activate(pool, &job);
    linear(pool, e->downs + expert, rooms->active, rooms->packed, count, NULL, rooms->made);
    const float *made = rooms->made;
    for (int64_t r = 0; r < rows; r++) {
        int32_t k = place_of(rooms, e, r, expert);
        if (k < 0) continue;
        Lanes share_ = all(rooms->shares[r * e->chosen + k]);
        for (int32_t i = 0; i < hidden; i += LANES, made += LANES)
            store(y + r * hidden + i, fma(load(made), share_, load(y + r * hidden + i)));
    }
}

void run_experts(Pool *pool, const Experts *e, const Gate *gate, int32_t hidden, const float *x,
                 int32_t rows, float *scratch, float *y) {
    Rooms rooms;
    set_out(e, hidden, rows, scratch, &rooms);
    linear(pool, &e->router, x, rooms.packed, rows, NULL, rooms.scores);
    for (int64_t r = 0; r < rows; r++)
        choose_experts(e, rooms.scores + r * e->count, rooms.chosen + r * e->chosen,
                       rooms.shares + r * e->chosen);
    memset(y, 0, (size_t)rows * hidden * sizeof *y);
    for (int32_t expert = 0; expert < e->count; expert++)
        run_expert(pool, e, gate, hidden, x, rows, expert, &rooms, y);
}
