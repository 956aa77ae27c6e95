#include "abi.h"
#include "activation.h"
#include "attention.h"
#include "cache.h"
#include "convolution.h"
#include "lanes.h"
#include "linear.h"
#include "pool.h"
#include "recurrence.h"

#include <stddef.h>

enum { TASK_ROWS = 8 }; /* of fewer rows a second thread would cost more than it saves */

/* Scratch memory of a pass, [rows, width] each. */
typedef struct {
    float *x, *normed, *qkv, *mixed, *dt, *other, *gate_up, *active, *per_layer, *expert_output;
    float *experts, *attention;
    uint32_t *packed;
} Buffers;

static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

/* Largest packed input row of a block's linear layers, in words. */
static int64_t widest_of(const Block *b) {
    const Linear *layers[] = {&b->qkv, &b->output,         &b->gate_up,             &b->down,
                              &b->dt,  &b->per_layer_gate, &b->per_layer_projection};
    int64_t widest = 0;
    for (int i = 0; i < 7; i++) widest = max(widest, packed_width(layers[i]));
    return widest;
}

/* Divide the scratch memory, and return the floats that it takes; NULL only counts them. */
static int64_t carve_scratch(const Decoder *d, float *scratch, int64_t rows, Buffers *buffers) {
    int64_t qkv = 0, mixed = 0, dt = 0, other = 0, inner = 0, experts = 0, widest = 0;
    for (int32_t l = 0; l < d->num_layers; l++)
        for (const Block *b = d->blocks + l; b != NULL; b = b->parallel_mixer) {
            qkv = max(qkv, b->qkv_width);
            mixed = max(mixed, b->mixer_width);
            widest = max(widest, widest_of(b));
            inner = max(inner, max(b->mlp.intermediate_size, b->per_layer_width));
            if (b->recurrence != NULL && b->recurrence->has_own_dt)
                dt = max(dt, b->recurrence->dt_width);
            if (b->parallel_mixer != NULL || b->parallel_experts != NULL) other = d->hidden_size;
            const Experts *of = b->parallel_experts != NULL ? b->parallel_experts->experts : b->experts;
            if (of != NULL)
                experts = max(experts, experts_scratch(of, d->hidden_size, (int32_t)rows));
        }
    widest = max(widest, max(max(d->hidden_size, inner), mixed));
    int64_t per_layer = 0;
    for (const Linear *part = d->per_layer_projection; part != NULL; part = part->next)
        per_layer += part->outputs;
    int64_t expert_output = experts > 0 ? d->hidden_size : 0;
    int64_t widths[] = {d->hidden_size, d->hidden_size, qkv,       mixed,         dt,    other,
                        2 * inner,      inner,          per_layer, expert_output, widest};
    float **places[] = {&buffers->x,         &buffers->normed,        &buffers->qkv,     &buffers->mixed,
                        &buffers->dt,        &buffers->other,         &buffers->gate_up, &buffers->active,
                        &buffers->per_layer, &buffers->expert_output, (float **)&buffers->packed};
    int64_t used = 0;
    for (int i = 0; i < 11; i++) {
        if (scratch != NULL) *places[i] = scratch + used;
        used += (rows * widths[i] + LANES - 1) / LANES * LANES;
    }
    if (scratch != NULL) buffers->experts = scratch + used;
    if (scratch != NULL) buffers->attention = scratch + used + experts;
    return used + experts;
}

int64_t pass_scratch(const Decoder *d, int32_t rows, int32_t length, int32_t workers) {
    Buffers buffers;
    int32_t head_dim = 0;
    int64_t per_worker = 0;
    for (int32_t l = 0; l < d->num_layers; l++)
        for (const Block *b = d->blocks + l; b != NULL; b = b->parallel_mixer) {
            head_dim = (int32_t)max(head_dim, b->head_dim);
            if (b->recurrence != NULL)
                per_worker = max(per_worker, recurrence_scratch(&b->recurrence->shape, rows));
        }
    per_worker = max(per_worker, attention_scratch(head_dim, length, rows));
    return carve_scratch(d, NULL, rows, &buffers) + workers * per_worker;
}

/* 1 / √(mean(x²) + ε); size is a multiple of LANES. */
static float norm_scale(const float *x, int32_t size, float eps) {
    Lanes squares = {0};
    for (int32_t i = 0; i < size; i += LANES) squares = fma(load(x + i), load(x + i), squares);
    return 1.0f / __builtin_sqrtf(sum(squares) / (float)size + eps);
}

