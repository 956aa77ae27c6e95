#include "attention.h"

#include <stddef.h>

#include "lanes.h"

enum { TOGETHER = 4, CHUNK = 4 }; /* rows, and vectors of a head, that are summed at once */

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

/* Sixteen scores: a query against sixteen keys. */
INLINE Lanes score(const float *q, const float *const keys[LANES], int32_t head_dim) {
    Lanes products[LANES];
    for (int i = 0; i < LANES; i++) products[i] = (Lanes){0};
    for (int32_t at = 0; at < head_dim; at += LANES) {
        Lanes query = load(q + at);
        for (int i = 0; i < LANES; i++) products[i] = fma(query, load(keys[i] + at), products[i]);
    }
    return sums(products);
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

/* Add weighted values of `count` slots to what `rows` rows have so far. */
INLINE void mix(Lanes acc[TOGETHER][CHUNK], float *const scores[], const float *values,
                int32_t head_dim, int32_t from, int32_t to, int rows, int vectors) {
    for (int32_t i = from; i < to; i++)
        for (int v = 0; v < vectors; v++) {
            Lanes value = load(values + (int64_t)i * head_dim + v * LANES);
            for (int r = 0; r < rows; r++) acc[r][v] = fma(all(scores[r][i]), value, acc[r][v]);
        }
}

INLINE void mix_rows(const Job *job, int32_t row, int32_t head, int rows, int vectors, int32_t at,
                     const float *values, float *const scores[], int32_t *const slots[],
                     const float totals[]) {
    const Keys *keys = job->keys;
    int32_t length = job->rows->length;
    Lanes acc[TOGETHER][CHUNK];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) acc[r][v] = (Lanes){0};
    mix(acc, scores, values + at, keys->head_dim, 0, length, rows, vectors);
    for (int r = 0; r < rows; r++) {
        for (int32_t i = 0; i <= job->rows->depths[row + r]; i++) {
            const float *value = values + (int64_t)slots[r][i] * keys->head_dim + at;
            for (int v = 0; v < vectors; v++)
                acc[r][v] = fma(all(scores[r][length + i]), load(value + v * LANES), acc[r][v]);
        }
        float *to = job->mixed + ((int64_t)(row + r) * keys->heads + head) * keys->head_dim + at;
        for (int v = 0; v < vectors; v++) store(to + v * LANES, acc[r][v] * (1.0f / totals[r]));
    }
}

/* Some rows of one head. */
static void piece(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    const Keys *keys = job->keys;
    int32_t head = index % keys->heads, row = job->first + index / keys->heads * TOGETHER;
    int32_t rows = job->rows->rows - row < TOGETHER ? job->rows->rows - row : TOGETHER;
    int32_t kv_head = head / (keys->heads / keys->kv_heads);
    int64_t offset = (int64_t)kv_head * keys->capacity * keys->head_dim;
    const float *own_keys = keys->keys + offset, *own_values = keys->values + offset;
    int32_t length = job->rows->length, most = padded(length + job->rows->rows);
    float *scratch = job->scratch + worker * job->scratch_size;
    float *scores[TOGETHER], totals[TOGETHER];
    int32_t *slots[TOGETHER];
    for (int32_t r = 0; r < rows; r++) {
        int32_t count = length + job->rows->depths[row + r] + 1;
        scores[r] = scratch + r * most;
        slots[r] = (int32_t *)(scratch + TOGETHER * most) + r * padded(job->rows->rows);
        trace_back(job->rows, row + r, slots[r]);
        const float *q = job->q + (int64_t)(row + r) * job->stride + head * keys->head_dim;
        for (int32_t i = 0; i < count; i += LANES) {
            const float *at[LANES];
            for (int32_t j = 0; j < LANES; j++) {
                int32_t place = i + j < count ? i + j : count - 1;
                int32_t slot = place < length ? place : slots[r][place - length];
                at[j] = own_keys + (int64_t)slot * keys->head_dim;
            }
            store(scores[r] + i, score(q, at, keys->head_dim));
        }
        totals[r] = soften(scores[r], count);
    }
    int32_t at = 0;
    for (; at + CHUNK * LANES <= keys->head_dim; at += CHUNK * LANES) {
        if (rows == TOGETHER)
            mix_rows(job, row, head, TOGETHER, CHUNK, at, own_values, scores, slots, totals);
        else
            for (int32_t r = 0; r < rows; r++)
                mix_rows(job, row + r, head, 1, CHUNK, at, own_values, scores + r, slots + r,
                         totals + r);
    }
    for (; at < keys->head_dim; at += LANES)
        for (int32_t r = 0; r < rows; r++)
            mix_rows(job, row + r, head, 1, 1, at, own_values, scores + r, slots + r, totals + r);
}

void attend(Pool *pool, const Keys *keys, const Rows *rows, int32_t first, const float *q,
            int32_t stride, float *mixed, float *scratch, int64_t scratch_size) {
    Job job = {keys, rows, first, q, stride, mixed, scratch, scratch_size};
    int32_t blocks = (rows->rows - first + TOGETHER - 1) / TOGETHER;
    share(pool, piece, &job, blocks * keys->heads);
}
