#include "attention.h"

#include "cache.h"
#include "pool.h"
#include "words.h"

#include <stddef.h>

/* Queries that are computed together, and vectors of sums for so many rows. All are measured: with one
   more the compiler spills registers. */
#if HAS_BF16_DOT
enum { TILE_ROWS = 6 };
#else
enum { TILE_ROWS = 5 };
#endif
#if defined(__AVX512F__)
#define VECTORS(rows) ((rows) <= 2 ? 8 : 4)
#define PANEL_VECTORS(rows) 2 /* of Q8_0: a block of values has two */
#else
#define VECTORS(rows) ((rows) == 1 ? 4 : (rows) == 2 ? 2 : 1)
#define PANEL_VECTORS(rows) ((rows) <= 2 ? 2 : 1)
#endif
enum { MAX_VECTORS = 8 };

typedef struct {
    const Cache *cache;
    const LayerCache *layer_cache;
    const Attention *attention;
    const Tree *tree;
    int32_t layer, first;
    const float *q;
    int32_t stride;
    float *output;
    float *scratch;
    int64_t scratch_size;
} Job;

/* A matrix of words: word k of vector v is at k · word_stride + v · vector_stride. */
typedef struct {
    const uint32_t *words;
    int64_t word_stride, vector_stride;
    int32_t depth, vectors;
    int is_bf16;
} Matrix;

/* Keys or values of a head in Q8_0, from a slot that is a multiple of LANES. */
typedef struct {
    const uint32_t *panels;
    int32_t head_dim, slots;
} Panels;

/* Packed rows that are multiplied with the matrix, `stride` words apart. */
typedef struct {
    const uint32_t *words;
    int64_t stride;
} PackedRows;

/* Rows of sums, `stride` floats apart. */
typedef struct {
    float *to;
    int64_t stride;
} Sums;

static int32_t padded(int32_t count) { return (count + LANES - 1) / LANES * LANES; }

/* sums += rows × vectors. The order of a sum is that of the words, whatever the numbers of rows and vectors
   that are computed together. */
INLINE void tile(const Matrix *matrix, int32_t vector, PackedRows x, Sums sums, int rows, int vectors,
                 int is_bf16) {
    Lanes total[TILE_ROWS][MAX_VECTORS];
    const uint32_t *words = matrix->words + vector * matrix->vector_stride;
    int64_t word_stride = matrix->word_stride, vector_stride = matrix->vector_stride;
    int32_t size = input_words(is_bf16), depth = matrix->depth;
    float *to = sums.to + vector * LANES;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) total[r][v] = load(to + r * sums.stride + v * LANES);
    for (int32_t k = 0; k < depth; k++) {
        Words taken[MAX_VECTORS];
        for (int v = 0; v < vectors; v++) taken[v] = load_words(words + k * word_stride + v * vector_stride);
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++)
                total[r][v] = add(total[r][v], taken[v], x.words + r * x.stride + k * size, is_bf16);
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) store(to + r * sums.stride + v * LANES, total[r][v]);
}

INLINE void tiles(const Matrix *matrix, PackedRows x, Sums sums, int rows, int is_bf16) {
    int32_t v = 0;
    for (; v + VECTORS(rows) <= matrix->vectors; v += VECTORS(rows))
        tile(matrix, v, x, sums, rows, VECTORS(rows), is_bf16);
    for (; VECTORS(rows) > 4 && v + 4 <= matrix->vectors; v += 4)
        tile(matrix, v, x, sums, rows, 4, is_bf16);
    for (; VECTORS(rows) > 2 && v + 2 <= matrix->vectors; v += 2)
        tile(matrix, v, x, sums, rows, 2, is_bf16);
    for (; v < matrix->vectors; v++) tile(matrix, v, x, sums, rows, 1, is_bf16);
}

/* sums += rows × matrix; compiled for each number of rows. */
static void multiply(const Matrix *matrix, PackedRows x, Sums sums, int32_t rows) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (matrix->is_bf16)                                                                       \
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
#if HAS_BF16_DOT
        CASE(6);
#endif
    }
#undef CASE
}

