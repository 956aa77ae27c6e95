#include "blocks.h"

#include "codes.h"
#include "pool.h"
#include "words.h"

#include <stddef.h>

/* MAX_ROWS: rows that a tile is multiplied with at once. Measured: with 16 in one pass, 3 % less time than
   in two.
   STREAMS: tiles that a thread multiplies in turns, block by block. The processor fetches each ahead, but
   only within a page of memory. Measured with two threads: one row takes up to 10 % less time than with a
   single stream, eight rows 10 %.
   MAX_GROUP: tiles of a task. At its start nothing is fetched ahead yet. Measured: one row takes 15 % less
   time than with four tiles.
   PREFETCH_ROWS, PREFETCH_BYTES: from how many rows on weights are asked for, and how far ahead. One row
   becomes 15 % slower by it: the requests fill the queue of the first cache. */
enum { MAX_ROWS = 16, STREAMS = 4, MAX_GROUP = 16, PREFETCH_ROWS = 3, PREFETCH_BYTES = 2048 };
enum { WORKER_TASKS = 8 };     /* tasks for each worker, so that all end at about the same time */
enum { SPANS = TILE / WIDTH }; /* vectors of a tile */
enum { WORDS = BLOCK / 4 };    /* of a block, for one output */
enum { PACK_ROWS = 2 };        /* rows of a task */

typedef struct {
    const Linear *layer;
    const uint32_t *inputs;
    int32_t rows;
    const float *residual;
    float *y;
    int32_t stride;
    int32_t group; /* tiles of a task */
} Job;

/* Properties of a type. is_halved: a scale for each half of a block. */
INLINE int is_i_quant(int type) { return type >= IQ4_XS; }
INLINE int is_halved(int type) { return type == Q6_K || type == Q8_AFFINE || is_i_quant(type); }
INLINE int has_pair(int type) { return type == Q4_1 || type == Q5_1; } /* of scale and min */
INLINE int is_super(int type) {
    return type == Q4_K || type == Q5_K || type == Q6_K || is_i_quant(type);
}
INLINE int has_min(int type) { return type == Q4_K || type == Q5_K || type == Q8_AFFINE || has_pair(type); }
INLINE int has_table(int type) {
    return type == MXFP4 || type == IQ4_NL || type == NF4 || is_i_quant(type);
}
INLINE int has_fifth(int type) { return type == Q5_0 || type == Q5_1 || type == Q5_K; }
INLINE int is_wide(int type) {
    return type == Q8_0 || type == Q8_AFFINE || type == IQ4_NL || type == NF4 || type == IQ4_XS;
}
INLINE int offset_of(int type) {
    if (is_wide(type)) return ARE_SIGNED ? 0 : 128;
    switch (type) {
    case Q4_0: return 8;
    case IQ1: return 9;
    case MXFP4: return 12;
    case IQ3_S: return 15;
    case Q5_0: return 16;
    case Q6_K: return 32;
    case IQ2: return 43;
    case IQ3_XXS: return 62;
    default: return 0;
    }
}

/* Largest code, after the table. */
INLINE int max_code(int type) {
    if (is_wide(type)) return 255;
    if (is_i_quant(type)) return 2 * offset_of(type);
    return type == Q6_K ? 63 : has_fifth(type) ? 31 : type == MXFP4 ? 24 : 15;
}

/* Words that precede the inputs of a packed block: the scale, the start of the integer sums, and the sum of
   the inputs, which minimums are multiplied with. */
INLINE int fields(int type) {
    int parts = is_halved(type) ? 2 : 1;
    return 1 + (offset_of(type) ? parts : 0) + (has_min(type) ? parts : 0);
}
INLINE int row_words(int type) { return fields(type) + WORDS; }

INLINE int code_bytes(int type) {
    int is_eight = type == Q8_0 || type == Q8_AFFINE;
    return TILE * BLOCK / 8 * (is_eight ? 8 : type == Q6_K ? 6 : has_fifth(type) ? 5 : 4);
}

/* Bytes of the scales of a block of a tile, and of those that precede eight blocks. */
INLINE int scale_bytes(int type) {
    return TILE * (type == Q8_AFFINE ? 16 : has_pair(type) ? 4 : type == MXFP4 ? 1 : 2);
}
INLINE int super_bytes(int type) { return TILE * (!is_super(type) ? 0 : is_halved(type) ? 2 : 4); }

