#include "attention.h"

#include <stddef.h>

#include "words.h"

/* Queries that are computed together, and of so many how many vectors of sums besides. All
   measured: one more, and the compiler runs out of registers. */
#if MULTIPLIES_HALVES
enum { TOGETHER = 6 };
#else
enum { TOGETHER = 5 };
#endif
#if defined(__AVX512F__)
#define BESIDE(rows) ((rows) <= 2 ? 8 : 4)
#else
#define BESIDE(rows) ((rows) == 1 ? 4 : (rows) == 2 ? 2 : 1)
#endif
enum { MOST_BESIDE = 8 };

typedef struct {
    const Cache *cache;
    const LayerRows *layer_rows;
    const Attention *how;
    const Rows *rows;
    int32_t layer, first;
    const float *q;
    int32_t stride;
    float *mixed;
    float *scratch;
    int64_t scratch_size;
} Job;

/* Words in vectors: vector v's k-th word lies at k · step + v · apart. */
typedef struct {
    const uint32_t *words;
    int64_t step, apart;
    int32_t depth, vectors;
    int is_half;
} Matrix;

/* Rows in the form that is multiplied with words, each `stride` words behind the one before. */
typedef struct {
    const uint32_t *words;
    int64_t stride;
} Factors;

/* Rows of sums. */
typedef struct {
    float *to;
    int64_t stride;
} Sums;

static int32_t padded(int32_t count) { return (count + LANES - 1) / LANES * LANES; }

/* Some rows times some vectors, added to what the sums are. The order of a sum is that of the
   words, however many rows and vectors go together. */
INLINE void tile(const Matrix *matrix, int32_t vector, Factors x, Sums sums, int rows, int vectors,
                 int is_half) {
    Lanes total[TOGETHER][MOST_BESIDE];
    const uint32_t *words = matrix->words + vector * matrix->apart;
    int64_t step = matrix->step, apart = matrix->apart;
    int32_t each = numbers_beside(is_half), depth = matrix->depth;
    float *to = sums.to + vector * LANES;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) total[r][v] = load(to + r * sums.stride + v * LANES);
    for (int32_t k = 0; k < depth; k++) {
        Words taken[MOST_BESIDE];
        for (int v = 0; v < vectors; v++) taken[v] = load_words(words + k * step + v * apart);
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++)
                total[r][v] = add(total[r][v], taken[v], x.words + r * x.stride + k * each, is_half);
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) store(to + r * sums.stride + v * LANES, total[r][v]);
}

INLINE void tiles(const Matrix *matrix, Factors x, Sums sums, int rows, int is_half) {
    int32_t v = 0;
    for (; v + BESIDE(rows) <= matrix->vectors; v += BESIDE(rows))
        tile(matrix, v, x, sums, rows, BESIDE(rows), is_half);
    for (; BESIDE(rows) > 4 && v + 4 <= matrix->vectors; v += 4)
        tile(matrix, v, x, sums, rows, 4, is_half);
    for (; BESIDE(rows) > 2 && v + 2 <= matrix->vectors; v += 2)
        tile(matrix, v, x, sums, rows, 2, is_half);
    for (; v < matrix->vectors; v++) tile(matrix, v, x, sums, rows, 1, is_half);
}

/* sums += rows × matrix; the counts are known when this is compiled. */
static void multiply(const Matrix *matrix, Factors x, Sums sums, int32_t rows) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (matrix->is_half)                                                                       \
            tiles(matrix, x, sums, n, 1);                                                          \
        else                                                                                       \
            tiles(matrix, x, sums, n, 0);                                                          \
        break
    switch (rows) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
#if MULTIPLIES_HALVES
        CASE(6);
#endif
    }
#undef CASE
}

/* What a piece works with: some rows of the query heads that share keys and values. */
typedef struct {
    int32_t rows, kv_head, end; /* no row of the pass from `end` on is seen */
    int32_t row[TOGETHER], head[TOGETHER];
    int32_t begin[TOGETHER], counts[TOGETHER]; /* a row sees these places of the text */
    int32_t start;                             /* none sees one before; a multiple of the lanes */
    int32_t *behind[TOGETHER]; /* slots of what a row sees behind the committed rows */
    int64_t most;              /* scores of a row that there is room for */
    float *scores, *sums;
    uint32_t *q, *gathered;
    float totals[TOGETHER];
} Part;

int64_t attention_scratch(int32_t head_dim, int32_t length, int32_t rows) {
    int64_t slots = padded(rows), gathered = (int64_t)(rows + 2) * head_dim;
    return TOGETHER * (padded(length + rows) + slots + 2 * head_dim) + gathered;
}

/* The slots behind the committed rows that a row sees, in the order of the text. */
static void trace_back(const Rows *rows, int32_t row, int32_t *slots) {
    for (int32_t depth = rows->depths[row]; depth >= 0; depth--) {
        slots[depth] = rows->length + row;
        row = rows->parents[row];
    }
}

