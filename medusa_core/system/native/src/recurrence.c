#include "recurrence.h"

#include <stddef.h>

#include "lanes.h"

#if defined(__AVX512F__)
enum { BESIDE = 4 }; /* vectors of a state's columns that are summed together, each twice */
#else
enum { BESIDE = 2 };
#endif
enum { L2_EPS_INVERSE = 1000000 };
enum { HEADS_EACH = 4 };   /* of a key head, in a piece of work: they share queries and keys */
enum { ROWS_EACH = 8 };    /* in a piece of what follows */
enum { VECTORS_EACH = 8 }; /* of channels, likewise */

static int64_t state_size(const StateShape *s) { return (int64_t)s->key_dim * s->value_dim; }
static int32_t group_of(const StateShape *s) { return s->heads / s->key_heads; }
static int32_t pieces_of(int32_t count, int32_t each) { return (count + each - 1) / each; }

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

/* Sᵀ q, and Sᵀ k where it is asked for. [value_dim] each */
INLINE void read_columns(const StateShape *shape, const float *state, const float *k, const float *q,
                         float *by_key, float *by_query, int vectors, int asks_key) {
    Lanes at_key[BESIDE], at_query[BESIDE];
    for (int v = 0; v < vectors; v++) at_key[v] = at_query[v] = (Lanes){0};
    for (int32_t i = 0; i < shape->key_dim; i++, state += shape->value_dim)
        for (int v = 0; v < vectors; v++) {
            Lanes s = load(state + v * LANES);
            if (asks_key) at_key[v] = fma(s, all(k[i]), at_key[v]);
            at_query[v] = fma(s, all(q[i]), at_query[v]);
        }
    for (int v = 0; v < vectors; v++) {
        if (asks_key) store(by_key + v * LANES, at_key[v]);
        store(by_query + v * LANES, at_query[v]);
    }
}

