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
/* Of Q8_0 a task has up to four such tiles: they share the keys and values that it dequantizes, some slots
   at a time, as float32. There are still enough tasks for a few threads. */
enum { MAX_TASK_ROWS = 4 * TILE_ROWS, MIN_TASKS = 4, DEQUANTIZED_SLOTS = 8 * LANES };
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

/* Rows of sums, `stride` floats apart; `is_new`: they start at 0, whatever the memory holds. */
typedef struct {
    float *to;
    int64_t stride;
    int is_new;
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
        for (int v = 0; v < vectors; v++)
            total[r][v] = sums.is_new ? (Lanes){0} : load(to + r * sums.stride + v * LANES);
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

/* sums = rows × keys, as tile() of dequantized keys: for some panels, dimension by dimension. */
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

/* multiply() for all rows of a task. */
static void multiply_rows(const Matrix *matrix, PackedRows x, Sums sums, int32_t rows) {
    for (int32_t r = 0; r < rows; r += TILE_ROWS) {
        PackedRows from = {x.words + r * x.stride, x.stride};
        Sums to = {sums.to + r * sums.stride, sums.stride, sums.is_new};
        multiply(matrix, from, to, rows - r < TILE_ROWS ? rows - r : TILE_ROWS);
    }
}

/* Dequantize the keys of some slots from the start of a panel on, in panels again. */
static Matrix dequantize_keys(const uint32_t *panel, int32_t head_dim, int32_t slots, float *to) {
    int32_t panels = (slots + LANES - 1) / LANES;
    Matrix keys = {(uint32_t *)to, LANES, (int64_t)head_dim * LANES, head_dim, panels, 0};
    for (int32_t p = 0; p < panels; p++, panel += panel_words(head_dim))
        for (int32_t i = 0; i < head_dim; i += 4, to += 4 * LANES) {
            Words words = load_words(panel + i / 4 * LANES);
            Lanes scales = panel_scales(panel, head_dim, i / BLOCK);
            for (int d = 0; d < 4; d++) store(to + d * LANES, key_codes(words, d) * scales);
        }
    return keys;
}

/* Dequantize the values of some slots of a panel from its slot `first` on. */
INLINE void dequantize_panel(const uint32_t *panel, int32_t head_dim, int32_t first, int32_t slots,
                             float *to) {
    const int8_t *codes = (const int8_t *)panel + first * head_dim;
    for (int32_t i = 0; i < head_dim; i += LANES) {
        float scales[LANES];
        store(scales, panel_scales(panel, head_dim, i / BLOCK));
        for (int32_t s = 0; s < slots; s++)
            store(to + s * head_dim + i, value_codes(codes + s * head_dim + i) * scales[first + s]);
    }
}

static Matrix dequantize_values(const uint32_t *panel, int32_t head_dim, int32_t slots, float *to) {
    for (int32_t s = 0; s < slots; s += LANES, panel += panel_words(head_dim))
        dequantize_panel(panel, head_dim, 0, slots - s < LANES ? slots - s : LANES, to + s * head_dim);
    return (Matrix){(uint32_t *)to, head_dim, LANES, slots, head_dim / LANES, 0};
}

/* A task: some rows of the query heads that share a KV head. */
typedef struct {
    int32_t rows, kv_head, end; /* rows of the pass from `end` on are attended to by none */
    int32_t row[MAX_TASK_ROWS], head[MAX_TASK_ROWS];
    int32_t begin[MAX_TASK_ROWS], counts[MAX_TASK_ROWS]; /* range of positions that each attends to */
    int32_t start;                               /* lowest of these, rounded down to LANES */
    int32_t *path[MAX_TASK_ROWS]; /* slots of its ancestors and itself */
    int64_t scores_stride;
    float *scores, *sums, *dequantized;
    uint32_t *q, *gathered;
    float totals[MAX_TASK_ROWS];
} TaskRows;

int64_t attention_scratch(int32_t head_dim, int32_t num_committed, int32_t rows) {
    int64_t slots = padded(rows), copied = (int64_t)(rows + 2 + DEQUANTIZED_SLOTS) * head_dim;
    return MAX_TASK_ROWS * (padded(num_committed + rows) + slots + 2 * head_dim) + copied;
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

/* Tasks of a KV head. */
static int32_t blocks_of(const Job *job) {
    int32_t queries = (job->tree->num_rows - job->first) * group_of(job);
    int32_t tiles = (queries + TILE_ROWS - 1) / TILE_ROWS;
    if (job->cache->type != Q8_0) return tiles;
    int32_t blocks = (queries + MAX_TASK_ROWS - 1) / MAX_TASK_ROWS;
    while (blocks < tiles && blocks * job->layer_cache->num_kv_heads < MIN_TASKS) blocks++;
    return blocks;
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
    part->sums = part->scores + MAX_TASK_ROWS * part->scores_stride;
    part->q = (uint32_t *)part->sums + MAX_TASK_ROWS * head_dim;
    int32_t *paths = (int32_t *)part->q + MAX_TASK_ROWS * head_dim;
    part->dequantized = (float *)paths + MAX_TASK_ROWS * padded(tree->num_rows);
    part->gathered = (uint32_t *)part->dequantized + DEQUANTIZED_SLOTS * head_dim;
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

/* Where the slots from `at` on end that are multiplied together. */
static int32_t piece_end(const Cache *cache, Slots slots, int32_t rows, int32_t at, int32_t end) {
    int32_t is_dequantized = cache->type == Q8_0 && rows > TILE_ROWS;
    if (is_dequantized && end > at + DEQUANTIZED_SLOTS) end = at + DEQUANTIZED_SLOTS;
    return slots.end < end ? (int32_t)slots.end : end;
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
    for (int32_t at = start; at < end;) {
        Slots slots = keys_from(cache, job->layer, part->kv_head, at);
        int32_t stop = piece_end(cache, slots, part->rows, at, end);
        PackedRows q = {part->q, head_dim};
        Sums sums = {part->scores + at, part->scores_stride, 1};
        if (cache->type == Q8_0 && part->rows <= TILE_ROWS) {
            multiply_panels(&(Panels){slots.words, head_dim, stop - at}, q, sums, part->rows, 1);
        } else {
            Matrix keys = {slots.words, LANES, (int64_t)words * LANES, words, (stop - at) / LANES, is_bf16};
            if (cache->type == Q8_0)
                keys = dequantize_keys(slots.words, head_dim, stop - at, part->dequantized);
            multiply_rows(&keys, q, sums, part->rows);
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

/* Pack 16 numbers for add(), of which none is subnormal; else like pack_words(). */
INLINE int32_t pack_weights(Lanes numbers, uint32_t *to, int is_bf16) {
#if HAS_BF16_DOT
    if (is_bf16) {
        __m256bh halves = _mm512_cvtneps_pbh((__m512)numbers);
        __builtin_memcpy(to, &halves, sizeof halves);
        return LANES / 2;
    }
#endif
    return pack_words(numbers, to, is_bf16);
}

/* Largest of the scores. Four maxima take turns, as each comparison waits for the one before. */
INLINE float largest_score(const float *scores, int32_t count) {
    Lanes maxima[4];
    int32_t i = LANES;
    for (int m = 0; m < 4; m++) maxima[m] = load(scores);
    for (; i + 4 * LANES <= count; i += 4 * LANES)
        for (int m = 0; m < 4; m++) maxima[m] = larger_number(maxima[m], load(scores + i + m * LANES));
    for (; i < count; i += LANES) maxima[0] = larger_number(maxima[0], load(scores + i));
    return largest(larger_number(larger_number(maxima[0], maxima[1]), larger_number(maxima[2], maxima[3])));
}

/* Softmax without the division: scores from `begin` on become e^(score − maximum), those from `start` to it
   0, packed as weights of values at `packed`, which may be `scores` or before; their sum with the sink's is
   returned. As scores are in the order of positions, the sum has the order of plain
   decoding. */
INLINE float exp_scores(float *scores, int32_t begin, int32_t count, const float *sink, uint32_t *packed,
                        int is_bf16) {
    int32_t end = padded(count);
    for (int32_t i = 0; i < begin; i++) scores[i] = -__builtin_inff();
    for (int32_t i = count; i < end; i++) scores[i] = -__builtin_inff();
    Lanes top = all(largest_score(scores, end));
    if (sink != NULL) top = larger(top, all(*sink));
    Lanes total = {0};
    for (int32_t i = 0; i < end; i += LANES) {
        Lanes weight = exponential(load(scores + i) - top);
        packed += pack_weights(weight, packed, is_bf16);
        total += weight;
    }
    return sum(total) + (sink == NULL ? 0.0f : exponential(all(*sink) - top)[0]);
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
            const uint32_t *panel = values + (slot - own) / LANES * panel_words(head_dim);
            float *to = (float *)part->gathered + (place - from) * head_dim;
            dequantize_panel(panel, head_dim, (int32_t)(slot - own) % LANES, 1, to);
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
        int32_t stop = piece_end(cache, slots, part->rows, at, shared);
        const uint32_t *from = (const uint32_t *)part->scores + packed_offset(at, is_bf16);
        PackedRows weights = {from, part->scores_stride};
        Sums sums = {part->sums, head_dim, 0};
        if (cache->type == Q8_0 && part->rows <= TILE_ROWS) {
            multiply_panels(&(Panels){slots.words, head_dim, stop - at}, weights, sums, part->rows, 0);
        } else {
            Matrix values = {slots.words, head_dim, LANES, (stop - at) / size, head_dim / LANES, is_bf16};
            if (cache->type == Q8_0)
                values = dequantize_values(slots.words, head_dim, stop - at, part->dequantized);
            multiply_rows(&values, weights, sums, part->rows);
        }
        at = stop;
    }
    for (int32_t r = 0; r < part->rows; r++) {
        Matrix rest = gather(job, part, r, shared);
        const uint32_t *of_row = (const uint32_t *)part->scores + r * part->scores_stride;
        PackedRows factors = {of_row + packed_offset(shared, is_bf16), part->scores_stride};
        float *sums = part->sums + r * head_dim;
        multiply(&rest, factors, (Sums){sums, head_dim, 0}, 1);
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
    int is_bf16 = job->cache->type == BF16;
    for (int32_t r = 0; r < part.rows; r++) {
        float *row = part.scores + r * part.scores_stride, *scores = row + part.start;
        uint32_t *words = (uint32_t *)row + packed_offset(part.start, is_bf16); /* never ahead of `scores` */
        const float *sink = job->attention->sinks == NULL ? NULL : job->attention->sinks + part.head[r];
        int32_t begin = part.begin[r] - part.start, count = part.counts[r] - part.start;
        part.totals[r] = is_bf16 ? exp_scores(scores, begin, count, sink, words, 1)
                                 : exp_scores(scores, begin, count, sink, words, 0);
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
