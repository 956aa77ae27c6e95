#include "decoder.h"

#include <stddef.h>

#include "lanes.h"

enum { ROWS_EACH = 8 };      /* of a task; waking a second thread costs more than fewer rows */

/* Scratch memory of a pass, [rows, width] each. */
typedef struct {
    float *x, *normed, *qkv, *mixed, *gates, *beside, *gate_up, *active, *per_layer, *made, *experts, *attention;
    uint32_t *packed;
} Buffers;

static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

/* Largest packed input row of a block's linear layers, in words. */
static int64_t widest_of(const Block *b) {
    const Linear *layers[] = {&b->qkv,  &b->output, &b->gate_up, &b->down,
                              &b->gates, &b->token_gate, &b->token_projection};
    int64_t widest = 0;
    for (int i = 0; i < 7; i++) widest = max(widest, packed_width(layers[i]));
    return widest;
}

/* Divide the scratch memory, and return the floats that it takes; NULL only counts them. */
static int64_t carve_scratch(const Decoder *d, float *scratch, int64_t rows, Buffers *buffers) {
    int64_t qkv = 0, mixed = 0, gates = 0, beside = 0, inner = 0, experts = 0, widest = 0;
    for (int32_t l = 0; l < d->layers; l++)
        for (const Block *b = d->blocks + l; b != NULL; b = b->beside) {
            qkv = max(qkv, b->width);
            mixed = max(mixed, b->mixed);
            widest = max(widest, widest_of(b));
            inner = max(inner, max(b->inner, b->token_width));
            if (b->recurrence != NULL && b->recurrence->steps_apart)
                gates = max(gates, b->recurrence->steps_width);
            if (b->beside != NULL || b->experts_beside != NULL) beside = d->hidden;
            const Experts *routed = b->experts_beside != NULL ? b->experts_beside->experts : b->experts;
            if (routed != NULL)
                experts = max(experts, experts_scratch(routed, d->hidden, (int32_t)rows));
        }
    widest = max(widest, max(max(d->hidden, inner), mixed));
    int64_t per_layer = 0;
    for (const Linear *part = d->token_projection; part != NULL; part = part->more)
        per_layer += part->outputs;
    int64_t made = experts > 0 ? d->hidden : 0;
    int64_t widths[] = {d->hidden, d->hidden, qkv,     mixed, gates, beside,
                        2 * inner, inner,     per_layer, made,  widest};
    float **places[] = {&buffers->x,       &buffers->normed, &buffers->qkv,     &buffers->mixed,
                        &buffers->gates,   &buffers->beside, &buffers->gate_up, &buffers->active,
                        &buffers->per_layer, &buffers->made,   (float **)&buffers->packed};
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
    int64_t each = 0;
    for (int32_t l = 0; l < d->layers; l++)
        for (const Block *b = d->blocks + l; b != NULL; b = b->beside) {
            head_dim = (int32_t)max(head_dim, b->head_dim);
            if (b->recurrence != NULL)
                each = max(each, recurrence_scratch(&b->recurrence->shape, rows));
        }
    each = max(each, attention_scratch(head_dim, length, rows));
    return carve_scratch(d, NULL, rows, &buffers) + workers * each;
}

/* 1 / √(mean(x²) + ε); size is a multiple of the lanes. */
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

static void norm_parts(float *x, const PartNorm *of, int32_t size, float eps) {
    if (of->weight == NULL) return;
    for (int32_t i = 0; i < size; i += of->together) norm(x + i, of->weight, of->together, eps, x + i);
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
    for (int64_t r = index * ROWS_EACH; r < job->rows && r < (index + 1) * ROWS_EACH; r++)
        norm(job->x + r * job->size, job->weight, job->size, job->eps, job->y + r * job->stride);
}

/* RMSNorm of all rows into y, whose rows are `stride` floats apart. */
static void norm_rows(Pool *pool, const float *x, const float *weight, const Decoder *d, int32_t rows,
                      float *y, int64_t stride) {
    RowNorms job = {x, weight, d->hidden, rows, d->eps, 1.0f, y, stride};
    share(pool, norm_some, &job, (rows + ROWS_EACH - 1) / ROWS_EACH);
}