/* x · weight / √(mean(x²) + ε) */
static void norm(const float *x, const float *weight, int32_t size, float eps, float *y) {
    float scale = norm_scale(x, size, eps);
    for (int32_t i = 0; i < size; i += LANES) store(y + i, load(x + i) * scale * load(weight + i));
}

static void norm_groups(float *x, const HeadNorm *of, int32_t size, float eps) {
    if (of->weight == NULL) return;
    for (int32_t i = 0; i < size; i += of->group_size) norm(x + i, of->weight, of->group_size, eps, x + i);
}

typedef struct {
    const float *x, *weight;
    int32_t size, rows;
    float eps, scale;
    float *y;
    int64_t stride;
} RowNorms;

static void norm_some(void *context, int32_t index, int32_t worker) {
    const RowNorms *job = context;
    (void)worker;
    for (int64_t r = index * TASK_ROWS; r < job->rows && r < (index + 1) * TASK_ROWS; r++)
        norm(job->x + r * job->size, job->weight, job->size, job->eps, job->y + r * job->stride);
}

/* RMSNorm of all rows into y, whose rows are `stride` floats apart. */
static void norm_rows(Pool *pool, const float *x, const float *weight, const Decoder *d, int32_t rows,
                      float *y, int64_t stride) {
    RowNorms job = {x, weight, d->hidden_size, rows, d->eps, 1.0f, y, stride};
    parallel_for(pool, norm_some, &job, (rows + TASK_ROWS - 1) / TASK_ROWS);
}

/* y += scale · x, or scale · norm(x) with a weight. */
static void add_some(void *context, int32_t index, int32_t worker) {
    const RowNorms *job = context;
    (void)worker;
    for (int64_t r = index * TASK_ROWS; r < job->rows && r < (index + 1) * TASK_ROWS; r++) {
        const float *x = job->x + r * job->size;
        float *y = job->y + r * job->size, scale = 1.0f;
        if (job->weight != NULL) scale = norm_scale(x, job->size, job->eps);
        for (int32_t i = 0; i < job->size; i += LANES) {
            Lanes half = load(x + i);
            if (job->weight != NULL) half = half * scale * load(job->weight + i);
            store(y + i, fma(half, all(job->scale), load(y + i)));
        }
    }
}

/* x += scale · half, or scale · norm(half) with a weight. */
static void add_rows(Pool *pool, const Decoder *d, const float *weight, float scale, const float *half,
                     int32_t rows, float *x) {
    RowNorms job = {half, weight, d->hidden_size, rows, d->eps, scale, x, d->hidden_size};
    parallel_for(pool, add_some, &job, (rows + TASK_ROWS - 1) / TASK_ROWS);
}

/* Add the output of half a block to the residual stream, after its post-norm if it has one. */
static void add_scaled(Pool *pool, const Decoder *d, const Norms *norms, float scale, const float *half,
                     int32_t rows, float *x) {
    add_rows(pool, d, norms->post, scale * d->residual_multiplier, half, rows, x);
}

/* Apply the output projection of half a block, and add the result to the residual stream. */
static void project_and_add(Pool *pool, const Decoder *d, const Linear *layer, const Norms *norms,
                            float scale, const float *input, int32_t rows, const Buffers *buffers,
                            float *x) {
    if (norms->post == NULL && scale * d->residual_multiplier == 1.0f) {
        linear(pool, layer, input, buffers->packed, rows, x, x);
        return;
    }
    float *half = buffers->normed; /* free again */
    linear(pool, layer, input, buffers->packed, rows, NULL, half);
    add_scaled(pool, d, norms, scale, half, rows, x);
}

/* The input of half a block, after its pre-norm if it has one. */
static const float *input_norm(Pool *pool, const Decoder *d, const Norms *norms, const float *x,
                               int32_t rows, const Buffers *buffers) {
    if (norms->pre == NULL) return x;
    norm_rows(pool, x, norms->pre, d, rows, buffers->normed, d->hidden_size);
    return buffers->normed;
}

static void embed(const Decoder *d, const Pass *pass, float *x) {
    for (int64_t r = pass->first_row; r < pass->num_rows; r++) {
        int64_t from = pass->token_ids[r] * d->hidden_size;
        float *to = x + r * d->hidden_size;
        for (int32_t i = 0; i < d->hidden_size; i += LANES) {
            Lanes vector = d->embedding_is_bf16
                               ? load_bf16((const uint16_t *)d->embedding + from + i)
                               : load((const float *)d->embedding + from + i);
            store(to + i, vector * d->embedding_multiplier);
        }
    }
}