INLINE void read_state(const StateShape *shape, const float *state, const float *k, const float *q,
                       float *by_key, float *by_query, int asks_key) {
    int32_t v = 0, step = BESIDE * LANES;
    for (; v + step <= shape->value_dim; v += step)
        read_columns(shape, state + v, k, q, by_key + v, by_query + v, BESIDE, asks_key);
    for (; v < shape->value_dim; v += LANES)
        read_columns(shape, state + v, k, q, by_key + v, by_query + v, 1, asks_key);
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

/* What a piece works with: a few heads of one key head of one sequence. */
typedef struct {
    const Recurrence *net;
    const Recurrent *of;
    Inputs inputs;
    int32_t key_head, head, heads; /* the first of the heads, and how many */
    float *q, *k, *v, *by_key, *by_query, *update; /* of one row and head */
    const float *found[MOST_TAPS]; /* what the convolution of one row reads */
    float *stack; /* states of a path's rows. [depth, heads, key_dim, value_dim] */
    int32_t *child, *next; /* of each row its first child, and who comes after it; −1 for none */
} Part;

static int64_t padded(int64_t count) { return (count + LANES - 1) / LANES * LANES; }

static int64_t row_floats(const StateShape *s) { return 2 * padded(s->key_dim) + 4 * padded(s->value_dim); }

int64_t recurrence_scratch(const StateShape *shape, int32_t rows) {
    int64_t deepest = rows < MOST_STEPS ? rows : MOST_STEPS;
    int32_t heads = group_of(shape) < HEADS_EACH ? group_of(shape) : HEADS_EACH;
    return row_floats(shape) + 2 * padded(rows) + deepest * heads * state_size(shape);
}

static void set_out(Part *part, float *scratch) {
    const StateShape *s = &part->net->shape;
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

static Inputs inputs_of(const Recurrence *net, const Recurrent *of) {
    int64_t channels = net->shape.channels, place = net->place;
    InputMemory memory = {of->states->tail + place * (net->shape.conv_width - 1) * channels,
                          of->states->inputs + place * of->states->step_rows * channels};
    return (Inputs){of->rows, memory, of->projected + net->inputs_at, net->width, of->is_decided};
}

/* SiLU of some channels' convolution at the row. */
static void convolve(const Part *part, int32_t from, int32_t count, float *to) {
    for (int32_t i = 0; i < count; i += LANES)
        store(to + i, silu(convolve_vector(&part->net->conv, part->found, from + i)));
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

/* Queries and keys of a row; in a delta net of length one, queries scaled. */
static void prepare(Part *part, int32_t row) {
    const Recurrence *net = part->net;
    int32_t size = net->shape.key_dim, at = part->key_head * size;
    find_inputs(&net->conv, &part->inputs, row, part->found);
    convolve(part, net->queries_at + at, size, part->q);
    convolve(part, net->keys_at + at, size, part->k);
    if (!net->is_delta) return;
    float tiny = 1.0f / L2_EPS_INVERSE;
    scale(part->q, size, 1.0f / __builtin_sqrtf((squares(part->q, size) + tiny) * (float)size));
    scale(part->k, size, 1.0f / __builtin_sqrtf(squares(part->k, size) + tiny));
}

/* Where the head's part of `mixed` lies. */
static int64_t place_of(const Recurrence *net, int32_t head) {
    int32_t group = group_of(&net->shape);
    if (!net->tiles) return head;
    return (int64_t)(head % group) * net->shape.key_heads + head / group;
}

/* What a row would write to a head's state, and what it reads from it. */
static void correct(const Part *part, const float *state, float a, float beta) {
    const StateShape *s = &part->net->shape;
    float overlap = dot(part->k, part->q, s->key_dim);
    read_state(s, state, part->k, part->q, part->by_key, part->by_query, 1);
    for (int32_t i = 0; i < s->value_dim; i += LANES) {
        Lanes u = beta * (load(part->v + i) - a * load(part->by_key + i));
        store(part->update + i, u);
        store(part->by_query + i, fma(all(overlap), u, a * load(part->by_query + i)));
    }
}

static void add(const Part *part, const float *state, float a, float time, float skip) {
    const StateShape *s = &part->net->shape;
    float overlap = dot(part->k, part->q, s->key_dim);
    read_state(s, state, part->k, part->q, part->by_key, part->by_query, 0);
    for (int32_t i = 0; i < s->value_dim; i += LANES) {
        Lanes v = load(part->v + i), u = time * v;
        Lanes read = fma(all(overlap), u, a * load(part->by_query + i));
        store(part->update + i, u);
        store(part->by_query + i, fma(all(skip), v, read));
    }
}

/* A row's step of a head, where it is asked for. */
static void keep_step(const Part *part, int32_t row, int32_t head, float decay) {
    const StateShape *s = &part->net->shape;
    const States *states = part->of->states;
    int32_t first = part->of->is_decided ? part->of->rows->rows - 1 : 0;
    if (row < first) return;
    int64_t at = (int64_t)part->net->place * states->step_rows + row - first;
    __builtin_memcpy(states->updates + (at * s->heads + head) * s->value_dim, part->update,
                     (size_t)s->value_dim * sizeof(float));
    states->decays[at * s->heads + head] = decay;
    if (head % group_of(s) == 0)
        __builtin_memcpy(states->keys + (at * s->key_heads + part->key_head) * s->key_dim, part->k,
                         (size_t)s->key_dim * sizeof(float));
}

/* One head of a row: reads the state before it, and says what it would write there.
   Returns how much is left of that state. */
static float step(const Part *part, int32_t row, int32_t head, const float *state) {
    const Recurrence *net = part->net;
    const StateShape *s = &net->shape;
    const float *steps = part->of->steps + (int64_t)row * net->steps_width;
    float time = softplus(steps[net->steps_at + head] + net->bias[head]);
    time = time < net->least_step ? net->least_step : time > net->most_step ? net->most_step : time;
    float decay = net->rate[head] * time, a = power(decay);
    convolve(part, net->values_at + head * s->value_dim, s->value_dim, part->v);
    if (net->is_delta)
        correct(part, state, a, one(sigmoid(all(steps[head]))));
    else
        add(part, state, a, time, net->skip[head]);
    __builtin_memcpy(part->of->mixed + ((int64_t)row * s->heads + place_of(net, head)) * s->value_dim,
                     part->by_query, (size_t)s->value_dim * sizeof(float));
    keep_step(part, row, head, decay);
    return a;
}

static float *committed_state(const Part *part, int32_t head) {
    const StateShape *s = &part->net->shape;
    return part->of->states->state + ((int64_t)part->net->place * s->heads + head) * state_size(s);
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

static void drafted(Part *part) {
    const StateShape *s = &part->net->shape;
    int64_t size = state_size(s), level = part->heads * size;
    for (int32_t r = order(part); r >= 0; r = after(part, r)) {
        int32_t depth = part->of->rows->depths[r];
        prepare(part, r);
        for (int32_t h = 0; h < part->heads; h++) {
            const float *state =
                depth ? part->stack + (depth - 1) * level + h * size : committed_state(part, part->head + h);
            float a = step(part, r, part->head + h, state);
            if (part->child[r] >= 0)
                write(s, state, part->k, part->update, a, part->stack + depth * level + h * size);
        }
    }
}

static void decided(Part *part) {
    int32_t rows = part->of->rows->rows;
    for (int32_t r = 0; r < rows; r++) {
        prepare(part, r);
        for (int32_t h = part->head; h < part->head + part->heads; h++) {
            float *state = committed_state(part, h);
            float a = step(part, r, h, state);
            if (r < rows - 1) write(&part->net->shape, state, part->k, part->update, a, state);
        }
    }
}

typedef struct {
    const Recurrence *net;
    const Recurrent *sequences;
    float *scratch;
    int64_t scratch_size;
} Job;

static int32_t pieces_of_key_head(const StateShape *s) { return pieces_of(group_of(s), HEADS_EACH); }

static void piece(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    const StateShape *s = &job->net->shape;
    int32_t parts = pieces_of_key_head(s), first = index % parts * HEADS_EACH;
    int32_t left = group_of(s) - first, key_head = index / parts % s->key_heads;
    const Recurrent *of = job->sequences + index / parts / s->key_heads;
    Part part = {.net = job->net,
                 .of = of,
                 .inputs = inputs_of(job->net, of),
                 .key_head = key_head,
                 .head = key_head * group_of(s) + first,
                 .heads = left < HEADS_EACH ? left : HEADS_EACH};
    set_out(&part, job->scratch + worker * job->scratch_size);
    if (of->is_decided)
        decided(&part);
    else
        drafted(&part);
}

static void open(float *x, const float *gate, int32_t size) {
    for (int32_t i = 0; i < size; i += LANES) store(x + i, load(x + i) * silu(load(gate + i)));
}

/* Norm what a row's heads have read, and let it pass through their gates. */
static void finish_row(const Recurrence *net, const Recurrent *of, int64_t row) {
    int32_t size = net->shape.value_dim, inner = net->shape.heads * size, together = net->together;
    const float *gate = of->projected + row * net->width + net->gate_at;
    for (int32_t at = 0; at < inner; at += together) {
        float *x = of->mixed + row * inner + place_of(net, at / size) * size;
        if (net->gates_first) open(x, gate + at, together);
        if (net->norm != NULL) {
            float by = 1.0f / __builtin_sqrtf(squares(x, together) / (float)together + net->eps);
            for (int32_t i = 0; i < together; i += LANES)
                store(x + i, load(x + i) * by * load(net->norm + at + i));
        }
        if (!net->gates_first) open(x, gate + at, together);
    }
}

/* Some rows, or behind them some channels, whose inputs no row reads from the memory any more. */
static void finish_some(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    const Recurrent *of = job->sequences;
    int32_t rows = of->rows->rows, channels = job->net->shape.channels, parts = pieces_of(rows, ROWS_EACH);
    (void)worker;
    if (index < parts) {
        for (int32_t r = index * ROWS_EACH; r < rows && r < (index + 1) * ROWS_EACH; r++)
            finish_row(job->net, of, r);
        return;
    }
    Inputs inputs = inputs_of(job->net, of);
    int32_t begin = (index - parts) * VECTORS_EACH * LANES, end = begin + VECTORS_EACH * LANES;
    keep_inputs(&job->net->conv, &inputs, begin, end < channels ? end : channels);
}

void recur(Pool *pool, const Recurrence *net, const Recurrent *sequences, int32_t num_sequences,
           float *scratch, int64_t scratch_size) {
    Job job = {net, sequences, scratch, scratch_size};
    const StateShape *s = &net->shape;
    share(pool, piece, &job, num_sequences * s->key_heads * pieces_of_key_head(s));
    for (; job.sequences < sequences + num_sequences; job.sequences++) {
        int32_t of_channels = pieces_of(s->channels / LANES, VECTORS_EACH);
        share(pool, finish_some, &job, pieces_of(job.sequences->rows->rows, ROWS_EACH) + of_channels);
    }
}

typedef struct {
    const States *states;
    int32_t count;
} PendingJob;

/* One head of one layer. */
static void apply_head(void *context, int32_t index, int32_t worker) {
    const PendingJob *job = context;
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

static void apply_tail(const States *states, int32_t layer, int32_t count) {
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

void apply_pending(Pool *pool, const States *states, int32_t count) {
    PendingJob job = {states, count};
    if (count == 0) return;
    if (states->shape.heads) share(pool, apply_head, &job, states->layers * states->shape.heads);
    for (int32_t l = 0; l < states->layers; l++) apply_tail(states, l, count);
}