static int32_t group_of(const Job *job) { return job->how->heads / job->layer_rows->kv_heads; }

/* The first place that a row sees of those before `count`. */
static int32_t first_seen(const Attention *how, int32_t count) {
    return how->window > 0 && count > how->window ? count - how->window : 0;
}

static int32_t blocks_of(const Job *job) {
    int32_t queries = (job->rows->rows - job->first) * group_of(job);
    return (queries + TOGETHER - 1) / TOGETHER;
}

static void set_out(const Job *job, int32_t index, int32_t worker, Part *part) {
    const Rows *rows = job->rows;
    int32_t group = group_of(job), blocks = blocks_of(job), head_dim = job->layer_rows->head_dim;
    int64_t queries = (int64_t)(rows->rows - job->first) * group;
    int64_t from = queries * (index % blocks) / blocks, to = queries * (index % blocks + 1) / blocks;
    part->kv_head = index / blocks;
    part->rows = (int32_t)(to - from);
    part->end = job->first + (int32_t)((to - 1) / group) + 1;
    part->most = padded(rows->length + rows->rows);
    part->scores = job->scratch + worker * job->scratch_size;
    part->sums = part->scores + TOGETHER * part->most;
    part->q = (uint32_t *)part->sums + TOGETHER * head_dim;
    int32_t *behind = (int32_t *)part->q + TOGETHER * head_dim;
    part->gathered = (uint32_t *)behind + TOGETHER * padded(rows->rows);
    part->start = part->end + rows->length;
    for (int32_t r = 0; r < part->rows; r++) {
        part->row[r] = job->first + (int32_t)((from + r) / group);
        part->head[r] = part->kv_head * group + (int32_t)((from + r) % group);
        part->counts[r] = rows->length + rows->depths[part->row[r]] + 1;
        part->begin[r] = first_seen(job->how, part->counts[r]);
        if (part->begin[r] < part->start) part->start = part->begin[r];
        part->behind[r] = behind + r * padded(rows->rows);
        trace_back(rows, part->row[r], part->behind[r]);
    }
    part->start = part->start / LANES * LANES;
}

/* The scores of all slots from `start` on; then those that a row sees are brought into the order of
   the text. */
static void score(const Job *job, const Part *part) {
    const Cache *cache = job->cache;
    int32_t head_dim = job->layer_rows->head_dim, length = job->rows->length, start = part->start;
    int32_t words = head_dim / word_size(cache->is_half);
    for (int32_t r = 0; r < part->rows; r++) {
        const float *q = job->q + (int64_t)part->row[r] * job->stride + part->head[r] * head_dim;
        uint32_t *to = part->q + r * head_dim;
        for (int32_t i = 0; i < head_dim; i += LANES) to += to_words(load(q + i), to, cache->is_half);
    }
    int32_t end = start + padded(length + part->end - start);
    for (int32_t r = 0; r < part->rows; r++)
        for (int32_t i = start; i < end; i += LANES)
            store(part->scores + r * part->most + i, (Lanes){0});
    for (int32_t at = start; at < end;) {
        Slots slots = keys_from(cache, job->layer, part->kv_head, at);
        int32_t stop = slots.end < end ? (int32_t)slots.end : end;
        Matrix keys = {slots.words, LANES, (int64_t)words * LANES, words, (stop - at) / LANES,
                       cache->is_half};
        Sums sums = {part->scores + at, part->most};
        multiply(&keys, (Factors){part->q, head_dim}, sums, part->rows);
        at = stop;
    }
    for (int32_t r = 0; r < part->rows; r++) {
        float *scores = part->scores + r * part->most;
        for (int32_t i = length < part->begin[r] ? part->begin[r] : length; i < part->counts[r]; i++)
            scores[i] = scores[part->behind[r][i - length]]; /* never from before it */
        if (job->how->cap > 0)
            for (int32_t i = start; i < part->counts[r]; i += LANES)
                store(scores + i, capped(load(scores + i), job->how->cap));
    }
}

/* Scores become weights that still have to be divided by what is returned, a sink's share included:
   those from `begin` on,
   those between `start` and it nothing. Their places are those of the text, so the order of the sum
   is that of plain decoding. */
INLINE float soften(float *scores, int32_t start, int32_t begin, int32_t count, const float *sink) {
    int32_t end = padded(count);
    for (int32_t i = start; i < begin; i++) scores[i] = -__builtin_inff();
    for (int32_t i = count; i < end; i++) scores[i] = -__builtin_inff();
    Lanes most = load(scores + start);
    for (int32_t i = start + LANES; i < end; i += LANES) most = larger(most, load(scores + i));
    Lanes top = all(largest(most));
    if (sink != NULL) top = larger(top, all(*sink));
    Lanes total = {0};
    for (int32_t i = start; i < end; i += LANES) {
        Lanes weight = exponential(load(scores + i) - top);
        store(scores + i, weight);
        total += weight;
    }
    return sum(total) + (sink == NULL ? 0.0f : exponential(all(*sink) - top)[0]);
}