/* Factor of d. */
INLINE float unit_of(int type) {
    return type == IQ2 || type == IQ1 ? 0.125f : type == IQ3_XXS ? 0.25f : 1.0f;
}

static int64_t tile_bytes(const Linear *layer) {
    int type = layer->type;
    int64_t blocks = layer->inputs / BLOCK, bytes = scale_bytes(type) + code_bytes(type);
    return blocks * bytes + (is_super(type) ? blocks / (SUPER / BLOCK) * super_bytes(type) : 0);
}

static int64_t packed_words(const Linear *layer) {
    return (int64_t)(layer->inputs / BLOCK) * row_words(layer->type);
}

/* Number of rows of the block that starts at `row`; blocks have about the same size. */
static int32_t block_rows(int32_t rows, int32_t row) {
    int32_t left = rows - row, blocks = (left + MAX_ROWS - 1) / MAX_ROWS;
    return (left + blocks - 1) / blocks;
}

typedef int8_t Packed __attribute__((vector_size(LANES), aligned(1)));

INLINE uint32_t sum_of(Words x) {
    x += __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    return x[0] + x[1];
}

/* Quantize a row, block by block, with `step` words from each block to the next. */
INLINE void pack_row(const float *from, int32_t inputs, uint32_t *to, int64_t step, int type) {
    int parts = is_halved(type) ? 2 : 1;
    for (int32_t first = 0; first < inputs; first += BLOCK, to += step) {
        Lanes x[2] = {load(from + first), load(from + first + LANES)};
        Lanes maxima = larger_number(choose(x[0] < 0.0f, -x[0], x[0]), choose(x[1] < 0.0f, -x[1], x[1]));
        float maximum = largest(maxima), nan = sum(x[0] * 0.0f + x[1] * 0.0f);
        float scale = maximum / 127.0f + nan;
        Lanes inverse = all(maximum > 0.0f ? 127.0f / maximum : 0.0f);
        Signed bytes[2] = {round_to_int(x[0] * inverse), round_to_int(x[1] * inverse)};
        for (int h = 0; h < 2; h++)
            *(Packed *)(to + fields(type) + h * WORDS / 2) = __builtin_convertvector(bytes[h], Packed);
        /* Unsigned: rounded NaN are arbitrary integers, whose sum may wrap. */
        uint32_t sums[2] = {sum_of((Words)bytes[0]), sum_of((Words)bytes[1])};
        if (parts == 1) sums[0] += sums[1];
        uint32_t *field = to;
        *field++ = bits_of(scale);
        for (int p = 0; p < parts && offset_of(type); p++)
            *field++ = 0u - (uint32_t)offset_of(type) * sums[p];
        for (int p = 0; p < parts && has_min(type); p++) 
            *field++ = bits_of(scale * (float)(int32_t)sums[p]);
    }
}

/* Scale of the integer sums, and minimum, of each half of a block. */
typedef struct {
    Sums scale[2], min[2];
} Scales;

typedef uint8_t Bytes __attribute__((vector_size(WIDTH), aligned(1)));
typedef int8_t SignedBytes __attribute__((vector_size(WIDTH), aligned(1)));

INLINE Sums load_bytes(const uint8_t *from) {
    return __builtin_convertvector(*(const Bytes *)from, Sums);
}
INLINE Sums load_signed_bytes(const uint8_t *from) {
    return __builtin_convertvector(*(const SignedBytes *)from, Sums);
}
INLINE Sums load_sums(const uint8_t *from) { return *(const Sums *)from; }
INLINE Codes load_codes(const uint8_t *from) { return *(const Codes *)from; }

/* Numbers of each code plus an offset: twice those of MXFP4, those of IQ4_NL, 124 times those of NF4, and
   those of the i-quants. */