/* RoPE: (a, b) → (a cos − b sin, b cos + a sin), times `scale`. */
static void rotate(const float *from, const float *cos_sin, int32_t size, float scale, float *to) {
    for (int32_t i = 0; i < size; i += 2) {
        float a = from[i], b = from[i + 1], cosine = cos_sin[i] * scale, sine = cos_sin[i + 1] * scale;
        to[i] = a * cosine - b * sine;
        to[i + 1] = b * cosine + a * sine;
    }
}

typedef struct {
    const Decoder *decoder;
    const Block *block;
    const Sequence *sequence;
    float *qkv;
    int32_t layer, first_row;
} QkvJob;

/* Norm and RoPE of a query or key head; keys and values are written to their cache slots. */
static void store_head(const QkvJob *job, int32_t head, int32_t r) {
    const Block *b = job->block;
    const Sequence *sequence = job->sequence;
    int32_t size = b->head_dim, heads = b->attention.num_heads, kv_head = head - heads;
    int64_t position = sequence->tree.num_committed + sequence->tree.depths[r];
    int64_t slot = sequence->tree.num_committed + r;
    float *row = job->qkv + (int64_t)r * b->qkv_width, *x = row + head * size;
    float scale = kv_head < 0 ? b->query_scale : 1.0f, eps = job->decoder->eps;
    if (kv_head >= 0) { /* values first: keys may be computed from the same input, in place */
        float deinterleaved[size], *value = row + (heads + b->num_kv_heads + kv_head) * size;
        if (b->values_are_keys) {
            value = deinterleaved;
            for (int32_t i = 0; i < size; i++) value[i] = x[i < size / 2 ? 2 * i : 2 * i - size + 1];
        }
        norm_groups(value, &b->v_norm, size, eps);
        put_value(sequence->cache, job->layer, kv_head, slot, value);
    }
    const HeadNorm *head_norm = kv_head < 0 ? &b->q_norm : &b->k_norm;
    if (head_norm->group_size == size && !head_norm->is_after_rope) norm_groups(x, head_norm, size, eps);
    if (b->rope != NULL) {
        const float *temperature = b->rope->attn_temperature_scale;
        if (kv_head < 0 && temperature != NULL) scale *= temperature[position];
        rotate(x, b->rope->cos_sin + position * size, size, head_norm->is_after_rope ? 1.0f : scale, x);
    }
    if (head_norm->is_after_rope) norm_groups(x, head_norm, size, eps);
    if (b->rope == NULL || head_norm->is_after_rope)
        for (int32_t i = 0; i < size; i += LANES) store(x + i, load(x + i) * scale);
    if (kv_head >= 0) put_key(sequence->cache, job->layer, kv_head, slot, x);
}

static void store_heads(void *context, int32_t head, int32_t worker) {
    const QkvJob *job = context;
    (void)worker;
    for (int32_t r = job->first_row; r < job->sequence->tree.num_rows; r++) store_head(job, head, r);
}

/* Norm and RoPE of a sequence's queries and keys; keys and values are written to the cache. Two slots
   may share words of the cache, so one thread computes all rows of a head. */
static void store_qkv(Pool *pool, const QkvJob *job) {
    const Block *b = job->block;
    int32_t rows = job->sequence->tree.num_rows, queries = b->attention.num_heads * b->head_dim;
    int32_t kv_heads = job->sequence->cache->layers[job->layer].is_shared ? 0 : b->num_kv_heads;
    for (int32_t r = job->first_row; r < rows; r++) {
        float *row = job->qkv + (int64_t)r * b->qkv_width;
        if (b->q_norm.group_size > b->head_dim) norm_groups(row, &b->q_norm, queries, job->decoder->eps);
        if (b->k_norm.group_size > b->head_dim && kv_heads > 0)
            norm_groups(row + queries, &b->k_norm, kv_heads * b->head_dim, job->decoder->eps);
    }
    parallel_for(rows < TASK_ROWS ? NULL : pool, store_heads, (void *)job, b->attention.num_heads + kv_heads);
}