/* The words of values from place `from` to `to` of the text that a row sees, as they would lie if
   they had been committed. */
static Matrix gather(const Job *job, const Part *part, int32_t row, int32_t from) {
    const Cache *cache = job->cache;
    /* Rows behind the committed ones are the cache's own, and so is the word before them. */
    int64_t own = cache->num_shared;
    const uint32_t *values = values_from(cache, job->layer, part->kv_head, own).words;
    int32_t head_dim = job->layer_rows->head_dim, length = job->rows->length;
    int32_t count = part->counts[row];
    int32_t size = word_size(cache->is_half), depth = (count - from + size - 1) / size;
    for (int32_t place = from; place < count; place++) {
        int32_t slot = place < length ? place : part->behind[row][place - length];
        const uint32_t *value = values + (slot - own) / size * head_dim;
        uint32_t *to = part->gathered + (int64_t)((place - from) / size) * head_dim;
        for (int32_t i = 0; i < head_dim; i += LANES) {
            Words words = load_words(value + i);
            if (cache->is_half) {
                words = half_of(words, slot % 2);
                if (place % 2) words = load_words(to + i) | words << 16;
            }
            store_words(to + i, words);
        }
    }
    return (Matrix){part->gathered, head_dim, LANES, depth, head_dim / LANES, cache->is_half};
}

/* How far all rows of a part see the slots as they lie: in whole words. */
static int32_t alike(const Job *job, const Part *part) {
    int32_t size = word_size(job->cache->is_half), length = job->rows->length, most = part->counts[0];
    for (int32_t r = 0; r < part->rows; r++) {
        int32_t i = length < part->start ? part->start : length;
        while (i < part->counts[r] && part->behind[r][i - length] == i) i++;
        if (i < most) most = i;
    }
    return most / size * size;
}

/* Where the weight of a place lies in what is multiplied. */
static int64_t factor_at(int32_t place, int is_half) {
    return place / word_size(is_half) * numbers_beside(is_half);
}

/* The values, weighted: those that all rows see at once, then of each row the rest. */
static void mix(const Job *job, const Part *part) {
    const Cache *cache = job->cache;
    int32_t head_dim = job->layer_rows->head_dim, shared = alike(job, part);
    int32_t is_half = cache->is_half, size = word_size(is_half), start = part->start;
    for (int32_t i = 0; i < part->rows * head_dim; i += LANES) store(part->sums + i, (Lanes){0});
    for (int32_t at = start; at < shared;) { /* sums go on where they stopped: in the same order */
        Slots slots = values_from(cache, job->layer, part->kv_head, at);
        int32_t stop = slots.end < shared ? (int32_t)slots.end : shared;
        Matrix values = {slots.words, head_dim, LANES, (stop - at) / size, head_dim / LANES, is_half};
        Factors weights = {(const uint32_t *)part->scores + factor_at(at, is_half), part->most};
        multiply(&values, weights, (Sums){part->sums, head_dim}, part->rows);
        at = stop;
    }
    for (int32_t r = 0; r < part->rows; r++) {
        Matrix rest = gather(job, part, r, shared);
        const uint32_t *of_row = (const uint32_t *)part->scores + r * part->most;
        Factors factors = {of_row + factor_at(shared, is_half), part->most};
        float *sums = part->sums + r * head_dim;
        multiply(&rest, factors, (Sums){sums, head_dim}, 1);
        int64_t place = (int64_t)part->row[r] * job->how->heads + part->head[r];
        float share_ = 1.0f / part->totals[r];
        for (int32_t i = 0; i < head_dim; i += LANES)
            store(job->mixed + place * head_dim + i, load(sums + i) * share_);
    }
}

static void piece(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    Part part;
    set_out(job, index, worker, &part);
    score(job, &part);
    for (int32_t r = 0; r < part.rows; r++) {
        float *scores = part.scores + r * part.most;
        uint32_t *words = (uint32_t *)scores + factor_at(part.start, job->cache->is_half);
        const float *sink = job->how->sinks == NULL ? NULL : job->how->sinks + part.head[r];
        part.totals[r] = soften(scores, part.start, part.begin[r], part.counts[r], sink);
        /* In place, never ahead of what is read. */
        for (int32_t i = part.start; i < part.counts[r]; i += LANES)
            words += to_words(load(scores + i), words, job->cache->is_half);
    }
    mix(job, &part);
}

void attend(Pool *pool, const Cache *cache, int32_t layer, const Attention *how, const Rows *rows,
            int32_t first, const float *q, int32_t stride, float *mixed, float *scratch,
            int64_t scratch_size) {
    const LayerRows *layer_rows = cache->layers + layer;
    Job job = {cache, layer_rows, how,   rows,    layer,       first,
               q,     stride,     mixed, scratch, scratch_size};
    share(pool, piece, &job, blocks_of(&job) * layer_rows->kv_heads);
}