static const uint8_t TABLES[8][16] = {
    {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0},
    {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241},
    {4, 42, 63, 79, 93, 105, 117, 128, 138, 148, 159, 170, 183, 198, 218, 252},
    {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241},
    {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30},
    {0, 10, 18, 26, 34, 42, 50, 58, 66, 74, 82, 90, 98, 106, 114, 124},
    {0, 18, 35, 51, 68, 86},
    {0, 2, 8, 10, 16, 18},
};
INLINE const uint8_t *table_of(int type) {
    return TABLES[is_i_quant(type) ? 3 + type - IQ4_XS : type - MXFP4];
}

/* 2^(e − 128) of bytes e, the smallest two denormal. */
INLINE Sums load_exponents(const uint8_t *from) {
    Codes e = __builtin_convertvector(*(const Bytes *)from, Codes);
    Ints is_small = e < 2;
    Codes small = ((Codes){0} + 0x00200000u) << (e & 1), other = (e - 1) << 23;
    return (Sums)(((Codes)is_small & small) | (~(Codes)is_small & other));
}

/* Unpack the codes of a block to bytes: eight words of four. */
INLINE void unpack(const uint8_t *from, Codes codes[WORDS], int type) {
    if (type == Q8_0 || type == Q8_AFFINE) {
        for (int i = 0; i < WORDS; i++) codes[i] = load_codes(from + i * 64);
    } else {
        for (int i = 0; i < WORDS / 2; i++) {
            Codes both = load_codes(from + i * 64);
            codes[i] = both & 0x0f0f0f0fu;
            codes[i + WORDS / 2] = (both >> 4) & 0x0f0f0f0fu;
        }
    }
    if (has_table(type))
        for (int i = 0; i < WORDS; i++) codes[i] = look_up(codes[i], table_of(type));
    if (has_fifth(type)) {
        Codes high = load_codes(from + WORDS / 2 * 64);
        for (int i = 0; i < WORDS; i++)
            codes[i] |= (i < 4 ? high << (4 - i) : high >> (i - 4)) & 0x10101010u;
    }
    for (int i = 0; i < WORDS && type == Q6_K; i++) {
        Codes high = load_codes(from + (WORDS / 2 + i / 4) * 64);
        Codes two = i % 4 == 0 ? high << 4 : i % 4 == 1 ? high << 2 : i % 4 == 2 ? high : high >> 2;
        codes[i] |= two & 0x30303030u;
    }
    for (int i = 0; i < WORDS && is_wide(type) && ARE_SIGNED; i++) codes[i] ^= 0x80808080u;
}

/* Scales of the outputs from `first` on. */
INLINE Scales scales_of(const uint8_t *from, int first, Sums d, Sums m, int type) {
    Scales s;
    if (type == MXFP4) {
        s.scale[0] = load_exponents(from + first);
    } else if (type == Q4_K || type == Q5_K) {
        s.scale[0] = d * load_bytes(from + first);
        s.min[0] = m * load_bytes(from + TILE + first);
    } else if (type == Q6_K || is_i_quant(type)) {
        s.scale[0] = d * load_signed_bytes(from + first);
        s.scale[1] = d * load_signed_bytes(from + TILE + first);
    } else if (type == Q8_AFFINE) {
        for (int h = 0; h < 2; h++) {
            s.scale[h] = load_sums(from + h * 2 * 64 + 4 * first);
            s.min[h] = load_sums(from + (h * 2 + 1) * 64 + 4 * first);
        }
    } else {
        s.scale[0] = load_float16(from + 2 * first);
        if (has_pair(type)) s.min[0] = -load_float16(from + 2 * TILE + 2 * first);
    }
    return s;
}

/* Add a block's products to the sums of a vector of outputs; rows are SPANS vectors apart. */
INLINE void add_block(const uint8_t *codes_at, Scales s, const uint32_t *x, Sums *total, int rows, int type) {
    int parts = is_halved(type) ? 2 : 1, count = WORDS / parts;
    int min_field = offset_of(type) ? 1 + parts : 1;
    Codes codes[WORDS];
    unpack(codes_at, codes, type);
    for (int r = 0; r < rows; r++, x += row_words(type)) {
        Sums sum = total[r * SPANS];
        for (int p = 0; p < parts; p++) {
            int32_t begin = offset_of(type) ? (int32_t)x[1 + p] : 0;
            const uint32_t *factors = x + fields(type) + p * count;
            Ints sums = multiply_codes(begin, codes + p * count, count, factors, max_code(type));
            Sums scale = s.scale[p] * all_sums(number(x[0]));
            sum = add_product(__builtin_convertvector(sums, Sums), scale, sum);
            if (has_min(type))
                sum = add_product(-s.min[p], all_sums(number(x[min_field + p])), sum);
        }
        total[r * SPANS] = sum;
    }
}