/* Attention or short convolution of each sequence over its own cache. */
static void mix_sequences(const Decoder *d, const Pass *pass, Pool *pool, const Block *b, int32_t layer,
                          int32_t first, const Buffers *buffers) {
    int64_t before = 0;
    for (int32_t s = 0; s < pass->num_sequences; s++) {
        const Sequence *sequence = pass->sequences + s;
        const Tree *tree = &sequence->tree;
        float *qkv = buffers->qkv + before * b->qkv_width, *mixed = buffers->mixed + before * b->mixer_width;
        before += tree->num_rows;
        if (b->convolution.kernel_size > 0) {
            convolve_gated(tree->num_rows < TASK_ROWS ? NULL : pool, &b->convolution, tree,
                           sequence->is_decided, first, &sequence->cache->layers[layer].conv, qkv, mixed);
            continue;
        }
        QkvJob job = {d, b, sequence, qkv, layer, pass->first_row};
        store_qkv(pool, &job);
        attend(pool, sequence->cache, layer, &b->attention, tree, first, qkv, b->qkv_width, mixed,
               buffers->attention, attention_scratch(b->head_dim, tree->num_committed, tree->num_rows));
    }
}

/* The recurrent mixer of each sequence over its own state. */
static void recur_sequences(const Pass *pass, Pool *pool, const Block *b, const Buffers *buffers) {
    RecurrentRows sequences[pass->num_sequences];
    const float *dt = b->recurrence->has_own_dt ? buffers->dt : buffers->qkv;
    int64_t before = 0;
    for (int32_t s = 0; s < pass->num_sequences; s++) {
        const Sequence *sequence = pass->sequences + s;
        sequences[s] = (RecurrentRows){.tree = &sequence->tree,
                                       .states = sequence->states,
                                       .is_decided = sequence->is_decided,
                                       .projected = buffers->qkv + before * b->qkv_width,
                                       .dt = dt + before * b->recurrence->dt_width,
                                       .output = buffers->mixed + before * b->mixer_width};
        before += sequence->tree.num_rows;
    }
    run_recurrence(pool, b->recurrence, sequences, pass->num_sequences, buffers->attention,
                   recurrence_scratch(&b->recurrence->shape, pass->num_rows));
}

typedef struct {
    const Block *block;
    const float *projected;
    float *mixed;
    int32_t first, rows;
} GateJob;

static void gate_some(void *context, int32_t index, int32_t worker) {
    const GateJob *job = context;
    const Block *b = job->block;
    (void)worker;
    int64_t begin = job->first + index * TASK_ROWS, end = begin + TASK_ROWS;
    for (int64_t r = begin; r < job->rows && r < end; r++) {
        const float *gate = job->projected + r * b->qkv_width + b->gate_offset;
        float *mixed = job->mixed + r * b->mixer_width;
        for (int32_t i = 0; i < b->mixer_width; i += LANES)
            store(mixed + i, load(mixed + i) * sigmoid(load(gate + i)));
    }
}

/* Multiply the output of attention by the sigmoid of its gates. */
static void gate(const Pass *pass, Pool *pool, const Block *b, int32_t first, const Buffers *buffers) {
    GateJob job = {b, buffers->qkv, buffers->mixed, first, pass->num_rows};
    parallel_for(pool, gate_some, &job, (pass->num_rows - first + TASK_ROWS - 1) / TASK_ROWS);
}

/* Copy the input of a tapped layer. */
static void write_taps(const Decoder *d, const Pass *pass, int32_t layer, const float *x) {
    int64_t hidden = d->hidden_size, first = pass->first_output_row;
    for (int32_t t = 0; t < pass->num_taps; t++) {
        if (pass->taps[t] != layer) continue;
        for (int64_t r = first; r < pass->num_rows; r++)
            __builtin_memcpy(pass->hidden_states + ((r - first) * (1 + pass->num_taps) + 1 + t) * hidden,
                             x + r * hidden, (size_t)hidden * sizeof *x);
    }
}

/* Add a layer's per-layer input to the residual stream, through a gate (Gemma 4). */
static void per_layer_gate(const Decoder *d, const Pass *pass, Pool *pool, const Block *b, int32_t first,
                           const Buffers *buffers, float *x) {
    int32_t rows = pass->num_rows - first, width = b->per_layer_width;
    linear(pool, &b->per_layer_gate, x, buffers->packed, rows, NULL, buffers->gate_up);
    const float *inputs = pass->per_layer_inputs + (int64_t)first * pass->per_layer_width;
    ActivationJob job = {buffers->gate_up, inputs + b->per_layer_offset, width, pass->per_layer_width,
                         buffers->active,  width,                        rows,  d->activation};
    activate(pool, &job);
    Norms norms = {NULL, b->per_layer_norm};
    project_and_add(pool, d, &b->per_layer_projection, &norms, 1.0f, buffers->active, rows, buffers, x);
}

