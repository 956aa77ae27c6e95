#include "recurrence.h"

#include "convolution.h"
#include "lanes.h"
#include "pool.h"

#include <stddef.h>

#if defined(__AVX512F__)
enum { COLUMN_VECTORS = 4 }; /* vectors of columns whose sums, by key and by query, are in registers */
#else
enum { COLUMN_VECTORS = 2 };
#endif
enum { L2_EPS_INVERSE = 1000000 };
/* Sizes of tasks: heads of a key head, which share queries and keys; rows to finish; vectors of channels. */
enum { TASK_HEADS = 4, TASK_ROWS = 8, TASK_VECTORS = 8 };

static int64_t state_size(const StateShape *s) { return (int64_t)s->key_dim * s->value_dim; }
static int32_t group_of(const StateShape *s) { return s->num_heads / s->num_key_heads; }
static int32_t num_tasks(int32_t count, int32_t each) { return (count + each - 1) / each; }

/* a S + k uᵀ; `to` may be S. [key_dim, value_dim] */
static void update_state(const StateShape *shape, const float *state, const float *k, const float *u,
                         float a, float *to) {
    Lanes decay = all(a);
    for (int32_t i = 0; i < shape->key_dim; i++, state += shape->value_dim, to += shape->value_dim) {
        Lanes key = all(k[i]);
        for (int32_t v = 0; v < shape->value_dim; v += LANES)
            store(to + v, fma(key, load(u + v), decay * load(state + v)));
    }
}

/* Sᵀ q, and with needs_key Sᵀ k. [value_dim] */
INLINE void read_columns(const StateShape *shape, const float *state, const float *k, const float *q,
                         float *by_key, float *by_query, int vectors, int needs_key) {
    Lanes at_key[COLUMN_VECTORS], at_query[COLUMN_VECTORS];
    for (int v = 0; v < vectors; v++) at_key[v] = at_query[v] = (Lanes){0};
    for (int32_t i = 0; i < shape->key_dim; i++, state += shape->value_dim)
        for (int v = 0; v < vectors; v++) {
            Lanes s = load(state + v * LANES);
            if (needs_key) at_key[v] = fma(s, all(k[i]), at_key[v]);
            at_query[v] = fma(s, all(q[i]), at_query[v]);
        }
    for (int v = 0; v < vectors; v++) {
        if (needs_key) store(by_key + v * LANES, at_key[v]);
        store(by_query + v * LANES, at_query[v]);
    }
}

INLINE void read_state(const StateShape *shape, const float *state, const float *k, const float *q,
                       float *by_key, float *by_query, int needs_key) {
    int32_t v = 0, step = COLUMN_VECTORS * LANES;
    for (; v + step <= shape->value_dim; v += step)
        read_columns(shape, state + v, k, q, by_key + v, by_query + v, COLUMN_VECTORS, needs_key);
    for (; v < shape->value_dim; v += LANES)
        read_columns(shape, state + v, k, q, by_key + v, by_query + v, 1, needs_key);
}

static float exp_of(float x) { return exponential(all(x))[0]; }

/* log(1 + e^x) = max(x, 0) + log(1 + e^−|x|), and log(1 + y) = 2 artanh(y / (2 + y)). */
static float softplus(float x) {
    float y = exp_of(x > 0 ? -x : x), z = y / (2.0f + y), square = z * z;
    float series = 1.0f / 13 + square * (1.0f / 15);
    for (int32_t n = 11; n > 0; n -= 2) series = 1.0f / (float)n + square * series;
    return (x > 0 ? x : 0.0f) + 2.0f * z * series;
}

/* A task: a few heads of one key head of one sequence. */
typedef struct {
    const Recurrence *net;
    const RecurrentRows *of;
    Inputs inputs;
    int32_t key_head, head, heads; /* the first of the heads, and how many */
    float *q, *k, *v, *by_key, *by_query, *update; /* of one row and head */
    const float *taps[MAX_KERNEL_SIZE]; /* of the convolution of one row */
    float *stack; /* states of the rows of a path. [depth, heads, key_dim, value_dim] */
    int32_t *child, *next; /* of each row the first child and the next sibling; −1 for none */
} Part;

static int64_t padded(int64_t count) { return (count + LANES - 1) / LANES * LANES; }

static int64_t row_floats(const StateShape *s) { return 2 * padded(s->key_dim) + 4 * padded(s->value_dim); }

