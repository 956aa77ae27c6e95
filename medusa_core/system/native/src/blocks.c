#include "blocks.h"

#include <stddef.h>

#include "codes.h"
#include "words.h"

/* Rows that a tile is multiplied with at once. With AVX-512 the registers hold their sums. Measured. */
#if defined(__AVX512F__)
enum { MOST = 12 };
#else
enum { MOST = 16 };
#endif
enum { SPANS = TILE / ABREAST };
enum { WORDS = BLOCK / 4 }; /* of a block's inputs, and of an output's codes */
enum { EACH = 8 };          /* rows of a piece of packing */

typedef struct {
    const Linear *layer;
    const uint32_t *inputs;
    int32_t rows;
    const float *plus;
    float *y;
    int32_t stride;
    int32_t group; /* tiles of a piece */
} Job;

/* What a kind asks of the inputs' sums: by block or by half block. */
INLINE int is_i_quant(int kind) { return kind >= IQ4_XS; }
INLINE int is_halved(int kind) { return kind == Q6_K || kind == WIDE || is_i_quant(kind); }
INLINE int has_pair(int kind) { return kind == Q4_1 || kind == Q5_1; } /* of scale and least */
INLINE int is_super(int kind) {
    return kind == Q4_K || kind == Q5_K || kind == Q6_K || is_i_quant(kind);
}
INLINE int has_least(int kind) { return kind == Q4_K || kind == Q5_K || kind == WIDE || has_pair(kind); }
INLINE int has_table(int kind) {
    return kind == MXFP4 || kind == IQ4_NL || kind == NF4 || is_i_quant(kind);
}
INLINE int has_fifth(int kind) { return kind == Q5_0 || kind == Q5_1 || kind == Q5_K; }
INLINE int is_wide(int kind) {
    return kind == Q8_0 || kind == WIDE || kind == IQ4_NL || kind == NF4 || kind == IQ4_XS;
}
INLINE int offset_of(int kind) {
    if (is_wide(kind)) return ARE_SIGNED ? 0 : 128;
    switch (kind) {
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

/* The largest code. */
INLINE int most_of(int kind) {
    if (is_wide(kind)) return 255;
    if (is_i_quant(kind)) return 2 * offset_of(kind);
    return kind == Q6_K ? 63 : has_fifth(kind) ? 31 : kind == MXFP4 ? 24 : 15;
}

/* Words before the inputs of a block: the scale, what integer sums begin with, and the inputs' sum,
   which takes what is least. */
INLINE int fields(int kind) {
    int parts = is_halved(kind) ? 2 : 1;
    return 1 + (offset_of(kind) ? parts : 0) + (has_least(kind) ? parts : 0);
}
INLINE int row_words(int kind) { return fields(kind) + WORDS; }

INLINE int code_bytes(int kind) {
    int is_eight = kind == Q8_0 || kind == WIDE;
    return TILE * BLOCK / 8 * (is_eight ? 8 : kind == Q6_K ? 6 : has_fifth(kind) ? 5 : 4);
}

/* Bytes of a block's scales in a tile, and of what stands before eight blocks. */
INLINE int scale_bytes(int kind) {
    return TILE * (kind == WIDE ? 16 : has_pair(kind) ? 4 : kind == MXFP4 ? 1 : 2);
}
INLINE int super_bytes(int kind) { return TILE * (!is_super(kind) ? 0 : is_halved(kind) ? 2 : 4); }

/* What a kind's d is a multiple of. */
INLINE float unit_of(int kind) {
    return kind == IQ2 || kind == IQ1 ? 0.125f : kind == IQ3_XXS ? 0.25f : 1.0f;
}

static int64_t tile_bytes(const Linear *layer) {
    int kind = layer->kind;
    int64_t blocks = layer->inputs / BLOCK, bytes = scale_bytes(kind) + code_bytes(kind);
    return blocks * bytes + (is_super(kind) ? blocks / (SUPER / BLOCK) * super_bytes(kind) : 0);
}

static int64_t packed_words(const Linear *layer) {
    return (int64_t)(layer->inputs / BLOCK) * row_words(layer->kind);
}

/* Rows go in blocks of about the same size: the rows of the block that starts at `row`. */
static int32_t block_rows(int32_t rows, int32_t row) {
    int32_t left = rows - row, blocks = (left + MOST - 1) / MOST;
    return (left + blocks - 1) / blocks;
}

typedef int8_t Packed __attribute__((vector_size(LANES), aligned(1)));

INLINE uint32_t sum_of(Words x) {
    x += __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    return x[0] + x[1];
}

/* One row, block by block; what belongs to `rows` rows of a block lies one behind the other. */
INLINE void pack_row(const float *from, int32_t inputs, uint32_t *to, int64_t step, int kind) {
    int parts = is_halved(kind) ? 2 : 1;
    for (int32_t first = 0; first < inputs; first += BLOCK, to += step) {
        Lanes x[2] = {load(from + first), load(from + first + LANES)};
        Lanes most = larger_number(choose(x[0] < 0.0f, -x[0], x[0]), choose(x[1] < 0.0f, -x[1], x[1]));
        float reach = largest(most), no_number = sum(x[0] * 0.0f + x[1] * 0.0f);
        float scale = reach / 127.0f + no_number;
        Lanes turned = all(reach > 0.0f ? 127.0f / reach : 0.0f);
        Signed bytes[2] = {to_whole(x[0] * turned), to_whole(x[1] * turned)};
        for (int h = 0; h < 2; h++)
            *(Packed *)(to + fields(kind) + h * WORDS / 2) = __builtin_convertvector(bytes[h], Packed);
        /* As words: those of what is no number are anything, and may wrap. */
        uint32_t sums[2] = {sum_of((Words)bytes[0]), sum_of((Words)bytes[1])};
        if (parts == 1) sums[0] += sums[1];
        uint32_t *field = to;
        *field++ = bits_of(scale);
        for (int p = 0; p < parts && offset_of(kind); p++)
            *field++ = 0u - (uint32_t)offset_of(kind) * sums[p];
        for (int p = 0; p < parts && has_least(kind); p++) 
            *field++ = bits_of(scale * (float)(int32_t)sums[p]);
    }
}

/* What a block multiplies its whole sums with, by half, and what it takes off. */
typedef struct {
    Sums scale[2], least[2];
} Scales;

typedef uint8_t Bytes __attribute__((vector_size(ABREAST), aligned(1)));
typedef int8_t SignedBytes __attribute__((vector_size(ABREAST), aligned(1)));

INLINE Sums load_bytes(const uint8_t *from) {
    return __builtin_convertvector(*(const Bytes *)from, Sums);
}
INLINE Sums load_signed_bytes(const uint8_t *from) {
    return __builtin_convertvector(*(const SignedBytes *)from, Sums);
}
INLINE Sums load_sums(const uint8_t *from) { return *(const Sums *)from; }
INLINE Codes load_codes(const uint8_t *from) { return *(const Codes *)from; }

/* Twice the numbers of MXFP4, 12 more; those of IQ4_NL, and 124 times those of nf4, 128 more; those of
   the i-quants by their own offsets. */
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
INLINE const uint8_t *table_of(int kind) {
    return TABLES[is_i_quant(kind) ? 3 + kind - IQ4_XS : kind - MXFP4];
}

/* 2^(e − 128) of bytes e, the smallest two denormal. */
INLINE Sums load_exponents(const uint8_t *from) {
    Codes e = __builtin_convertvector(*(const Bytes *)from, Codes);
    Wholes is_small = e < 2;
    Codes small = ((Codes){0} + 0x00200000u) << (e & 1), other = (e - 1) << 23;
    return (Sums)(((Codes)is_small & small) | (~(Codes)is_small & other));
}

/* A block's codes as eight words of four, each a byte. */
INLINE void unpack(const uint8_t *from, Codes codes[WORDS], int kind) {
    if (kind == Q8_0 || kind == WIDE) {
        for (int i = 0; i < WORDS; i++) codes[i] = load_codes(from + i * 64);
    } else {
        for (int i = 0; i < WORDS / 2; i++) {
            Codes both = load_codes(from + i * 64);
            codes[i] = both & 0x0f0f0f0fu;
            codes[i + WORDS / 2] = (both >> 4) & 0x0f0f0f0fu;
        }
    }
    if (has_table(kind))
        for (int i = 0; i < WORDS; i++) codes[i] = look_up(codes[i], table_of(kind));
    if (has_fifth(kind)) {
        Codes high = load_codes(from + WORDS / 2 * 64);
        for (int i = 0; i < WORDS; i++)
            codes[i] |= (i < 4 ? high << (4 - i) : high >> (i - 4)) & 0x10101010u;
    }
    for (int i = 0; i < WORDS && kind == Q6_K; i++) {
        Codes high = load_codes(from + (WORDS / 2 + i / 4) * 64);
        Codes two = i % 4 == 0 ? high << 4 : i % 4 == 1 ? high << 2 : i % 4 == 2 ? high : high >> 2;
        codes[i] |= two & 0x30303030u;
    }
    for (int i = 0; i < WORDS && is_wide(kind) && ARE_SIGNED; i++) codes[i] ^= 0x80808080u;
}

/* Of the outputs from `first` on. */
INLINE Scales scales_of(const uint8_t *from, int first, Sums d, Sums m, int kind) {
    Scales s;
    if (kind == MXFP4) {
        s.scale[0] = load_exponents(from + first);
    } else if (kind == Q4_K || kind == Q5_K) {
        s.scale[0] = d * load_bytes(from + first);
        s.least[0] = m * load_bytes(from + TILE + first);
    } else if (kind == Q6_K || is_i_quant(kind)) {
        s.scale[0] = d * load_signed_bytes(from + first);
        s.scale[1] = d * load_signed_bytes(from + TILE + first);
    } else if (kind == WIDE) {
        for (int h = 0; h < 2; h++) {
            s.scale[h] = load_sums(from + h * 2 * 64 + 4 * first);
            s.least[h] = load_sums(from + (h * 2 + 1) * 64 + 4 * first);
        }
    } else {
        s.scale[0] = load_float16(from + 2 * first);
        if (has_pair(kind)) s.least[0] = -load_float16(from + 2 * TILE + 2 * first);
    }
    return s;
}

/* One block's share of some outputs' sums of `rows` rows, SPANS vectors apart. */
INLINE void add_block(const uint8_t *codes_at, Scales s, const uint32_t *x, Sums *total, int rows, int kind) {
    int parts = is_halved(kind) ? 2 : 1, count = WORDS / parts;
    int first_least = offset_of(kind) ? 1 + parts : 1;
    Codes codes[WORDS];
    unpack(codes_at, codes, kind);
    for (int r = 0; r < rows; r++, x += row_words(kind)) {
        Sums sum = total[r * SPANS];
        for (int p = 0; p < parts; p++) {
            int32_t begin = offset_of(kind) ? (int32_t)x[1 + p] : 0;
            const uint32_t *factors = x + fields(kind) + p * count;
            Wholes whole = multiply_codes(begin, codes + p * count, count, factors, most_of(kind));
            Sums scale = s.scale[p] * all_sums(number(x[0]));
            sum = add_product(__builtin_convertvector(whole, Sums), scale, sum);
            if (has_least(kind))
                sum = add_product(-s.least[p], all_sums(number(x[first_least + p])), sum);
        }
        total[r * SPANS] = sum;
    }
}

/* The sums of `rows` rows of a tile as results. */
INLINE void put(const Job *job, int32_t row, int32_t index, const Sums *total, int rows) {
    const Linear *layer = job->layer;
    int32_t first = index * TILE, width = layer->outputs - first;
    for (int r = 0; r < rows; r++) {
        int64_t at = (int64_t)(row + r) * job->stride + first;
        if (width >= TILE) {
            for (int s = 0; s < SPANS; s++) {
                Sums y = total[r * SPANS + s];
                if (layer->bias != NULL) y += *(const Sums *)(layer->bias + first + s * ABREAST);
                if (job->plus != NULL) y += *(const Sums *)(job->plus + at + s * ABREAST);
                *(Sums *)(job->y + at + s * ABREAST) = y;
            }
            continue;
        }
        for (int i = 0; i < width; i++) {
            float y = total[r * SPANS + i / ABREAST][i % ABREAST];
            if (layer->bias != NULL) y += layer->bias[first + i];
            job->y[at + i] = job->plus == NULL ? y : y + job->plus[at + i];
        }
    }
}

/* `rows` rows of a tile; the kind is known when this is compiled. */
INLINE void tile(const Job *job, int32_t row, int32_t index, int rows, int kind) {
    const Linear *layer = job->layer;
    const uint8_t *from = (const uint8_t *)layer->weight + index * tile_bytes(layer);
    const uint32_t *x = job->inputs + row * packed_words(layer);
    Sums total[MOST * SPANS], d[SPANS] = {{0}}, m[SPANS] = {{0}};
    for (int i = 0; i < rows * SPANS; i++) total[i] = (Sums){0};
    for (int32_t left = layer->inputs / BLOCK; left > 0;) {
        int32_t some = 1;
        if (is_super(kind)) {
            for (int s = 0; s < SPANS; s++) {
                d[s] = load_float16(from + 2 * s * ABREAST) * all_sums(unit_of(kind));
                if (has_least(kind)) m[s] = load_float16(from + 2 * TILE + 2 * s * ABREAST);
            }
            from += super_bytes(kind);
            some = SUPER / BLOCK;
        }
        for (int32_t b = 0; b < some; b++, x += rows * row_words(kind)) {
            for (int s = 0; s < SPANS; s++)
                add_block(from + scale_bytes(kind) + 4 * s * ABREAST,
                          scales_of(from, s * ABREAST, d[s], m[s], kind), x, total + s, rows, kind);
            from += scale_bytes(kind) + code_bytes(kind);
        }
        left -= some;
    }
    put(job, row, index, total, rows);
}

INLINE void rows_of_tile(const Job *job, int32_t row, int32_t index, int32_t rows, int kind) {
#if defined(__AVX512F__)
#define CASE(n)                                                                                    \
    case n: tile(job, row, index, n, kind); break;
    switch (rows) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
        CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
    }
#undef CASE
#else
    tile(job, row, index, rows, kind);
#endif
}

typedef void Rows_of_tile(const Job *job, int32_t row, int32_t index, int32_t rows);
typedef void Pack_row(const float *from, int32_t inputs, uint32_t *to, int64_t step);

#define KIND(kind)                                                                                 \
    static void tile_of_##kind(const Job *job, int32_t row, int32_t index, int32_t rows) {        \
        rows_of_tile(job, row, index, rows, kind);                                                 \
    }                                                                                              \
    static void row_of_##kind(const float *from, int32_t inputs, uint32_t *to, int64_t step) {    \
        pack_row(from, inputs, to, step, kind);                                                    \
    }
