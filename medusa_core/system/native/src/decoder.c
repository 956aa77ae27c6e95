#include "decoder.h"

#include <stddef.h>

#include "lanes.h"

enum { VECTORS_EACH = 256 }; /* of a piece of work on all inner numbers */

/* Where the parts of a pass keep their rows. */
typedef struct {
    float *x, *normed, *qkv, *mixed, *gate_up, *active, *attention;
    uint32_t *packed;
} Buffers;

static int64_t widest(const Decoder *d) {
    int64_t heads = (int64_t)d->heads * d->head_dim;
    int64_t most = d->hidden > d->inner ? d->hidden : d->inner;
    return most > heads ? most : heads;
}

static int64_t qkv_width(const Decoder *d) {
    return (int64_t)(d->heads + 2 * d->kv_heads) * d->head_dim;
}

static int64_t set_out(const Decoder *d, float *scratch, int64_t rows, Buffers *buffers) {
    int64_t widths[] = {d->hidden, d->hidden, qkv_width(d), (int64_t)d->heads * d->head_dim,
                        2 * d->inner, d->inner, widest(d)};
    float **places[] = {&buffers->x,       &buffers->normed, &buffers->qkv,            &buffers->mixed,
                        &buffers->gate_up, &buffers->active, (float **)&buffers->packed};
    int64_t used = 0;
    for (int i = 0; i < 7; i++) {
        if (scratch != NULL) *places[i] = scratch + used;
        used += (rows * widths[i] + LANES - 1) / LANES * LANES;
    }
    if (scratch != NULL) buffers->attention = scratch + used;
    return used;
}

int64_t pass_scratch(const Decoder *d, int32_t rows, int32_t length, int32_t workers) {
    Buffers buffers;
    return set_out(d, NULL, rows, &buffers) + workers * attention_scratch(d->head_dim, length, rows);
}

/* x · weight / √(mean(x²) + ε); size is a multiple of the lanes. */
static void norm(const float *x, const float *weight, int32_t size, float eps, float *y) {
    Lanes squares = {0};
    for (int32_t i = 0; i < size; i += LANES) squares = fma(load(x + i), load(x + i), squares);
    float scale = 1.0f / __builtin_sqrtf(sum(squares) / (float)size + eps);
    for (int32_t i = 0; i < size; i += LANES) store(y + i, load(x + i) * scale * load(weight + i));
}

/* y: a row every `stride` floats. */
static void norm_rows(const float *x, const float *weight, const Decoder *d, int32_t rows, float *y,
                      int64_t stride) {
    for (int64_t r = 0; r < rows; r++)
        norm(x + r * d->hidden, weight, d->hidden, d->eps, y + r * stride);
}

static void embed(const Decoder *d, const Pass *pass, float *x) {
    for (int64_t r = 0; r < pass->rows; r++) {
        int64_t from = pass->token_ids[r] * d->hidden;
        float *to = x + r * d->hidden;
        for (int32_t i = 0; i < d->hidden; i += LANES)
            store(to + i, d->embedding_is_half
                              ? load_halves((const uint16_t *)d->embedding + from + i)
                              : load((const float *)d->embedding + from + i));
    }
}

/* Turn pairs by their position: (a, b) → (a cos − b sin, b cos + a sin), times `scale`. */
static void turn(const float *from, const float *turns, int32_t size, float scale, float *to) {
    for (int32_t i = 0; i < size; i += 2) {
        float a = from[i], b = from[i + 1], cosine = turns[i] * scale, sine = turns[i + 1] * scale;
        to[i] = a * cosine - b * sine;
        to[i + 1] = b * cosine + a * sine;
    }
}

/* Norm and turn queries and keys of a sequence; keys and values go to their slots. */
static void place(const Decoder *d, const Block *block, const Sequence *sequence,
                  const float *all_turns, float *qkv, int32_t layer) {
    const Rows *rows = &sequence->rows;
    int32_t size = d->head_dim, num_turned = d->heads + d->kv_heads;
    float scale = 1.0f / __builtin_sqrtf((float)size);
    for (int32_t r = 0; r < rows->rows; r++) {
        int64_t slot = rows->length + r;
        const float *turns = all_turns + (int64_t)(rows->length + rows->depths[r]) * size;
        float *row = qkv + r * qkv_width(d);
        for (int32_t h = 0; h < num_turned; h++) {
            float *head = row + h * size;
            if (block->head_norm != NULL)
                norm(head, block->head_norm + (int64_t)h * size, size, d->eps, head);
            turn(head, turns, size, h < d->heads ? scale : 1.0f, head);
        }
        for (int32_t h = 0; h < d->kv_heads; h++) {
            put_key(sequence->cache, layer, h, slot, row + (d->heads + h) * size);
            put_value(sequence->cache, layer, h, slot, row + (num_turned + h) * size);
        }
    }
}