int64_t recurrence_scratch(const StateShape *shape, int32_t rows) {
    int64_t deepest = rows < MAX_DRAFT_STEPS ? rows : MAX_DRAFT_STEPS;
    int32_t heads = group_of(shape) < TASK_HEADS ? group_of(shape) : TASK_HEADS;
    return row_floats(shape) + 2 * padded(rows) + deepest * heads * state_size(shape);
}

static void carve_task(Part *part, float *scratch) {
    const StateShape *s = &part->net->shape;
    part->q = scratch;
    part->k = part->q + padded(s->key_dim);
    part->v = part->k + padded(s->key_dim);
    part->by_key = part->v + padded(s->value_dim);
    part->by_query = part->by_key + padded(s->value_dim);
    part->update = part->by_query + padded(s->value_dim);
    part->child = (int32_t *)(part->update + padded(s->value_dim));
    part->next = part->child + padded(part->of->tree->num_rows);
    part->stack = (float *)(part->next + padded(part->of->tree->num_rows));
}

static Inputs inputs_of(const Recurrence *net, const RecurrentRows *of) {
    int64_t channels = net->shape.channels, index = net->state_index;
    ConvState memory = {of->states->conv_state + index * (net->shape.kernel_size - 1) * channels,
                          of->states->inputs + index * of->states->max_steps * channels};
    return (Inputs){of->tree, memory, of->projected + net->conv_offset, net->width, of->is_decided};
}

