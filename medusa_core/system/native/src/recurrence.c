#include "recurrence.h"

#include <stddef.h>

#include "lanes.h"

#if defined(__AVX512F__)
enum { BESIDE = 4 }; /* vectors of a state's columns that are summed together, each twice */
#else
enum { BESIDE = 2 };
#endif
enum { L2_EPS_INVERSE = 1000000 };

static int64_t state_size(const StateShape *s) { return (int64_t)s->key_dim * s->value_dim; }
static int32_t group_of(const StateShape *s) { return s->heads / s->key_heads; }

/* S becomes a S + k uᵀ; `to` may be S. [key_dim, value_dim] */
static void write(const StateShape *shape, const float *state, const float *k, const float *u, float a,
                  float *to) {
    Lanes left = all(a);
    for (int32_t i = 0; i < shape->key_dim; i++, state += shape->value_dim, to += shape->value_dim) {
        Lanes key = all(k[i]);
        for (int32_t v = 0; v < shape->value_dim; v += LANES)
            store(to + v, fma(key, load(u + v), left * load(state + v)));
    }
}

/* Sᵀ k and Sᵀ q. [value_dim] each */
INLINE void read_columns(const StateShape *shape, const float *state, const float *k, const float *q,
                         float *by_key, float *by_query, int vectors) {
    Lanes at_key[BESIDE], at_query[BESIDE];
    for (int v = 0; v < vectors; v++) at_key[v] = at_query[v] = (Lanes){0};
    for (int32_t i = 0; i < shape->key_dim; i++, state += shape->value_dim)
        for (int v = 0; v < vectors; v++) {
            Lanes s = load(state + v * LANES);
            at_key[v] = fma(s, all(k[i]), at_key[v]);
            at_query[v] = fma(s, all(q[i]), at_query[v]);
        }
    for (int v = 0; v < vectors; v++) {
        store(by_key + v * LANES, at_key[v]);
        store(by_query + v * LANES, at_query[v]);
    }
}

static void read_state(const StateShape *shape, const float *state, const float *k, const float *q,
                       float *by_key, float *by_query) {
    int32_t v = 0, step = BESIDE * LANES;
    for (; v + step <= shape->value_dim; v += step)
        read_columns(shape, state + v, k, q, by_key + v, by_query + v, BESIDE);
    for (; v < shape->value_dim; v += LANES)
        read_columns(shape, state + v, k, q, by_key + v, by_query + v, 1);
}

INLINE float one(Lanes x) { return x[0]; }
static float power(float x) { return one(exponential(all(x))); }

/* log(1 + e^x) = max(x, 0) + log(1 + e^−|x|), and log(1 + y) = 2 artanh(y / (2 + y)). */
static float softplus(float x) {
    float y = power(x > 0 ? -x : x), z = y / (2.0f + y), square = z * z;
    float series = 1.0f / 13 + square * (1.0f / 15);
    for (int32_t n = 11; n > 0; n -= 2) series = 1.0f / (float)n + square * series;
    return (x > 0 ? x : 0.0f) + 2.0f * z * series;
}

/* What a piece works with: one key head of one sequence. */
typedef struct {
    const DeltaNet *net;
    const Recurrent *of;
    int32_t key_head;
    float *q, *k, *v, *by_key, *by_query, *update; /* of one row and head */
    float *stack; /* states of a path's rows. [depth, group, key_dim, value_dim] */
    int32_t *child, *next; /* of each row its first child, and who comes after it; −1 for none */
} Part;

static int64_t padded(int64_t count) { return (count + LANES - 1) / LANES * LANES; }

static int64_t row_floats(const StateShape *s) { return 2 * padded(s->key_dim) + 4 * padded(s->value_dim); }

int64_t recurrence_scratch(const StateShape *shape, int32_t rows) {
    int64_t deepest = rows < MOST_STEPS ? rows : MOST_STEPS;
    return row_floats(shape) + 2 * padded(rows) + deepest * group_of(shape) * state_size(shape);
}