/* Store the outputs of `rows` rows of a tile. */
INLINE void put(const Job *job, int32_t row, int32_t index, const Sums *total, int rows) {
    const Linear *layer = job->layer;
    int32_t first = index * TILE, width = layer->outputs - first;
    for (int r = 0; r < rows; r++) {
        int64_t at = (int64_t)(row + r) * job->stride + first;
        if (width >= TILE) {
            for (int s = 0; s < SPANS; s++) {
                Sums y = total[r * SPANS + s];
                if (layer->bias != NULL) y += *(const Sums *)(layer->bias + first + s * WIDTH);
                if (job->residual != NULL) y += *(const Sums *)(job->residual + at + s * WIDTH);
                *(Sums *)(job->y + at + s * WIDTH) = y;
            }
            continue;
        }
        for (int i = 0; i < width; i++) {
            float y = total[r * SPANS + i / WIDTH][i % WIDTH];
            if (layer->bias != NULL) y += layer->bias[first + i];
            job->y[at + i] = job->residual == NULL ? y : y + job->residual[at + i];
        }
    }
}

/* Tiles that a thread multiplies in turns. */
typedef struct {
    int32_t first, step, count; /* `count` tiles, `step` from each to the next */
} Tiles;

/* Compute `rows` rows of some tiles; compiled for each type. */
INLINE void compute_tiles(const Job *job, int32_t row, Tiles tiles, int32_t rows, int type) {
    const Linear *layer = job->layer;
    int64_t step = tiles.step * tile_bytes(layer);
    const uint8_t *from = (const uint8_t *)layer->weight + tiles.first * tile_bytes(layer);
    const uint32_t *x = job->inputs + row * packed_words(layer);
    int block_bytes = scale_bytes(type) + code_bytes(type);
    Sums total[STREAMS][MAX_ROWS * SPANS], d[STREAMS][SPANS] = {{{0}}}, m[STREAMS][SPANS] = {{{0}}};
    for (int t = 0; t < tiles.count; t++)
        for (int i = 0; i < rows * SPANS; i++) total[t][i] = (Sums){0};
    for (int32_t b = 0; b < layer->inputs / BLOCK; b++, from += block_bytes, x += rows * row_words(type)) {
        if (is_super(type) && b % (SUPER / BLOCK) == 0) {
            for (int t = 0; t < tiles.count; t++)
                for (int s = 0; s < SPANS; s++) {
                    const uint8_t *at = from + t * step + 2 * s * WIDTH;
                    d[t][s] = load_float16(at) * all_sums(unit_of(type));
                    if (has_min(type)) m[t][s] = load_float16(at + 2 * TILE);
                }
            from += super_bytes(type);
        }
        for (int t = 0; t < tiles.count; t++) {
            const uint8_t *at = from + t * step;
            for (int i = 0; rows >= PREFETCH_ROWS && i < block_bytes; i += 64)
                __builtin_prefetch(at + PREFETCH_BYTES + i);
            for (int s = 0; s < SPANS; s++)
                add_block(at + scale_bytes(type) + 4 * s * WIDTH,
                          scales_of(at, s * WIDTH, d[t][s], m[t][s], type), x, total[t] + s, rows, type);
        }
    }
    for (int t = 0; t < tiles.count; t++) put(job, row, tiles.first + t * tiles.step, total[t], rows);
}

typedef void Compute_tiles(const Job *job, int32_t row, Tiles tiles, int32_t rows);
typedef void Pack_row(const float *from, int32_t inputs, uint32_t *to, int64_t step);

#define TYPE(type)                                                                                 \
    static void tiles_of_##type(const Job *job, int32_t row, Tiles tiles, int32_t rows) {          \
        compute_tiles(job, row, tiles, rows, type);                                                \
    }                                                                                              \
    static void row_of_##type(const float *from, int32_t inputs, uint32_t *to, int64_t step) {    \
        pack_row(from, inputs, to, step, type);                                                    \
    }