/* SiLU of the convolution of some channels. */
static void convolve(const Part *part, int32_t from, int32_t count, float *to) {
    for (int32_t i = 0; i < count; i += LANES)
        store(to + i, silu(convolve_vector(&part->net->conv, part->taps, from + i)));
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

/* Compute queries and keys of a row; L2-normalized in a delta net, queries scaled. */
static void compute_qk(Part *part, int32_t row) {
    const Recurrence *net = part->net;
    int32_t size = net->shape.key_dim, at = part->key_head * size;
    find_taps(&net->conv, &part->inputs, row, part->taps);
    convolve(part, net->query_offset + at, size, part->q);
    convolve(part, net->key_offset + at, size, part->k);
    if (!net->is_delta) return;
    float tiny = 1.0f / L2_EPS_INVERSE;
    scale(part->q, size, 1.0f / __builtin_sqrtf((squares(part->q, size) + tiny) * (float)size));
    scale(part->k, size, 1.0f / __builtin_sqrtf(squares(part->k, size) + tiny));
}

/* Index of a head in an output row. */
static int64_t output_index(const Recurrence *net, int32_t head) {
    int32_t group = group_of(&net->shape);
    if (!net->tiled_key_heads) return head;
    return (int64_t)(head % group) * net->shape.num_key_heads + head / group;
}

/* Update and output of a row of a delta net. */
static void delta_step(const Part *part, const float *state, float a, float beta) {
    const StateShape *s = &part->net->shape;
    float overlap = dot(part->k, part->q, s->key_dim);
    read_state(s, state, part->k, part->q, part->by_key, part->by_query, 1);
    for (int32_t i = 0; i < s->value_dim; i += LANES) {
        Lanes u = beta * (load(part->v + i) - a * load(part->by_key + i));
        store(part->update + i, u);
        store(part->by_query + i, fma(all(overlap), u, a * load(part->by_query + i)));
    }
}

/* The same of Mamba-2. */
static void mamba_step(const Part *part, const float *state, float a, float dt, float skip) {
    const StateShape *s = &part->net->shape;
    float overlap = dot(part->k, part->q, s->key_dim);
    read_state(s, state, part->k, part->q, part->by_key, part->by_query, 0);
    for (int32_t i = 0; i < s->value_dim; i += LANES) {
        Lanes v = load(part->v + i), u = dt * v;
        Lanes read = fma(all(overlap), u, a * load(part->by_query + i));
        store(part->update + i, u);
        store(part->by_query + i, fma(all(skip), v, read));
    }
}

/* Store a row's pending step of a head; of decided rows only the last one's. */
static void store_step(const Part *part, int32_t row, int32_t head, float decay) {
    const StateShape *s = &part->net->shape;
    const States *states = part->of->states;
    int32_t first = part->of->is_decided ? part->of->tree->num_rows - 1 : 0;
    if (row < first) return;
    int64_t at = (int64_t)part->net->state_index * states->max_steps + row - first;
    __builtin_memcpy(states->updates + (at * s->num_heads + head) * s->value_dim, part->update,
                     (size_t)s->value_dim * sizeof(float));
    states->decays[at * s->num_heads + head] = decay;
    if (head % group_of(s) == 0)
        __builtin_memcpy(states->keys + (at * s->num_key_heads + part->key_head) * s->key_dim, part->k,
                         (size_t)s->key_dim * sizeof(float));
}

/* Compute one head of a row from the state before it, and return the decay of that state. */
static float step(const Part *part, int32_t row, int32_t head, const float *state) {
    const Recurrence *net = part->net;
    const StateShape *s = &net->shape;
    const float *dt = part->of->dt + (int64_t)row * net->dt_width;
    float time = softplus(dt[net->dt_offset + head] + net->dt_bias[head]);
    time = time < net->min_dt ? net->min_dt : time > net->max_dt ? net->max_dt : time;
    float decay = net->decay_rate[head] * time, a = exp_of(decay);
    convolve(part, net->value_offset + head * s->value_dim, s->value_dim, part->v);
    if (net->is_delta)
        delta_step(part, state, a, sigmoid(all(dt[head]))[0]);
    else
        mamba_step(part, state, a, time, net->skip[head]);
    float *output = part->of->output + ((int64_t)row * s->num_heads + output_index(net, head)) * s->value_dim;
    __builtin_memcpy(output, part->by_query, (size_t)s->value_dim * sizeof(float));
    store_step(part, row, head, decay);
    return a;
}

static float *committed_state(const Part *part, int32_t head) {
    const StateShape *s = &part->net->shape;
    return part->of->states->state + ((int64_t)part->net->state_index * s->num_heads + head) * state_size(s);
}

/* Link the children of each row, and return the first row. */
static int32_t link_children(const Part *part) {
    int32_t rows = part->of->tree->num_rows, root = -1;
    const int32_t *parents = part->of->tree->parents;
    for (int32_t r = 0; r < rows; r++) part->child[r] = -1;
    for (int32_t r = rows - 1; r >= 0; r--) {
        int32_t *first = parents[r] < 0 ? &root : part->child + parents[r];
        part->next[r] = *first;
        *first = r;
    }
    return root;
}

/* The next row in depth-first order, so that the states of a path are a stack; −1 for none. */
static int32_t next_row(const Part *part, int32_t row) {
    if (part->child[row] >= 0) return part->child[row];
    while (row >= 0 && part->next[row] < 0) row = part->of->tree->parents[row];
    return row < 0 ? -1 : part->next[row];
}

static void run_tree(Part *part) {
    const StateShape *s = &part->net->shape;
    int64_t size = state_size(s), level = part->heads * size;
    for (int32_t r = link_children(part); r >= 0; r = next_row(part, r)) {
        int32_t depth = part->of->tree->depths[r];
        compute_qk(part, r);
        for (int32_t h = 0; h < part->heads; h++) {
            const float *state =
                depth ? part->stack + (depth - 1) * level + h * size : committed_state(part, part->head + h);
            float a = step(part, r, part->head + h, state);
            if (part->child[r] >= 0)
                update_state(s, state, part->k, part->update, a, part->stack + depth * level + h * size);
        }
    }
}

static void run_chain(Part *part) {
    int32_t rows = part->of->tree->num_rows;
    for (int32_t r = 0; r < rows; r++) {
        compute_qk(part, r);
        for (int32_t h = part->head; h < part->head + part->heads; h++) {
            float *state = committed_state(part, h);
            float a = step(part, r, h, state);
            if (r < rows - 1) update_state(&part->net->shape, state, part->k, part->update, a, state);
        }
    }
}

typedef struct {
    const Recurrence *net;
    const RecurrentRows *sequences;
    float *scratch;
    int64_t scratch_size;
} Job;

static int32_t tasks_of_key_head(const StateShape *s) { return num_tasks(group_of(s), TASK_HEADS); }

static void compute_task(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    const StateShape *s = &job->net->shape;
    int32_t parts = tasks_of_key_head(s), first = index % parts * TASK_HEADS;
    int32_t left = group_of(s) - first, key_head = index / parts % s->num_key_heads;
    const RecurrentRows *of = job->sequences + index / parts / s->num_key_heads;
    Part part = {.net = job->net,
                 .of = of,
                 .inputs = inputs_of(job->net, of),
                 .key_head = key_head,
                 .head = key_head * group_of(s) + first,
                 .heads = left < TASK_HEADS ? left : TASK_HEADS};
    carve_task(&part, job->scratch + worker * job->scratch_size);
    if (of->is_decided)
        run_chain(&part);
    else
        run_tree(&part);
}

/* x *= SiLU(gate) */
static void apply_gate(float *x, const float *gate, int32_t size) {
    for (int32_t i = 0; i < size; i += LANES) store(x + i, load(x + i) * silu(load(gate + i)));
}

/* Norm and gate an output row. */
static void finish_row(const Recurrence *net, const RecurrentRows *of, int64_t row) {
    int32_t size = net->shape.value_dim, inner = net->shape.num_heads * size;
    int32_t group_size = net->norm_group_size;
    const float *gate = of->projected + row * net->width + net->gate_offset;
    for (int32_t at = 0; at < inner; at += group_size) {
        float *x = of->output + row * inner + output_index(net, at / size) * size;
        if (net->is_gated_before_norm) apply_gate(x, gate + at, group_size);
        if (net->norm != NULL) {
            float by = 1.0f / __builtin_sqrtf(squares(x, group_size) / (float)group_size + net->eps);
            for (int32_t i = 0; i < group_size; i += LANES)
                store(x + i, load(x + i) * by * load(net->norm + at + i));
        }
        if (!net->is_gated_before_norm) apply_gate(x, gate + at, group_size);
    }
}

/* Finish some rows; the tasks after those store the inputs of channels, which no row reads any more. */
static void finish_some(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    const RecurrentRows *of = job->sequences;
    int32_t rows = of->tree->num_rows, channels = job->net->shape.channels;
    int32_t parts = num_tasks(rows, TASK_ROWS);
    (void)worker;
    if (index < parts) {
        for (int32_t r = index * TASK_ROWS; r < rows && r < (index + 1) * TASK_ROWS; r++)
            finish_row(job->net, of, r);
        return;
    }
    Inputs inputs = inputs_of(job->net, of);
    int32_t begin = (index - parts) * TASK_VECTORS * LANES, end = begin + TASK_VECTORS * LANES;
    store_inputs(&job->net->conv, &inputs, begin, end < channels ? end : channels);
}

void run_recurrence(Pool *pool, const Recurrence *net, const RecurrentRows *sequences, int32_t num_sequences,
           float *scratch, int64_t scratch_size) {
    Job job = {net, sequences, scratch, scratch_size};
    const StateShape *s = &net->shape;
    parallel_for(pool, compute_task, &job, num_sequences * s->num_key_heads * tasks_of_key_head(s));
    for (; job.sequences < sequences + num_sequences; job.sequences++) {
        int32_t of_rows = num_tasks(job.sequences->tree->num_rows, TASK_ROWS);
        int32_t of_channels = num_tasks(s->channels / LANES, TASK_VECTORS);
        parallel_for(pool, finish_some, &job, of_rows + of_channels);
    }
}

typedef struct {
    const States *states;
    int32_t count;
} PendingJob;

/* Apply the steps of one head of one layer. */
static void apply_head(void *context, int32_t index, int32_t worker) {
    const PendingJob *job = context;
    const States *all_states = job->states;
    const StateShape *s = &all_states->shape;
    int32_t layer = index / s->num_heads, head = index % s->num_heads;
    float *state = all_states->state + index * state_size(s);
    (void)worker;
    for (int32_t r = 0; r < job->count; r++) {
        int64_t at = (int64_t)layer * all_states->max_steps + r;
        const float *k = all_states->keys + (at * s->num_key_heads + head / group_of(s)) * s->key_dim;
        const float *u = all_states->updates + (at * s->num_heads + head) * s->value_dim;
        update_state(s, state, k, u, exp_of(all_states->decays[at * s->num_heads + head]), state);
    }
}

static void shift_conv_state(const States *states, int32_t layer, int32_t count) {
    const StateShape *s = &states->shape;
    int32_t width = s->kernel_size - 1, kept = count < width ? width - count : 0;
    size_t row = (size_t)s->channels * sizeof(float);
    if (width == 0) return; /* no convolution state */
    float *state = states->conv_state + (int64_t)layer * width * s->channels;
    const float *inputs = states->inputs + (int64_t)layer * states->max_steps * s->channels;
    __builtin_memmove(state, state + (int64_t)(width - kept) * s->channels, kept * row);
    __builtin_memcpy(state + (int64_t)kept * s->channels,
                     inputs + (int64_t)(count - (width - kept)) * s->channels, (width - kept) * row);
}

void apply_pending(Pool *pool, const States *states, int32_t count) {
    PendingJob job = {states, count};
    if (count == 0) return;
    if (states->shape.num_heads)
        parallel_for(pool, apply_head, &job, states->num_layers * states->shape.num_heads);
    for (int32_t l = 0; l < states->num_layers; l++) shift_conv_state(states, l, count);
}