/* sums += rows × keys, as tile() of dequantized keys: for some panels, dimension by dimension. */
INLINE void score_codes(const Panels *keys, int32_t panel, PackedRows x, Sums sums, int rows, int vectors) {
    Lanes total[TILE_ROWS][MAX_VECTORS];
    int64_t size = panel_words(keys->head_dim);
    const uint32_t *from = keys->panels + panel * size;
    float *to = sums.to + panel * LANES;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) total[r][v] = (Lanes){0};
    for (int32_t begin = 0; begin < keys->head_dim; begin += BLOCK) {
        int32_t end = begin + BLOCK < keys->head_dim ? begin + BLOCK : keys->head_dim;
        Lanes scales[MAX_VECTORS];
        for (int v = 0; v < vectors; v++)
            scales[v] = panel_scales(from + v * size, keys->head_dim, begin / BLOCK);
        for (int32_t i = begin; i < end; i += 4) {
            Words words[MAX_VECTORS];
            for (int v = 0; v < vectors; v++) words[v] = load_words(from + v * size + i / 4 * LANES);
            for (int d = 0; d < 4; d++)
                for (int v = 0; v < vectors; v++) {
                    Lanes key = key_codes(words[v], d) * scales[v];
                    for (int r = 0; r < rows; r++)
                        total[r][v] = fma(all(number(x.words[r * x.stride + i + d])), key, total[r][v]);
                }
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) store(to + r * sums.stride + v * LANES, total[r][v]);
}

INLINE void score_panels(const Panels *keys, PackedRows x, Sums sums, int rows) {
    int32_t panels = (keys->slots + LANES - 1) / LANES, v = 0;
    for (; v + PANEL_VECTORS(rows) <= panels; v += PANEL_VECTORS(rows))
        score_codes(keys, v, x, sums, rows, PANEL_VECTORS(rows));
    for (; v < panels; v++) score_codes(keys, v, x, sums, rows, 1);
}

/* sums += rows × values, as tile() of dequantized values: for some vectors of a block, slot by slot. */
INLINE void weigh_codes(const Panels *values, int32_t vector, PackedRows x, Sums sums, int rows,
                        int vectors) {
    Lanes total[TILE_ROWS][MAX_VECTORS];
    float *to = sums.to + vector * LANES;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) total[r][v] = load(to + r * sums.stride + v * LANES);
    for (int32_t begin = 0; begin < values->slots; begin += LANES) {
        int32_t count = begin + LANES < values->slots ? LANES : values->slots - begin;
        const uint32_t *panel = values->panels + begin / LANES * panel_words(values->head_dim);
        const int8_t *codes = (const int8_t *)panel + vector * LANES;
        float scales[LANES];
        store(scales, panel_scales(panel, values->head_dim, vector * LANES / BLOCK));
        for (int32_t s = 0; s < count; s++)
            for (int v = 0; v < vectors; v++) {
                Lanes value = value_codes(codes + s * values->head_dim + v * LANES) * scales[s];
                for (int r = 0; r < rows; r++)
                    total[r][v] = fma(all(number(x.words[r * x.stride + begin + s])), value, total[r][v]);
            }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) store(to + r * sums.stride + v * LANES, total[r][v]);
}

INLINE void weigh_panels(const Panels *values, PackedRows x, Sums sums, int rows) {
    int32_t vectors = values->head_dim / LANES, v = 0;
    for (; v + PANEL_VECTORS(rows) <= vectors; v += PANEL_VECTORS(rows))
        weigh_codes(values, v, x, sums, rows, PANEL_VECTORS(rows));
    for (; v < vectors; v++) weigh_codes(values, v, x, sums, rows, 1);
}

/* sums = rows × keys, or sums += rows × values; compiled for each number of rows. */
static void multiply_panels(const Panels *panels, PackedRows x, Sums sums, int32_t rows, int are_keys) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (are_keys)                                                                              \
            score_panels(panels, x, sums, n);                                                      \
        else                                                                                       \
            weigh_panels(panels, x, sums, n);                                                      \
        break
    switch (rows) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
#if HAS_BF16_DOT
        CASE(6);
#endif
    }
#undef CASE
}