KIND(Q4_0) KIND(Q8_0) KIND(Q4_K) KIND(Q5_K) KIND(Q6_K) KIND(WIDE)
KIND(MXFP4) KIND(IQ4_NL) KIND(NF4) KIND(Q4_1) KIND(Q5_0) KIND(Q5_1)
KIND(IQ4_XS) KIND(IQ3_S) KIND(IQ3_XXS) KIND(IQ2) KIND(IQ1)
#undef KIND

static Rows_of_tile *const TILES[] = {tile_of_Q4_0, tile_of_Q8_0, tile_of_Q4_K,  tile_of_Q5_K,
                                      tile_of_Q6_K, tile_of_WIDE, tile_of_MXFP4, tile_of_IQ4_NL,
                                      tile_of_NF4, tile_of_Q4_1, tile_of_Q5_0, tile_of_Q5_1,
                                      tile_of_IQ4_XS, tile_of_IQ3_S, tile_of_IQ3_XXS,
                                      tile_of_IQ2, tile_of_IQ1};
static Pack_row *const PACKS[] = {row_of_Q4_0, row_of_Q8_0, row_of_Q4_K,  row_of_Q5_K,
                                  row_of_Q6_K, row_of_WIDE, row_of_MXFP4, row_of_IQ4_NL,
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
    int32_t from = index * EACH, end = from + EACH < job->rows ? from + EACH : job->rows;
    for (int32_t row = 0, size; row < end; row += size) {
        size = block_rows(job->rows, row);
        for (int32_t r = row < from ? from : row; r < row + size && r < end; r++)
            PACKS[layer->kind - Q4_0](job->x + (int64_t)r * layer->inputs, layer->inputs,
                                      job->packed + row * packed_words(layer) +
                                          (r - row) * row_words(layer->kind),
                                      (int64_t)size * row_words(layer->kind));
    }
}

static void piece(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    (void)worker;
    Rows_of_tile *compute = TILES[job->layer->kind - Q4_0];
    int32_t tiles = (job->layer->outputs + TILE - 1) / TILE;
    int32_t end = (index + 1) * job->group < tiles ? (index + 1) * job->group : tiles;
    for (int32_t t = index * job->group; t < end; t++)
        for (int32_t row = 0, rows; row < job->rows; row += rows) {
            rows = block_rows(job->rows, row);
            compute(job, row, t, rows);
        }
}

void blocks_linear(Pool *pool, const Linear *layer, const float *x, uint32_t *packed, int32_t rows,
                   const float *plus, float *y, int32_t stride) {
    Packing packing = {layer, x, packed, rows};
    share(pool, pack_some, &packing, (rows + EACH - 1) / EACH);
    int32_t tiles = (layer->outputs + TILE - 1) / TILE, group = tiles < 128 ? 1 : 4;
    Job job = {layer, packed, rows, plus, y, stride, group};
    share(pool, piece, &job, (tiles + group - 1) / group);
}