TYPE(Q4_0) TYPE(Q8_0) TYPE(Q4_K) TYPE(Q5_K) TYPE(Q6_K) TYPE(Q8_AFFINE)
TYPE(MXFP4) TYPE(IQ4_NL) TYPE(NF4) TYPE(Q4_1) TYPE(Q5_0) TYPE(Q5_1)
TYPE(IQ4_XS) TYPE(IQ3_S) TYPE(IQ3_XXS) TYPE(IQ2) TYPE(IQ1)
#undef TYPE

static Compute_tiles *const TILES[] = {
    tiles_of_Q4_0,   tiles_of_Q8_0,   tiles_of_Q4_K, tiles_of_Q5_K, tiles_of_Q6_K,   tiles_of_Q8_AFFINE,
    tiles_of_MXFP4,  tiles_of_IQ4_NL, tiles_of_NF4,  tiles_of_Q4_1, tiles_of_Q5_0,   tiles_of_Q5_1,
    tiles_of_IQ4_XS, tiles_of_IQ3_S,  tiles_of_IQ3_XXS, tiles_of_IQ2, tiles_of_IQ1};
static Pack_row *const PACKS[] = {row_of_Q4_0, row_of_Q8_0, row_of_Q4_K,  row_of_Q5_K,
                                  row_of_Q6_K, row_of_Q8_AFFINE, row_of_MXFP4, row_of_IQ4_NL,
                                  row_of_NF4, row_of_Q4_1, row_of_Q5_0, row_of_Q5_1,
                                  row_of_IQ4_XS, row_of_IQ3_S, row_of_IQ3_XXS, row_of_IQ2,
                                  row_of_IQ1};

typedef struct {
    const Linear *layer;
    const float *x;
    uint32_t *packed;
    int32_t rows;
} Packing;

static void pack_some(void *context, int32_t index, int32_t worker) {
    const Packing *job = context;
    const Linear *layer = job->layer;
    (void)worker;
    int32_t from = index * PACK_ROWS, end = from + PACK_ROWS < job->rows ? from + PACK_ROWS : job->rows;
    for (int32_t row = 0, size; row < end; row += size) {
        size = block_rows(job->rows, row);
        for (int32_t r = row < from ? from : row; r < row + size && r < end; r++)
            PACKS[layer->type - Q4_0](job->x + (int64_t)r * layer->inputs, layer->inputs,
                                      job->packed + row * packed_words(layer) +
                                          (r - row) * row_words(layer->type),
                                      (int64_t)size * row_words(layer->type));
    }
}

static void compute_task(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    (void)worker;
    Compute_tiles *compute = TILES[job->layer->type - Q4_0];
    int32_t end = (job->layer->outputs + TILE - 1) / TILE, first = index * job->group;
    if (end > first + job->group) end = first + job->group;
    while (first < end) {
        int32_t count = end - first < STREAMS ? end - first : STREAMS, step = (end - first) / count;
        for (int32_t t = 0; t < step; t++)
            for (int32_t row = 0, rows; row < job->rows; row += rows) {
                rows = block_rows(job->rows, row);
                compute(job, row, (Tiles){first + t, step, count}, rows);
            }
        first += step * count;
    }
}

/* Tiles of a task: fewer where workers would have too few tasks. */
static int32_t group_of(const Pool *pool, int32_t tiles) {
    int32_t tasks = WORKER_TASKS * (pool == NULL ? 1 : pool->workers), group = 1;
    while (group < MAX_GROUP && tiles >= 2 * group * tasks) group *= 2;
    return group;
}

void blocks_linear(Pool *pool, const Linear *layer, const float *x, uint32_t *packed, int32_t rows,
                   const float *residual, float *y, int32_t stride) {
    if (x != NULL) {
        Packing packing = {layer, x, packed, rows};
        parallel_for(pool, pack_some, &packing, (rows + PACK_ROWS - 1) / PACK_ROWS);
    }
    int32_t tiles = (layer->outputs + TILE - 1) / TILE, group = group_of(pool, tiles);
    Job job = {layer, packed, rows, residual, y, stride, group};
    parallel_for(pool, compute_task, &job, (tiles + group - 1) / group);
}