/* A task: some rows of the query heads that share a KV head. */
typedef struct {
    int32_t rows, kv_head, end; /* rows of the pass from `end` on are attended to by none */
    int32_t row[TILE_ROWS], head[TILE_ROWS];
    int32_t begin[TILE_ROWS], counts[TILE_ROWS]; /* range of positions that each attends to */
    int32_t start;                               /* lowest of these, rounded down to LANES */
    int32_t *path[TILE_ROWS]; /* slots of its ancestors and itself */
    int64_t scores_stride;
    float *scores, *sums;
    uint32_t *q, *gathered;
    float totals[TILE_ROWS];
} TaskRows;

int64_t attention_scratch(int32_t head_dim, int32_t num_committed, int32_t rows) {
    int64_t slots = padded(rows), gathered = (int64_t)(rows + 2) * head_dim;
    return TILE_ROWS * (padded(num_committed + rows) + slots + 2 * head_dim) + gathered;
}

/* Slots of a row and its ancestors, by position. */
static void path_of(const Tree *tree, int32_t row, int32_t *slots) {
    for (int32_t depth = tree->depths[row]; depth >= 0; depth--) {
        slots[depth] = tree->num_committed + row;
        row = tree->parents[row];
    }
}

static int32_t group_of(const Job *job) { return job->attention->num_heads / job->layer_cache->num_kv_heads; }

/* The first of `count` positions that the last one attends to. */
static int32_t first_attended(const Attention *attention, int32_t count) {
    int32_t window = attention->sliding_window;
    return window > 0 && count > window ? count - window : 0;
}

static int32_t blocks_of(const Job *job) {
    int32_t queries = (job->tree->num_rows - job->first) * group_of(job);
    return (queries + TILE_ROWS - 1) / TILE_ROWS;
}

static void carve_task(const Job *job, int32_t index, int32_t worker, TaskRows *part) {
    const Tree *tree = job->tree;
    int32_t group = group_of(job), blocks = blocks_of(job), head_dim = job->layer_cache->head_dim;
    int64_t queries = (int64_t)(tree->num_rows - job->first) * group;
    int64_t from = queries * (index % blocks) / blocks, to = queries * (index % blocks + 1) / blocks;
    part->kv_head = index / blocks;
    part->rows = (int32_t)(to - from);
    part->end = job->first + (int32_t)((to - 1) / group) + 1;
    part->scores_stride = padded(tree->num_committed + tree->num_rows);
    part->scores = job->scratch + worker * job->scratch_size;
    part->sums = part->scores + TILE_ROWS * part->scores_stride;
    part->q = (uint32_t *)part->sums + TILE_ROWS * head_dim;
    int32_t *paths = (int32_t *)part->q + TILE_ROWS * head_dim;
    part->gathered = (uint32_t *)paths + TILE_ROWS * padded(tree->num_rows);
    part->start = part->end + tree->num_committed;
    for (int32_t r = 0; r < part->rows; r++) {
        part->row[r] = job->first + (int32_t)((from + r) / group);
        part->head[r] = part->kv_head * group + (int32_t)((from + r) % group);
        part->counts[r] = tree->num_committed + tree->depths[part->row[r]] + 1;
        part->begin[r] = first_attended(job->attention, part->counts[r]);
        if (part->begin[r] < part->start) part->start = part->begin[r];
        part->path[r] = paths + r * padded(tree->num_rows);
        path_of(tree, part->row[r], part->path[r]);
    }
    part->start = part->start / LANES * LANES;
}

/* Compute the scores of all slots from `start` on, then bring those that a row attends to into the order of
   positions. */