/* y += scale · x, or scale · norm(x) with a weight. */
static void add_some(void *context, int32_t index, int32_t worker) {
    const RowNorms *job = context;
    (void)worker;
    for (int64_t r = index * ROWS_EACH; r < job->rows && r < (index + 1) * ROWS_EACH; r++) {
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
    RowNorms job = {half, weight, d->hidden, rows, d->eps, scale, x, d->hidden};
    share(pool, add_some, &job, (rows + ROWS_EACH - 1) / ROWS_EACH);
}

/* Add the output of half a block to the residual stream, after its post-norm if it has one. */
static void add_scaled(Pool *pool, const Decoder *d, const Norms *norms, float scale, const float *half,
                     int32_t rows, float *x) {
    add_rows(pool, d, norms->behind, scale * d->residual_scale, half, rows, x);
}

/* Apply the output projection of half a block, and add the result to the residual stream. */
static void project_and_add(Pool *pool, const Decoder *d, const Linear *layer, const Norms *norms, float scale,
                     const float *made, int32_t rows, const Buffers *buffers, float *x) {
    if (norms->behind == NULL && scale * d->residual_scale == 1.0f) {
        linear(pool, layer, made, buffers->packed, rows, x, x);
        return;
    }
    float *half = buffers->normed; /* free again */
    linear(pool, layer, made, buffers->packed, rows, NULL, half);
    add_scaled(pool, d, norms, scale, half, rows, x);
}

/* The input of half a block, after its pre-norm if it has one. */
static const float *input_norm(Pool *pool, const Decoder *d, const Norms *norms, const float *x,
                             int32_t rows, const Buffers *buffers) {
    if (norms->before == NULL) return x;
    norm_rows(pool, x, norms->before, d, rows, buffers->normed, d->hidden);
    return buffers->normed;
}

static void embed(const Decoder *d, const Pass *pass, float *x) {
    for (int64_t r = 0; r < pass->rows; r++) {
        int64_t from = pass->token_ids[r] * d->hidden;
        float *to = x + r * d->hidden;
        for (int32_t i = 0; i < d->hidden; i += LANES) {
            Lanes vector = d->embedding_is_half
                               ? load_halves((const uint16_t *)d->embedding + from + i)
                               : load((const float *)d->embedding + from + i);
            store(to + i, vector * d->embedding_scale);
        }
    }
}

/* RoPE: (a, b) → (a cos − b sin, b cos + a sin), times `scale`. */
static void rotate(const float *from, const float *turns, int32_t size, float scale, float *to) {
    for (int32_t i = 0; i < size; i += 2) {
        float a = from[i], b = from[i + 1], cosine = turns[i] * scale, sine = turns[i + 1] * scale;
        to[i] = a * cosine - b * sine;
        to[i + 1] = b * cosine + a * sine;
    }
}

typedef struct {
    const Decoder *decoder;
    const Block *block;
    const Sequence *sequence;
    float *qkv;
    int32_t layer;
} PlaceJob;

/* Norm and RoPE of a query or key head; keys and values are written to their cache slots. */
static void place_head(const PlaceJob *job, int32_t head, int32_t r) {
    const Block *b = job->block;
    const Sequence *sequence = job->sequence;
    int32_t size = b->head_dim, heads = b->attention.heads, kv_head = head - heads;
    int64_t position = sequence->rows.length + sequence->rows.depths[r];
    int64_t slot = sequence->rows.length + r;
    float *row = job->qkv + (int64_t)r * b->width, *x = row + head * size;
    float scale = kv_head < 0 ? b->query_scale : 1.0f, eps = job->decoder->eps;
    if (kv_head >= 0) { /* values first: keys may be computed from the same input, in place */
        float unpaired[size], *value = row + (heads + b->kv_heads + kv_head) * size;
        if (b->keys_are_values) {
            value = unpaired;
            for (int32_t i = 0; i < size; i++) value[i] = x[i < size / 2 ? 2 * i : 2 * i - size + 1];
        }
        norm_parts(value, &b->v_norm, size, eps);
        put_value(sequence->cache, job->layer, kv_head, slot, value);
    }
    const PartNorm *head_norm = kv_head < 0 ? &b->q_norm : &b->k_norm;
    if (head_norm->together == size && !head_norm->is_behind) norm_parts(x, head_norm, size, eps);
    if (b->positions != NULL) {
        const float *growth = b->positions->growth;
        if (kv_head < 0 && growth != NULL) scale *= growth[position];
        rotate(x, b->positions->turns + position * size, size, head_norm->is_behind ? 1.0f : scale, x);
    }
    if (head_norm->is_behind) norm_parts(x, head_norm, size, eps);
    if (b->positions == NULL || head_norm->is_behind)
        for (int32_t i = 0; i < size; i += LANES) store(x + i, load(x + i) * scale);
    if (kv_head >= 0) put_key(sequence->cache, job->layer, kv_head, slot, x);
}

static void place_heads(void *context, int32_t head, int32_t worker) {
    const PlaceJob *job = context;
    (void)worker;
    for (int32_t r = 0; r < job->sequence->rows.rows; r++) place_head(job, head, r);
}

/* Norm and RoPE of a sequence's queries and keys; keys and values are written to the cache. Two slots
   may share words, so that one thread computes all rows of a head. */
static void place(Pool *pool, const PlaceJob *job) {
    const Block *b = job->block;
    int32_t rows = job->sequence->rows.rows, queries = b->attention.heads * b->head_dim;
    int32_t kv_heads = job->sequence->cache->layers[job->layer].is_shared ? 0 : b->kv_heads;
    for (int32_t r = 0; r < rows; r++) {
        float *row = job->qkv + (int64_t)r * b->width;
        if (b->q_norm.together > b->head_dim) norm_parts(row, &b->q_norm, queries, job->decoder->eps);
        if (b->k_norm.together > b->head_dim && kv_heads > 0)
            norm_parts(row + queries, &b->k_norm, kv_heads * b->head_dim, job->decoder->eps);
    }
    share(rows < ROWS_EACH ? NULL : pool, place_heads, (void *)job, b->attention.heads + kv_heads);
}

/* Attention or short convolution of each sequence over its own cache. */
static void mix_sequences(const Decoder *d, const Pass *pass, Pool *pool, const Block *b, int32_t layer,
                int32_t first, const Buffers *buffers) {
    int64_t before = 0;
    for (int32_t s = 0; s < pass->num_sequences; s++) {
        const Sequence *sequence = pass->sequences + s;
        const Rows *rows = &sequence->rows;
        float *qkv = buffers->qkv + before * b->width, *mixed = buffers->mixed + before * b->mixed;
        before += rows->rows;
        if (b->convolution.width > 0) {
            convolve_gated(rows->rows < ROWS_EACH ? NULL : pool, &b->convolution, rows,
                           sequence->is_decided, first, &sequence->cache->layers[layer].memory, qkv, mixed);
            continue;
        }
        PlaceJob job = {d, b, sequence, qkv, layer};
        place(pool, &job);
        attend(pool, sequence->cache, layer, &b->attention, rows, first, qkv, b->width, mixed,
               buffers->attention, attention_scratch(b->head_dim, rows->length, rows->rows));
    }
}

/* The recurrent mixer of each sequence over its own state. Time steps are in `gates` or in `qkv`. */
static void recur_all(const Pass *pass, Pool *pool, const Block *b, const Buffers *buffers) {
    Recurrent sequences[pass->num_sequences];
    const float *steps = b->recurrence->steps_apart ? buffers->gates : buffers->qkv;
    int64_t before = 0;
    for (int32_t s = 0; s < pass->num_sequences; s++) {
        const Sequence *sequence = pass->sequences + s;
        sequences[s] = (Recurrent){&sequence->rows,
                                   sequence->states,
                                   sequence->is_decided,
                                   buffers->qkv + before * b->width,
                                   steps + before * b->recurrence->steps_width,
                                   buffers->mixed + before * b->mixed};
        before += sequence->rows.rows;
    }
    recur(pool, b->recurrence, sequences, pass->num_sequences, buffers->attention,
          recurrence_scratch(&b->recurrence->shape, pass->rows));
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
    for (int64_t r = job->first + index * ROWS_EACH; r < job->rows && r < job->first + (index + 1) * ROWS_EACH;
         r++) {
        const float *gate = job->projected + r * b->width + b->gates_at;
        float *mixed = job->mixed + r * b->mixed;
        for (int32_t i = 0; i < b->mixed; i += LANES) store(mixed + i, load(mixed + i) * sigmoid(load(gate + i)));
    }
}

/* Multiply the output of attention by the sigmoid of its gates. */
static void gate(const Pass *pass, Pool *pool, const Block *b, int32_t first, const Buffers *buffers) {
    GateJob job = {b, buffers->qkv, buffers->mixed, first, pass->rows};
    share(pool, gate_some, &job, (pass->rows - first + ROWS_EACH - 1) / ROWS_EACH);
}

/* Copy the input of a tapped layer. */
static void write_taps(const Decoder *d, const Pass *pass, int32_t layer, const float *x) {
    int64_t hidden = d->hidden, first = pass->first_wanted;
    for (int32_t t = 0; t < pass->num_taps; t++) {
        if (pass->taps[t] != layer) continue;
        for (int64_t r = first; r < pass->rows; r++)
            __builtin_memcpy(pass->hidden + ((r - first) * (1 + pass->num_taps) + 1 + t) * hidden,
                             x + r * hidden, (size_t)hidden * sizeof *x);
    }
}

/* Add a layer's per-layer input to the residual stream, through a gate (Gemma 4). */
static void per_layer_gate(const Decoder *d, const Pass *pass, Pool *pool, const Block *b, int32_t first,
                   const Buffers *buffers, float *x) {
    int32_t rows = pass->rows - first, width = b->token_width;
    linear(pool, &b->token_gate, x, buffers->packed, rows, NULL, buffers->gate_up);
    const float *per_layer = pass->per_layer + (int64_t)first * pass->per_layer_width + b->token_at;
    Activation job = {buffers->gate_up, per_layer, width, pass->per_layer_width,
                       buffers->active,  width,   rows,  d->gate};
    activate(pool, &job);
    Norms norms = {NULL, b->token_norm};
    project_and_add(pool, d, &b->token_projection, &norms, 1.0f, buffers->active, rows, buffers, x);
}

/* Compute a block's token mixer, up to the input of its output projection. */
static void mix_rows(const Decoder *d, const Pass *pass, Pool *pool, const Block *b, int32_t layer,
                     int32_t first, const Buffers *buffers) {
    const float *from = input_norm(pool, d, &b->attention_norms, buffers->x, pass->rows, buffers);
    linear(pool, &b->qkv, from, buffers->packed, pass->rows, NULL, buffers->qkv);
    if (b->recurrence == NULL) {
        mix_sequences(d, pass, pool, b, layer, first, buffers);
        if (b->gates_at) gate(pass, pool, b, first, buffers);
        return;
    }
    const float *factors = b->recurrence->factors;
    if (b->recurrence->steps_apart)
        linear(pool, &b->gates, from, buffers->packed, pass->rows, NULL, buffers->gates);
    if (factors != NULL)
        for (int64_t r = 0; r < pass->rows; r++)
            for (int32_t i = 0; i < b->width; i++) buffers->qkv[r * b->width + i] *= factors[i];
    recur_all(pass, pool, b, buffers);
}

/* The first half of a block: a token mixer, or two of them in parallel; rows before `first` only write
   keys and values. */
static void attention_half(const Decoder *d, const Pass *pass, Pool *pool, int32_t layer, int32_t first,
                 const Buffers *buffers) {
    const Block *b = d->blocks + layer, *other = b->beside;
    int32_t wanted = pass->rows - first;
    float *x = buffers->x + (int64_t)first * d->hidden;
    if (other != NULL) { /* both read x, so its output is added last */
        mix_rows(d, pass, pool, other, layer, first, buffers);
        linear(pool, &other->output, buffers->mixed + (int64_t)first * other->mixed, buffers->packed,
               wanted, NULL, buffers->beside);
    }
    mix_rows(d, pass, pool, b, layer, first, buffers);
    project_and_add(pool, d, &b->output, &b->attention_norms, b->mixer_scale,
             buffers->mixed + (int64_t)first * b->mixed, wanted, buffers, x);
    if (other != NULL)
        add_scaled(pool, d, &other->attention_norms, other->mixer_scale, buffers->beside, wanted, x);
}

/* The gate and up projections of an MLP and their activation, into `active`. */
static void activate_mlp(const Decoder *d, Pool *pool, const Block *b, const float *from, int32_t rows,
                         const Buffers *buffers) {
    int64_t stride = b->factor_at + b->inner;
    linear(pool, &b->gate_up, from, buffers->packed, rows, NULL, buffers->gate_up);
    Activation job = {buffers->gate_up, buffers->gate_up + b->factor_at, stride, stride,
                      buffers->active,  b->inner,                        rows,   d->gate};
    activate(pool, &job);
}

/* Experts in parallel to the MLP, each with norms of its own; made = the sum of both. */
static void run_experts_beside(const Decoder *d, Pool *pool, const Block *b, int32_t rows, const Buffers *buffers,
                       const float *x, float *made) {
    const ExpertsBeside *of = b->experts_beside;
    float *from = buffers->normed, *routed = buffers->beside;
    norm_rows(pool, x, of->pre_norm, d, rows, from, d->hidden);
    norm_rows(pool, x, of->router_norm, d, rows, routed, d->hidden);
    run_experts(pool, of->experts, &d->gate, d->hidden, from, routed, rows, buffers->experts, made);
    norm_rows(pool, made, of->post_norm, d, rows, made, d->hidden);
    activate_mlp(d, pool, b, input_norm(pool, d, &b->mlp_norms, x, rows, buffers), rows, buffers);
    float *half = buffers->normed; /* free again */
    linear(pool, &b->down, buffers->active, buffers->packed, rows, NULL, half);
    add_rows(pool, d, of->post_mlp_norm, 1.0f, half, rows, made);
}

/* The second half of a block: MLP or experts. */
static void pass_mlp(const Decoder *d, Pool *pool, const Block *b, int32_t rows, const Buffers *buffers,
                     float *x) {
    if (b->experts == NULL && b->experts_beside == NULL) {
        activate_mlp(d, pool, b, input_norm(pool, d, &b->mlp_norms, x, rows, buffers), rows, buffers);
        project_and_add(pool, d, &b->down, &b->mlp_norms, b->mlp_scale, buffers->active, rows, buffers, x);
        return;
    }
    float *made = buffers->made;
    if (b->experts_beside != NULL) {
        run_experts_beside(d, pool, b, rows, buffers, x, made);
    } else {
        const float *from = input_norm(pool, d, &b->mlp_norms, x, rows, buffers);
        run_experts(pool, b->experts, &d->gate, d->hidden, from, from, rows, buffers->experts, made);
    }
    add_scaled(pool, d, &b->mlp_norms, b->mlp_scale, made, rows, x);
}

/* Compute a block; rows before `first` only write keys and values. */
static void run_block(const Decoder *d, const Pass *pass, Pool *pool, int32_t layer, int32_t first,
                      const Buffers *buffers) {
    const Block *b = d->blocks + layer;
    int32_t wanted = pass->rows - first;
    float *x = buffers->x + (int64_t)first * d->hidden;
    if (b->mixed > 0) attention_half(d, pass, pool, layer, first, buffers);
    if (b->inner > 0 || b->experts != NULL) pass_mlp(d, pool, b, wanted, buffers, x);
    if (b->token_width > 0) per_layer_gate(d, pass, pool, b, first, buffers, x);
    if (b->scale != 1.0f)
        for (int64_t i = 0; i < (int64_t)wanted * d->hidden; i += LANES)
            store(x + i, load(x + i) * b->scale);
}

/* Complete the per-layer inputs (Gemma 4): per-layer embeddings and the norm of a projection of the
   input, each with weight √½ after scaling. */
static void per_layer_inputs(const Decoder *d, const Pass *pass, Pool *pool, const Buffers *buffers) {
    int32_t width = d->token_width, all_layers = pass->per_layer_width;
    float from_hidden = 1.0f / __builtin_sqrtf((float)d->hidden);
    float own = __builtin_sqrtf((float)width), each = __builtin_sqrtf(0.5f);
    linear(pool, d->token_projection, buffers->x, buffers->packed, pass->rows, NULL, buffers->per_layer);
    for (int64_t at = 0; at < (int64_t)pass->rows * all_layers; at += width) {
        float *made = buffers->per_layer + at, *per_layer = pass->per_layer + at;
        for (int32_t i = 0; i < width; i += LANES) store(made + i, load(made + i) * from_hidden);
        norm(made, d->token_norm, width, d->eps, made);
        for (int32_t i = 0; i < width; i += LANES)
            store(per_layer + i, fma(load(per_layer + i), all(own), load(made + i)) * each);
    }
}

void forward(const Decoder *d, const Pass *pass, Pool *pool) {
    Buffers buffers;
    be_busy(pool, 1);
    carve_scratch(d, pass->scratch, pass->rows, &buffers);
    for (int32_t s = 0; s < pass->num_sequences; s++)
        if (pass->sequences[s].pending) apply_pending(pool, pass->sequences[s].states, pass->sequences[s].pending);
    embed(d, pass, buffers.x);
    if (d->token_projection != NULL) per_layer_inputs(d, pass, pool, &buffers);
    for (int32_t l = 0; l < d->layers; l++) {
        write_taps(d, pass, l, buffers.x);
        run_block(d, pass, pool, l, l == d->layers - 1 ? pass->first_wanted : 0, &buffers);
    }
    write_taps(d, pass, d->layers, buffers.x);
    int64_t first = pass->first_wanted, width = (int64_t)(1 + pass->num_taps) * d->hidden;
    norm_rows(pool, buffers.x + first * d->hidden, d->final_norm, d, pass->rows - pass->first_wanted,
              pass->hidden, width);
    be_busy(pool, 0);
}
