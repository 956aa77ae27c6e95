#include "attention.h"

#include <stddef.h>

#include "lanes.h"

/* Rows that are scored together; of them rows whose values are summed at once, and how many vectors
   of a head at once. */
enum { TOGETHER = 8, MIXED = 4, CHUNK = 4 };

typedef struct {
    const Keys *keys;
    const Rows *rows;
    int32_t first;
    const float *q;
    int32_t stride;
    float *mixed;
    float *scratch;
    int64_t scratch_size;
} Job;

static int32_t padded(int32_t count) { return (count + LANES - 1) / LANES * LANES; }

int64_t attention_scratch(int32_t length, int32_t rows) {
    int64_t most = padded(length + rows);
    /* per row together: scores, and the slots of what lies behind the committed rows (as ints) */
    return TOGETHER * (most + padded(rows));
}

/* The slots behind the committed rows that a row sees, in the order of the text. */
static void trace_back(const Rows *rows, int32_t row, int32_t *slots) {
    for (int32_t depth = rows->depths[row]; depth >= 0; depth--) {
        slots[depth] = rows->length + row;
        row = rows->parents[row];
    }
}

/* Sixteen scores: a query against the keys at sixteen slots, or at sixteen in a row. */
INLINE Lanes score(const float *q, const float *keys, const int32_t *slots, int32_t head_dim) {
    Lanes products[LANES];
    for (int i = 0; i < LANES; i++) products[i] = (Lanes){0};
    for (int32_t at = 0; at < head_dim; at += LANES) {
        Lanes query = load(q + at);
        for (int i = 0; i < LANES; i++) {
            int64_t slot = slots == NULL ? i : slots[i];
            products[i] = fma(query, load(keys + slot * head_dim + at), products[i]);
        }
    }
    return sums(products);
}

/* The scores of some rows of a head. Rows take turns at the same sixteen keys while these are near;
   what lies behind the committed rows is looked up slot by slot. */
INLINE void scores_of(const float *const q[], const float *keys, const int32_t *const behind[],
                      int32_t length, const int32_t counts[], int32_t rows, int32_t head_dim,
                      float *const scores[]) {
    int32_t even = length / LANES * LANES;
    for (int32_t i = 0; i < even; i += LANES)
        for (int32_t r = 0; r < rows; r++)
            store(scores[r] + i, score(q[r], keys + (int64_t)i * head_dim, NULL, head_dim));
    for (int32_t r = 0; r < rows; r++)
        for (int32_t i = even; i < counts[r]; i += LANES) {
            int32_t slots[LANES];
            for (int32_t j = 0; j < LANES; j++) {
                int32_t place = i + j < counts[r] ? i + j : counts[r] - 1;
                slots[j] = place < length ? place : behind[r][place - length];
            }
            store(scores[r] + i, score(q[r], keys, slots, head_dim));
        }
}

/* Scores become weights that still have to be divided by what is returned. Their places are those
   of the text, so the order of the sum is that of plain decoding. */
INLINE float soften(float *scores, int32_t count) {
    int32_t end = padded(count);
    for (int32_t i = count; i < end; i++) scores[i] = -__builtin_inff();
    Lanes most = load(scores);
    for (int32_t i = LANES; i < end; i += LANES) most = larger(most, load(scores + i));
    Lanes top = all(largest(most));
    Lanes total = {0};
    for (int32_t i = 0; i < end; i += LANES) {
        Lanes weight = exponential(load(scores + i) - top);
        store(scores + i, weight);
        total += weight;
    }
    return sum(total);
}

/* What a piece works with: some rows of one head. */
typedef struct {
    int32_t head, row, rows;
    const float *keys, *values;
    const float *q[TOGETHER];
    float *scores[TOGETHER];
    int32_t *behind[TOGETHER], counts[TOGETHER];
    float totals[TOGETHER];
} Part;