static void score(const Job *job, const TaskRows *part) {
    const Cache *cache = job->cache;
    int32_t head_dim = job->layer_cache->head_dim, length = job->tree->num_committed, start = part->start;
    int is_bf16 = cache->type == BF16;
    int32_t words = head_dim / word_size(is_bf16);
    for (int32_t r = 0; r < part->rows; r++) {
        const float *q = job->q + (int64_t)part->row[r] * job->stride + part->head[r] * head_dim;
        uint32_t *to = part->q + r * head_dim;
        for (int32_t i = 0; i < head_dim; i += LANES) to += pack_words(load(q + i), to, is_bf16);
    }
    int32_t end = start + padded(length + part->end - start);
    for (int32_t r = 0; r < part->rows; r++)
        for (int32_t i = start; i < end; i += LANES)
            store(part->scores + r * part->scores_stride + i, (Lanes){0});
    for (int32_t at = start; at < end;) {
        Slots slots = keys_from(cache, job->layer, part->kv_head, at);
        int32_t stop = slots.end < end ? (int32_t)slots.end : end;
        PackedRows q = {part->q, head_dim};
        Sums sums = {part->scores + at, part->scores_stride};
        if (cache->type == Q8_0) {
            multiply_panels(&(Panels){slots.words, head_dim, stop - at}, q, sums, part->rows, 1);
        } else {
            Matrix keys = {slots.words, LANES, (int64_t)words * LANES, words, (stop - at) / LANES, is_bf16};
            multiply(&keys, q, sums, part->rows);
        }
        at = stop;
    }
    for (int32_t r = 0; r < part->rows; r++) {
        float *scores = part->scores + r * part->scores_stride;
        for (int32_t i = length < part->begin[r] ? part->begin[r] : length; i < part->counts[r]; i++)
            scores[i] = scores[part->path[r][i - length]]; /* a slot is never before its position */
        if (job->attention->logit_softcap > 0)
            for (int32_t i = start; i < part->counts[r]; i += LANES)
                store(scores + i, softcapped(load(scores + i), job->attention->logit_softcap));
    }
}

/* Softmax without the division: scores from `begin` on become e^(score − maximum), those from `start` to it
   0, and their sum with the sink's is returned. As scores are in the order of positions, the sum has the
   order of plain decoding. */
INLINE float exp_scores(float *scores, int32_t start, int32_t begin, int32_t count, const float *sink) {
    int32_t end = padded(count);
    for (int32_t i = start; i < begin; i++) scores[i] = -__builtin_inff();
    for (int32_t i = count; i < end; i++) scores[i] = -__builtin_inff();
    Lanes maxima = load(scores + start);
    for (int32_t i = start + LANES; i < end; i += LANES) maxima = larger(maxima, load(scores + i));
    Lanes top = all(largest(maxima));
    if (sink != NULL) top = larger(top, all(*sink));
    Lanes total = {0};
    for (int32_t i = start; i < end; i += LANES) {
        Lanes weight = exponential(load(scores + i) - top);
        store(scores + i, weight);
        total += weight;
    }
    return sum(total) + (sink == NULL ? 0.0f : exponential(all(*sink) - top)[0]);
}

/* Dequantize the value of a slot. */
static void copy_codes(const uint32_t *values, int32_t head_dim, int64_t slot, float *to) {
    const uint32_t *panel = values + slot / LANES * panel_words(head_dim);
    const int8_t *codes = (const int8_t *)panel + slot % LANES * head_dim;
    for (int32_t i = 0; i < head_dim; i += LANES)
        store(to + i, value_codes(codes + i) * panel_scales(panel, head_dim, i / BLOCK)[slot % LANES]);
}

/* Copy the values of a row from a position on as they would be stored if the row were committed. */
static Matrix gather(const Job *job, const TaskRows *part, int32_t row, int32_t from) {
    const Cache *cache = job->cache;
    /* Uncommitted rows are in the cache itself, not in a prefix, and so is the word before them. */
    int64_t own = cache->num_shared;
    const uint32_t *values = values_from(cache, job->layer, part->kv_head, own).words;
    int32_t head_dim = job->layer_cache->head_dim, length = job->tree->num_committed;
    int32_t count = part->counts[row];
    int is_bf16 = cache->type == BF16;
    int32_t size = word_size(is_bf16), depth = (count - from + size - 1) / size;
    for (int32_t place = from; place < count; place++) {
        int32_t slot = place < length ? place : part->path[row][place - length];
        if (cache->type == Q8_0) {
            copy_codes(values, head_dim, slot - own, (float *)part->gathered + (place - from) * head_dim);
            continue;
        }
        const uint32_t *value = values + (slot - own) / size * head_dim;
        uint32_t *to = part->gathered + (int64_t)((place - from) / size) * head_dim;
        for (int32_t i = 0; i < head_dim; i += LANES) {
            Words words = load_words(value + i);
            if (is_bf16) {
                words = bf16_of(words, slot % 2);
                if (place % 2) words = load_words(to + i) | words << 16;
            }
            store_words(to + i, words);
        }
    }
    return (Matrix){part->gathered, head_dim, LANES, depth, head_dim / LANES, is_bf16};
}