/* Compute a block's token mixer, up to the input of its output projection. */
static void mix_rows(const Decoder *d, const Pass *pass, Pool *pool, const Block *b, int32_t layer,
                     int32_t first, const Buffers *buffers) {
    int32_t rows = pass->num_rows - pass->first_row;
    const float *from = pass->mixer_inputs;
    if (from == NULL || layer > 0)
        from = input_norm(pool, d, &b->mixer_norms, buffers->x + (int64_t)pass->first_row * d->hidden_size,
                          rows, buffers);
    linear(pool, &b->qkv, from, buffers->packed, rows, NULL,
           buffers->qkv + (int64_t)pass->first_row * b->qkv_width);
    if (b->recurrence == NULL) {
        mix_sequences(d, pass, pool, b, layer, first, buffers);
        if (b->gate_offset) gate(pass, pool, b, first, buffers);
        return;
    }
    const float *scale = b->recurrence->input_scale;
    if (b->recurrence->has_own_dt)
        linear(pool, &b->dt, from, buffers->packed, pass->num_rows, NULL, buffers->dt);
    if (scale != NULL)
        for (int64_t r = 0; r < pass->num_rows; r++)
            for (int32_t i = 0; i < b->qkv_width; i++) buffers->qkv[r * b->qkv_width + i] *= scale[i];
    recur_sequences(pass, pool, b, buffers);
}

/* The first half of a block: a token mixer, or two of them in parallel; rows before `first` only write
   keys and values. */
static void mixer_half(const Decoder *d, const Pass *pass, Pool *pool, int32_t layer, int32_t first,
                       const Buffers *buffers) {
    const Block *b = d->blocks + layer, *other = b->parallel_mixer;
    int32_t wanted = pass->num_rows - first;
    float *x = buffers->x + (int64_t)first * d->hidden_size;
    if (other != NULL) { /* both read x, so its output is added last */
        mix_rows(d, pass, pool, other, layer, first, buffers);
        linear(pool, &other->output, buffers->mixed + (int64_t)first * other->mixer_width, buffers->packed,
               wanted, NULL, buffers->other);
    }
    mix_rows(d, pass, pool, b, layer, first, buffers);
    project_and_add(pool, d, &b->output, &b->mixer_norms, b->mixer_scale,
                    buffers->mixed + (int64_t)first * b->mixer_width, wanted, buffers, x);
    if (other != NULL)
        add_scaled(pool, d, &other->mixer_norms, other->mixer_scale, buffers->other, wanted, x);
}

/* The gate and up projections of an MLP and their activation, into `active`. */
static void activate_mlp(const Decoder *d, Pool *pool, const Block *b, const float *from, int32_t rows,
                         const Buffers *buffers) {
    int64_t stride = b->mlp.up_offset + b->mlp.intermediate_size;
    linear(pool, &b->gate_up, from, buffers->packed, rows, NULL, buffers->gate_up);
    ActivationJob job = {buffers->gate_up, buffers->gate_up + b->mlp.up_offset, stride, stride,
                         buffers->active,  b->mlp.intermediate_size,            rows,   d->activation};
    activate(pool, &job);
}

/* Experts in parallel to the MLP, each with norms of its own; output = the sum of both. */
static void run_parallel_experts(const Decoder *d, Pool *pool, const Block *b, int32_t rows,
                                 const Buffers *buffers, const float *x, float *output) {
    const ParallelExperts *of = b->parallel_experts;
    float *from = buffers->normed, *router_input = buffers->other;
    norm_rows(pool, x, of->pre_norm, d, rows, from, d->hidden_size);
    norm_rows(pool, x, of->router_norm, d, rows, router_input, d->hidden_size);
    run_experts(pool, of->experts, &d->activation, d->hidden_size, from, router_input, rows,
                buffers->experts, output);
    norm_rows(pool, output, of->post_norm, d, rows, output, d->hidden_size);
    activate_mlp(d, pool, b, input_norm(pool, d, &b->mlp_norms, x, rows, buffers), rows, buffers);
    float *half = buffers->normed; /* free again */
    linear(pool, &b->down, buffers->active, buffers->packed, rows, NULL, half);
    add_rows(pool, d, of->post_mlp_norm, 1.0f, half, rows, output);
}