/* Every sequence's rows over its own cache. */
static void attend_all(const Decoder *d, const Pass *pass, Pool *pool, int32_t layer, int32_t first,
                       const Buffers *buffers) {
    int64_t width = qkv_width(d), mixed = (int64_t)d->heads * d->head_dim, before = 0;
    for (int32_t s = 0; s < pass->num_sequences; s++) {
        const Sequence *sequence = pass->sequences + s;
        const Rows *rows = &sequence->rows;
        float *qkv = buffers->qkv + before * width;
        place(d, d->blocks + layer, sequence, pass->turns, qkv, layer);
        attend(pool, sequence->cache, layer, d->heads, rows, first, qkv, (int32_t)width,
               buffers->mixed + before * mixed, buffers->attention,
               attention_scratch(d->head_dim, rows->length, rows->rows));
        before += rows->rows;
    }
}

/* What enters a layer, where it is tapped. */
static void write_taps(const Decoder *d, const Pass *pass, int32_t layer, const float *x) {
    int64_t hidden = d->hidden, first = pass->first_wanted;
    for (int32_t t = 0; t < pass->num_taps; t++) {
        if (pass->taps[t] != layer) continue;
        for (int64_t r = first; r < pass->rows; r++)
            __builtin_memcpy(pass->hidden + ((r - first) * (1 + pass->num_taps) + 1 + t) * hidden,
                             x + r * hidden, (size_t)hidden * sizeof *x);
    }
}

typedef struct {
    const float *gate_up;
    float *y;
    int32_t inner, rows;
} Activation;

/* SiLU(gate) · up, of some vectors of all rows' inner numbers. */
static void activate_some(void *context, int32_t index, int32_t worker) {
    const Activation *job = context;
    (void)worker;
    int32_t vectors = job->inner / LANES, first = index * VECTORS_EACH;
    int32_t left = job->rows * vectors - first;
    if (left > VECTORS_EACH) left = VECTORS_EACH;
    for (int64_t r = first / vectors, v = first % vectors; left > 0; r++, v = 0)
        for (; v < vectors && left > 0; v++, left--) {
            const float *gate = job->gate_up + r * 2 * job->inner + v * LANES;
            store(job->y + r * job->inner + v * LANES, silu(load(gate)) * load(gate + job->inner));
        }
}

static void activate(Pool *pool, const float *gate_up, int32_t inner, int32_t rows, float *y) {
    Activation job = {gate_up, y, inner, rows};
    share(pool, activate_some, &job, (rows * (inner / LANES) + VECTORS_EACH - 1) / VECTORS_EACH);
}

void forward(const Decoder *d, const Pass *pass, Pool *pool) {
    Buffers buffers;
    int32_t rows = pass->rows;
    be_busy(pool, 1);
    set_out(d, pass->scratch, rows, &buffers);
    embed(d, pass, buffers.x);
    for (int32_t l = 0; l < d->layers; l++) {
        const Block *block = d->blocks + l;
        write_taps(d, pass, l, buffers.x);
        norm_rows(buffers.x, block->attention_norm, d, rows, buffers.normed, d->hidden);
        linear(pool, &block->qkv, buffers.normed, buffers.packed, rows, NULL, buffers.qkv);
        int32_t first = l == d->layers - 1 ? pass->first_wanted : 0;
        int32_t wanted = rows - first;
        attend_all(d, pass, pool, l, first, &buffers);
        float *x = buffers.x + (int64_t)first * d->hidden;
        linear(pool, &block->output, buffers.mixed + (int64_t)first * d->heads * d->head_dim,
               buffers.packed, wanted, x, x);
        norm_rows(x, block->mlp_norm, d, wanted, buffers.normed, d->hidden);
        linear(pool, &block->gate_up, buffers.normed, buffers.packed, wanted, NULL, buffers.gate_up);
        activate(pool, buffers.gate_up, d->inner, wanted, buffers.active);
        linear(pool, &block->down, buffers.active, buffers.packed, wanted, x, x);
    }
    write_taps(d, pass, d->layers, buffers.x);
    int64_t first = pass->first_wanted, width = (int64_t)(1 + pass->num_taps) * d->hidden;
    norm_rows(buffers.x + first * d->hidden, d->final_norm, d, rows - pass->first_wanted, pass->hidden,
              width);
    be_busy(pool, 0);
}