static void set_out(Part *part, float *scratch) {
    const StateShape *s = &part->of->states->shape;
    part->q = scratch;
    part->k = part->q + padded(s->key_dim);
    part->v = part->k + padded(s->key_dim);
    part->by_key = part->v + padded(s->value_dim);
    part->by_query = part->by_key + padded(s->value_dim);
    part->update = part->by_query + padded(s->value_dim);
    part->child = (int32_t *)(part->update + padded(s->value_dim));
    part->next = part->child + padded(part->of->rows->rows);
    part->stack = (float *)(part->next + padded(part->of->rows->rows));
}

static int64_t row_width(const StateShape *s) { return s->channels + (int64_t)s->heads * s->value_dim; }

/* The layer's part of what lies layer by layer. */
static float *of_layer(const Part *part, float *from, int64_t size) { return from + part->net->place * size; }

static float *tail_of(const Part *part) {
    const StateShape *s = &part->of->states->shape;
    return of_layer(part, part->of->states->tail, (int64_t)(s->conv_width - 1) * s->channels);
}

/* The input of the convolution `back` rows before a row on its path. */
static const float *input_of(const Part *part, int32_t row, int32_t back) {
    const StateShape *s = &part->of->states->shape;
    while (back > 0 && row >= 0) row = part->of->rows->parents[row], back--;
    if (row >= 0) return part->of->projected + row * row_width(s);
    return tail_of(part) + (int64_t)(s->conv_width - 2 - back) * s->channels;
}

/* SiLU of some channels' convolution at a row. */
static void convolve(const Part *part, int32_t row, int32_t from, int32_t count, float *to) {
    const StateShape *s = &part->of->states->shape;
    for (int32_t t = 0; t < s->conv_width; t++) {
        const float *x = input_of(part, row, s->conv_width - 1 - t) + from;
        const float *weight = part->net->conv + (int64_t)t * s->channels + from;
        for (int32_t i = 0; i < count; i += LANES)
            store(to + i, fma(load(x + i), load(weight + i), t ? load(to + i) : (Lanes){0}));
    }
    for (int32_t i = 0; i < count; i += LANES) store(to + i, silu(load(to + i)));
}

static float squares(const float *x, int32_t size) {
    Lanes total = {0};
    for (int32_t i = 0; i < size; i += LANES) total = fma(load(x + i), load(x + i), total);
    return sum(total);
}

static float dot(const float *x, const float *y, int32_t size) {
    Lanes total = {0};
    for (int32_t i = 0; i < size; i += LANES) total = fma(load(x + i), load(y + i), total);
    return sum(total);
}

static void scale(float *x, int32_t size, float by) {
    for (int32_t i = 0; i < size; i += LANES) store(x + i, load(x + i) * by);
}

/* The last rows of decided ones leave their inputs behind. */
static void keep_inputs(const Part *part, int32_t from, int32_t count) {
    const StateShape *s = &part->of->states->shape;
    int32_t rows = part->of->rows->rows, width = s->conv_width - 1;
    float *steps = of_layer(part, part->of->states->inputs, (int64_t)part->of->states->step_rows * s->channels);
    int32_t first = part->of->decided ? rows - 1 : 0;
    for (int32_t r = first; r < rows; r++)
        __builtin_memcpy(steps + (int64_t)(r - first) * s->channels + from, input_of(part, r, 0) + from,
                         (size_t)count * sizeof(float));
    if (!part->of->decided || rows < 2) return;
    /* The new tail ends with the row before the last; each place is read before it is written. */
    for (int32_t t = 0; t < width; t++)
        __builtin_memmove(tail_of(part) + (int64_t)t * s->channels + from,
                          input_of(part, rows - 2, width - 1 - t) + from, (size_t)count * sizeof(float));
}