/* The second half of a block: MLP or experts. */
static void mlp_half(const Decoder *d, Pool *pool, const Block *b, int32_t rows, const Buffers *buffers,
                     float *x) {
    if (b->experts == NULL && b->parallel_experts == NULL) {
        activate_mlp(d, pool, b, input_norm(pool, d, &b->mlp_norms, x, rows, buffers), rows, buffers);
        project_and_add(pool, d, &b->down, &b->mlp_norms, b->mlp_scale, buffers->active, rows, buffers, x);
        return;
    }
    float *output = buffers->expert_output;
    if (b->parallel_experts != NULL) {
        run_parallel_experts(d, pool, b, rows, buffers, x, output);
    } else {
        const float *from = input_norm(pool, d, &b->mlp_norms, x, rows, buffers);
        run_experts(pool, b->experts, &d->activation, d->hidden_size, from, from, rows, buffers->experts,
                    output);
    }
    add_scaled(pool, d, &b->mlp_norms, b->mlp_scale, output, rows, x);
}

/* Compute a block; rows before `first` only write keys and values. */
static void run_block(const Decoder *d, const Pass *pass, Pool *pool, int32_t layer, int32_t first,
                      const Buffers *buffers) {
    const Block *b = d->blocks + layer;
    int32_t wanted = pass->num_rows - first;
    float *x = buffers->x + (int64_t)first * d->hidden_size;
    if (b->mixer_width > 0) mixer_half(d, pass, pool, layer, first, buffers);
    if (b->mlp.intermediate_size > 0 || b->experts != NULL) mlp_half(d, pool, b, wanted, buffers, x);
    if (b->per_layer_width > 0) per_layer_gate(d, pass, pool, b, first, buffers, x);
    if (b->output_scale != 1.0f)
        for (int64_t i = 0; i < (int64_t)wanted * d->hidden_size; i += LANES)
            store(x + i, load(x + i) * b->output_scale);
}

/* Complete the per-layer inputs (Gemma 4): per-layer embeddings and the norm of a projection of the
   input, each with weight √½ after scaling. */
static void per_layer_inputs(const Decoder *d, const Pass *pass, Pool *pool, const Buffers *buffers) {
    int32_t width = d->per_layer_width, all_layers = pass->per_layer_width;
    float projection_scale = 1.0f / __builtin_sqrtf((float)d->hidden_size);
    float embedding_scale = __builtin_sqrtf((float)width), half = __builtin_sqrtf(0.5f);
    linear(pool, d->per_layer_projection, buffers->x, buffers->packed, pass->num_rows, NULL,
           buffers->per_layer);
    for (int64_t at = 0; at < (int64_t)pass->num_rows * all_layers; at += width) {
        float *projected = buffers->per_layer + at, *per_layer = pass->per_layer_inputs + at;
        for (int32_t i = 0; i < width; i += LANES) store(projected + i, load(projected + i) * projection_scale);
        norm(projected, d->per_layer_norm, width, d->eps, projected);
        for (int32_t i = 0; i < width; i += LANES)
            store(per_layer + i, fma(load(per_layer + i), all(embedding_scale), load(projected + i)) * half);
    }
}

void forward(const Decoder *d, const Pass *pass, Pool *pool) {
    Buffers buffers;
    set_busy(pool, 1);
    carve_scratch(d, pass->scratch, pass->num_rows, &buffers);
    for (const Sequence *s = pass->sequences; s < pass->sequences + pass->num_sequences; s++)
        if (s->num_pending) apply_pending(pool, s->states, s->num_pending);
    embed(d, pass, buffers.x);
    if (d->per_layer_projection != NULL) per_layer_inputs(d, pass, pool, &buffers);
    for (int32_t l = 0; l < d->num_layers; l++) {
        write_taps(d, pass, l, buffers.x);
        run_block(d, pass, pool, l, l == d->num_layers - 1 ? pass->first_output_row : pass->first_row, &buffers);
    }
    write_taps(d, pass, d->num_layers, buffers.x);
    int64_t first = pass->first_output_row, width = (int64_t)(1 + pass->num_taps) * d->hidden_size;
    norm_rows(pool, buffers.x + first * d->hidden_size, d->final_norm, d, (int32_t)(pass->num_rows - first),
              pass->hidden_states, width);
    set_busy(pool, 0);
}