/* Number of positions, in whole words, at which slot and position are the same for all rows of a task. */
static int32_t num_in_order(const Job *job, const TaskRows *part) {
    int32_t size = word_size(job->cache->type == BF16), length = job->tree->num_committed;
    int32_t count = part->counts[0];
    for (int32_t r = 0; r < part->rows; r++) {
        int32_t i = length < part->start ? part->start : length;
        while (i < part->counts[r] && part->path[r][i - length] == i) i++;
        if (i < count) count = i;
    }
    return count / size * size;
}

/* Offset of the weight of a position in the packed weights. */
static int64_t packed_offset(int32_t place, int is_bf16) {
    return place / word_size(is_bf16) * input_words(is_bf16);
}

/* Weighted sums of values: over the positions that all rows have in order, then over the rest of each. */
static void weigh_values(const Job *job, const TaskRows *part) {
    const Cache *cache = job->cache;
    int32_t head_dim = job->layer_cache->head_dim, shared = num_in_order(job, part);
    int32_t is_bf16 = cache->type == BF16, size = word_size(is_bf16), start = part->start;
    for (int32_t i = 0; i < part->rows * head_dim; i += LANES) store(part->sums + i, (Lanes){0});
    for (int32_t at = start; at < shared;) { /* sums continue in the same order */
        Slots slots = values_from(cache, job->layer, part->kv_head, at);
        int32_t stop = slots.end < shared ? (int32_t)slots.end : shared;
        const uint32_t *from = (const uint32_t *)part->scores + packed_offset(at, is_bf16);
        PackedRows weights = {from, part->scores_stride};
        Sums sums = {part->sums, head_dim};
        if (cache->type == Q8_0) {
            multiply_panels(&(Panels){slots.words, head_dim, stop - at}, weights, sums, part->rows, 0);
        } else {
            Matrix values = {slots.words, head_dim, LANES, (stop - at) / size, head_dim / LANES, is_bf16};
            multiply(&values, weights, sums, part->rows);
        }
        at = stop;
    }
    for (int32_t r = 0; r < part->rows; r++) {
        Matrix rest = gather(job, part, r, shared);
        const uint32_t *of_row = (const uint32_t *)part->scores + r * part->scores_stride;
        PackedRows factors = {of_row + packed_offset(shared, is_bf16), part->scores_stride};
        float *sums = part->sums + r * head_dim;
        multiply(&rest, factors, (Sums){sums, head_dim}, 1);
        int64_t place = (int64_t)part->row[r] * job->attention->num_heads + part->head[r];
        float norm = 1.0f / part->totals[r];
        for (int32_t i = 0; i < head_dim; i += LANES)
            store(job->output + place * head_dim + i, load(sums + i) * norm);
    }
}

static void compute_task(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    TaskRows part;
    carve_task(job, index, worker, &part);
    score(job, &part);
    for (int32_t r = 0; r < part.rows; r++) {
        float *scores = part.scores + r * part.scores_stride;
        int is_bf16 = job->cache->type == BF16;
        uint32_t *words = (uint32_t *)scores + packed_offset(part.start, is_bf16);
        const float *sink = job->attention->sinks == NULL ? NULL : job->attention->sinks + part.head[r];
        part.totals[r] = exp_scores(scores, part.start, part.begin[r], part.counts[r], sink);
        /* In place, never ahead of what is read. */
        for (int32_t i = part.start; i < part.counts[r]; i += LANES)
            words += pack_words(load(scores + i), words, is_bf16);
    }
    weigh_values(job, &part);
}

void attend(Pool *pool, const Cache *cache, int32_t layer, const Attention *attention, const Tree *tree,
            int32_t first, const float *q, int32_t stride, float *output, float *scratch,
            int64_t scratch_size) {
    const LayerCache *layer_cache = cache->layers + layer;
    Job job = {cache, layer_cache, attention, tree, layer, first, q, stride, output, scratch, scratch_size};
    parallel_for(pool, compute_task, &job, blocks_of(&job) * layer_cache->num_kv_heads);
}