/* Queries and keys of a row: convolved, of length one, queries scaled. */
static void prepare(const Part *part, int32_t row) {
    const StateShape *s = &part->of->states->shape;
    int32_t size = s->key_dim, keys = s->key_heads * size, at = part->key_head * size;
    convolve(part, row, at, size, part->q);
    convolve(part, row, keys + at, size, part->k);
    float tiny = 1.0f / L2_EPS_INVERSE;
    scale(part->q, size, 1.0f / __builtin_sqrtf((squares(part->q, size) + tiny) * (float)size));
    scale(part->k, size, 1.0f / __builtin_sqrtf(squares(part->k, size) + tiny));
}

/* Where the head's part of `mixed` lies. */
static int64_t place_of(const Part *part, int32_t head) {
    const StateShape *s = &part->of->states->shape;
    if (!part->net->tiles) return head;
    int32_t group = group_of(s);
    return (int64_t)(head % group) * s->key_heads + head / group;
}

/* One head of a row: reads the state before it, and says what it would write there.
   Returns how much is left of that state. */
static float step(const Part *part, int32_t row, int32_t head, const float *state) {
    const StateShape *s = &part->of->states->shape;
    const DeltaNet *net = part->net;
    const float *gates = part->of->gates + (int64_t)row * 2 * s->heads;
    int32_t size = s->value_dim, values = 2 * s->key_heads * s->key_dim;
    float beta = one(sigmoid(all(gates[head])));
    float decay = net->rate[head] * softplus(gates[s->heads + head] + net->bias[head]);
    float a = power(decay), overlap = dot(part->k, part->q, s->key_dim);
    convolve(part, row, values + head * size, size, part->v);
    read_state(s, state, part->k, part->q, part->by_key, part->by_query);
    for (int32_t i = 0; i < size; i += LANES) {
        Lanes u = beta * (load(part->v + i) - a * load(part->by_key + i));
        store(part->update + i, u);
        store(part->by_query + i, fma(all(overlap), u, a * load(part->by_query + i)));
    }
    const float *gate = part->of->projected + row * row_width(s) + s->channels + (int64_t)head * size;
    float *to = part->of->mixed + ((int64_t)row * s->heads + place_of(part, head)) * size;
    float by = 1.0f / __builtin_sqrtf(squares(part->by_query, size) / (float)size + net->eps);
    for (int32_t i = 0; i < size; i += LANES)
        store(to + i, load(part->by_query + i) * by * load(net->norm + i) * silu(load(gate + i)));
    const States *states = part->of->states;
    int32_t first = part->of->decided ? part->of->rows->rows - 1 : 0;
    if (row < first) return a;
    int64_t at = (int64_t)net->place * states->step_rows + row - first;
    __builtin_memcpy(states->updates + (at * s->heads + head) * size, part->update, (size_t)size * sizeof(float));
    states->decays[at * s->heads + head] = decay;
    if (head % group_of(s) == 0)
        __builtin_memcpy(states->keys + (at * s->key_heads + part->key_head) * s->key_dim, part->k,
                         (size_t)s->key_dim * sizeof(float));
    return a;
}

static float *committed_state(const Part *part, int32_t head) {
    const StateShape *s = &part->of->states->shape;
    return of_layer(part, part->of->states->state, s->heads * state_size(s)) + head * state_size(s);
}

/* Of each row the first child, and its next sibling; then who comes next on a way through all that
   has every row directly after a row of the path to it. */
static int32_t order(const Part *part) {
    int32_t rows = part->of->rows->rows, root = -1;
    const int32_t *parents = part->of->rows->parents;
    for (int32_t r = 0; r < rows; r++) part->child[r] = -1;
    for (int32_t r = rows - 1; r >= 0; r--) {
        int32_t *first = parents[r] < 0 ? &root : part->child + parents[r];
        part->next[r] = *first;
        *first = r;
    }
    return root;
}

static int32_t after(const Part *part, int32_t row) {
    if (part->child[row] >= 0) return part->child[row];
    while (row >= 0 && part->next[row] < 0) row = part->of->rows->parents[row];
    return row < 0 ? -1 : part->next[row];
}