/* The values of a part of the head, weighted; of `rows` rows from the r-th on. */
INLINE void mix(const Job *job, const Part *part, int32_t first, int rows, int vectors,
                int32_t at) {
    int32_t head_dim = job->keys->head_dim, length = job->rows->length;
    const float *values = part->values + at;
    Lanes acc[TOGETHER][CHUNK];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) acc[r][v] = (Lanes){0};
    for (int32_t i = 0; i < length; i++)
        for (int v = 0; v < vectors; v++) {
            Lanes value = load(values + (int64_t)i * head_dim + v * LANES);
            for (int r = 0; r < rows; r++)
                acc[r][v] = fma(all(part->scores[first + r][i]), value, acc[r][v]);
        }
    for (int r = 0; r < rows; r++) {
        int32_t row = first + r;
        for (int32_t i = length; i < part->counts[row]; i++) {
            const float *value = values + (int64_t)part->behind[row][i - length] * head_dim;
            for (int v = 0; v < vectors; v++)
                acc[r][v] = fma(all(part->scores[row][i]), load(value + v * LANES), acc[r][v]);
        }
        int64_t place = (int64_t)(part->row + row) * job->keys->heads + part->head;
        float *to = job->mixed + place * head_dim + at;
        float share_ = 1.0f / part->totals[row];
        for (int v = 0; v < vectors; v++) store(to + v * LANES, acc[r][v] * share_);
    }
}

static void set_out(const Job *job, int32_t index, int32_t worker, Part *part) {
    const Keys *keys = job->keys;
    int32_t length = job->rows->length, left;
    part->head = index % keys->heads;
    part->row = job->first + index / keys->heads * TOGETHER;
    left = job->rows->rows - part->row;
    part->rows = left < TOGETHER ? left : TOGETHER;
    int64_t kv_head = part->head / (keys->heads / keys->kv_heads);
    part->keys = keys->keys + kv_head * keys->capacity * keys->head_dim;
    part->values = keys->values + kv_head * keys->capacity * keys->head_dim;
    float *scratch = job->scratch + worker * job->scratch_size;
    int32_t most = padded(length + job->rows->rows);
    for (int32_t r = 0; r < part->rows; r++) {
        int32_t row = part->row + r;
        part->q[r] = job->q + (int64_t)row * job->stride + part->head * keys->head_dim;
        part->counts[r] = length + job->rows->depths[row] + 1;
        part->scores[r] = scratch + r * most;
        part->behind[r] = (int32_t *)(scratch + TOGETHER * most) + r * padded(job->rows->rows);
        trace_back(job->rows, row, part->behind[r]);
    }
}

INLINE void score_part(const Part *part, int32_t length, int32_t head_dim) {
    scores_of(part->q, part->keys, (const int32_t *const *)part->behind, length, part->counts,
              part->rows, head_dim, part->scores);
}

static void piece(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    Part part;
    set_out(job, index, worker, &part);
    int32_t length = job->rows->length, head_dim = job->keys->head_dim;
    if (head_dim == 64) /* known when this is compiled, it is faster */
        score_part(&part, length, 64);
    else if (head_dim == 128)
        score_part(&part, length, 128);
    else
        score_part(&part, length, head_dim);
    for (int32_t r = 0; r < part.rows; r++)
        part.totals[r] = soften(part.scores[r], part.counts[r]);
    int32_t at = 0;
    for (; at + CHUNK * LANES <= head_dim; at += CHUNK * LANES) {
        int32_t r = 0;
        for (; r + MIXED <= part.rows; r += MIXED) mix(job, &part, r, MIXED, CHUNK, at);
        for (; r < part.rows; r++) mix(job, &part, r, 1, CHUNK, at);
    }
    for (; at < head_dim; at += LANES)
        for (int32_t r = 0; r < part.rows; r++) mix(job, &part, r, 1, 1, at);
}

void attend(Pool *pool, const Keys *keys, const Rows *rows, int32_t first, const float *q,
            int32_t stride, float *mixed, float *scratch, int64_t scratch_size) {
    Job job = {keys, rows, first, q, stride, mixed, scratch, scratch_size};
    int32_t blocks = (rows->rows - first + TOGETHER - 1) / TOGETHER;
    share(pool, piece, &job, blocks * keys->heads);
}