static void drafted(const Part *part) {
    const StateShape *s = &part->of->states->shape;
    int32_t group = group_of(s), head = part->key_head * group;
    int64_t size = state_size(s), level = group * size;
    for (int32_t r = order(part); r >= 0; r = after(part, r)) {
        int32_t depth = part->of->rows->depths[r];
        prepare(part, r);
        for (int32_t h = 0; h < group; h++) {
            const float *state =
                depth ? part->stack + (depth - 1) * level + h * size : committed_state(part, head + h);
            float a = step(part, r, head + h, state);
            if (part->child[r] >= 0)
                write(s, state, part->k, part->update, a, part->stack + depth * level + h * size);
        }
    }
}

static void decided(const Part *part) {
    const StateShape *s = &part->of->states->shape;
    int32_t group = group_of(s), head = part->key_head * group, rows = part->of->rows->rows;
    for (int32_t r = 0; r < rows; r++) {
        prepare(part, r);
        for (int32_t h = 0; h < group; h++) {
            float *state = committed_state(part, head + h);
            float a = step(part, r, head + h, state);
            if (r < rows - 1) write(s, state, part->k, part->update, a, state);
        }
    }
}

typedef struct {
    const DeltaNet *net;
    const Recurrent *sequences;
    int32_t key_heads;
    float *scratch;
    int64_t scratch_size;
} Job;

static void piece(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    Part part = {.net = job->net, .of = job->sequences + index / job->key_heads, .key_head = index % job->key_heads};
    set_out(&part, job->scratch + worker * job->scratch_size);
    if (part.of->decided)
        decided(&part);
    else
        drafted(&part);
    const StateShape *s = &part.of->states->shape;
    int32_t size = s->key_dim, keys = s->key_heads * size, values = group_of(s) * s->value_dim;
    keep_inputs(&part, part.key_head * size, size);
    keep_inputs(&part, keys + part.key_head * size, size);
    keep_inputs(&part, 2 * keys + part.key_head * values, values);
}

void recur(Pool *pool, const DeltaNet *net, const Recurrent *sequences, int32_t num_sequences,
           float *scratch, int64_t scratch_size) {
    int32_t key_heads = sequences->states->shape.key_heads;
    Job job = {net, sequences, key_heads, scratch, scratch_size};
    share(pool, piece, &job, num_sequences * key_heads);
}

typedef struct {
    const States *states;
    int32_t count;
} Settling;

/* One head of one layer. */
static void settle_head(void *context, int32_t index, int32_t worker) {
    const Settling *job = context;
    const States *all_states = job->states;
    const StateShape *s = &all_states->shape;
    int32_t layer = index / s->heads, head = index % s->heads;
    float *state = all_states->state + index * state_size(s);
    (void)worker;
    for (int32_t r = 0; r < job->count; r++) {
        int64_t at = (int64_t)layer * all_states->step_rows + r;
        const float *k = all_states->keys + (at * s->key_heads + head / group_of(s)) * s->key_dim;
        const float *u = all_states->updates + (at * s->heads + head) * s->value_dim;
        write(s, state, k, u, power(all_states->decays[at * s->heads + head]), state);
    }
}

static void settle_tail(const States *states, int32_t layer, int32_t count) {
    const StateShape *s = &states->shape;
    int32_t width = s->conv_width - 1, kept = count < width ? width - count : 0;
    size_t row = (size_t)s->channels * sizeof(float);
    if (width == 0) return; /* there is no tail */
    float *tail = states->tail + (int64_t)layer * width * s->channels;
    const float *inputs = states->inputs + (int64_t)layer * states->step_rows * s->channels;
    __builtin_memmove(tail, tail + (int64_t)(width - kept) * s->channels, kept * row);
    __builtin_memcpy(tail + (int64_t)kept * s->channels,
                     inputs + (int64_t)(count - (width - kept)) * s->channels, (width - kept) * row);
}

void settle(Pool *pool, const States *states, int32_t count) {
    Settling job = {states, count};
    if (count == 0) return;
    if (states->shape.heads) share(pool, settle_head, &job, states->layers * states->shape.heads);
    for (int32_t l = 0; l < states->layers; l++) settle_tail(states, l, count);
}
