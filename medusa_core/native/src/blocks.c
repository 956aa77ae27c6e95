#include "blocks.h"

#include <stddef.h>
#include <string.h>

#include "bytes.h"
#include "words.h"

/* Rows whose sums the registers hold at once. Measured. */
#if defined(__AVX512F__)
enum { MOST = 12 };
#elif defined(__AVX2__)
enum { MOST = 4 };
#else
enum { MOST = 4 };
#endif
enum { GROUP = 4 }; /* tiles of a piece */
enum { WORDS = BLOCK / 4 }; /* of a block's inputs, and of an output's codes */

typedef struct {
    const Linear *layer;
    const uint32_t *inputs;
    int32_t rows;
    const float *plus;
    float *y;
    int32_t stride;
} Job;

/* What a kind asks of the inputs' sums: by block or by half block. */
INLINE int is_halved(int kind) { return kind == Q6_K || kind == WIDE; }
INLINE int has_least(int kind) { return kind == Q4_K || kind == Q5_K || kind == WIDE; }
INLINE int is_super(int kind) { return kind == Q4_K || kind == Q5_K || kind == Q6_K; }
INLINE int has_table(int kind) { return kind == MXFP4 || kind == IQ4_NL || kind == NF4; }
INLINE int offset_of(int kind) {
    if (kind == Q8_0 || kind == WIDE || kind == IQ4_NL || kind == NF4) return 128;
    return kind == Q4_0 ? 8 : kind == MXFP4 ? 12 : kind == Q6_K ? 32 : 0;
}

/* The largest code, and how many words stand for four inputs. */
INLINE int most_of(int kind) {
    if (offset_of(kind) == 128) return 255;
    return kind == Q6_K ? 63 : kind == Q5_K ? 31 : kind == MXFP4 ? 24 : 15;
}
INLINE int each_of(int kind) { return most_of(kind) > 127 ? numbers_beside(BYTE) : CODES_EACH; }

/* Words before a block's inputs, of each row: the scale, what integer sums begin with, and the
   inputs' sum, which takes what is least. */
INLINE int fields(int kind) {
    int parts = is_halved(kind) ? 2 : 1;
    return 1 + (offset_of(kind) ? parts : 0) + (has_least(kind) ? parts : 0);
}

INLINE int code_bytes(int kind) {
    int bits = kind == Q4_0 || kind == Q4_K || has_table(kind) ? 4 : kind == Q6_K ? 6 : 8;
    return TILE * BLOCK / 8 * bits;
}

/* Bytes of a block's scales in a tile, and of what stands before eight blocks. */
INLINE int scale_bytes(int kind) { return TILE * (kind == WIDE ? 16 : kind == MXFP4 ? 1 : 2); }
INLINE int super_bytes(int kind) { return TILE * (kind == Q6_K ? 2 : is_super(kind) ? 4 : 0); }

static int64_t tile_bytes(const Linear *layer) {
    int kind = layer->kind;
    int64_t blocks = layer->inputs / BLOCK, bytes = scale_bytes(kind) + code_bytes(kind);
    return blocks * bytes + (is_super(kind) ? blocks / (SUPER / BLOCK) * super_bytes(kind) : 0);
}

static int64_t packed_words(const Linear *layer) {
    return (int64_t)(layer->inputs / BLOCK) * (fields(layer->kind) + WORDS * each_of(layer->kind));
}

/* Rows go in blocks of about the same size: the rows of the block that starts at `row`. */
static int32_t block_rows(int32_t rows, int32_t row) {
    int32_t left = rows - row, blocks = (left + MOST - 1) / MOST;
    return (left + blocks - 1) / blocks;
}

/* One row, block by block; what belongs to `rows` rows lies side by side. */
static void pack_row(int kind, const float *from, int32_t inputs, uint32_t *to, int32_t row,
                     int32_t rows) {
    int parts = is_halved(kind) ? 2 : 1, each = each_of(kind);
    int32_t size = rows * (fields(kind) + WORDS * each);
    for (int32_t first = 0; first < inputs; first += BLOCK, to += size) {
        Lanes x[2] = {load(from + first), load(from + first + LANES)};
        Lanes most = larger_number(choose(x[0] < 0.0f, -x[0], x[0]), choose(x[1] < 0.0f, -x[1], x[1]));
        float reach = largest(most), no_number = sum(x[0] * 0.0f + x[1] * 0.0f);
        float scale = reach / 127.0f + no_number;
        Lanes turned = all(reach > 0.0f ? 127.0f / reach : 0.0f);
        int32_t sums[2];
        uint32_t *words = to + rows * fields(kind) + row * each;
        for (int h = 0; h < 2; h++) {
            Signed bytes = to_whole(x[h] * turned);
            sums[h] = (int32_t)sum_of_whole((Words)bytes);
            for (int i = 0; i < LANES; i += 4, words += rows * each)
                to_bytes(bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3], words, each);
        }
        if (parts == 1) sums[0] = (int32_t)((uint32_t)sums[0] + (uint32_t)sums[1]);
        uint32_t *field = to + row;
        *field = bits_of(scale);
        for (int p = 0; p < parts && offset_of(kind); p++)
            *(field += rows) = 0u - (uint32_t)offset_of(kind) * (uint32_t)sums[p];
        for (int p = 0; p < parts && has_least(kind); p++)
            *(field += rows) = bits_of(scale * (float)sums[p]);
    }
}

static void pack(const Linear *layer, const float *x, uint32_t *packed, int32_t rows) {
    for (int32_t row = 0, size; row < rows; row += size) {
        size = block_rows(rows, row);
        for (int32_t r = 0; r < size; r++)
            pack_row(layer->kind, x + (int64_t)(row + r) * layer->inputs, layer->inputs,
                     packed + row * packed_words(layer), r, size);
    }
}

/* Sixteen float16, at any address. */
INLINE Lanes load_float16(const uint8_t *from) {
#if defined(__AVX512F__)
    return (Lanes)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
#else
    _Float16 halves[LANES];
    Lanes numbers;
    memcpy(halves, from, sizeof halves);
    for (int i = 0; i < LANES; i++) numbers[i] = (float)halves[i];
    return numbers;
#endif
}

typedef uint8_t Bytes __attribute__((vector_size(16), aligned(1)));
typedef int8_t SignedBytes __attribute__((vector_size(16), aligned(1)));

INLINE Lanes load_bytes(const uint8_t *from) {
    return __builtin_convertvector(*(const Bytes *)from, Lanes);
}
INLINE Lanes load_signed_bytes(const uint8_t *from) {
    return __builtin_convertvector(*(const SignedBytes *)from, Lanes);
}

INLINE Words load_codes(const uint8_t *from) { return *(const Words *)from; }

/* Twice the numbers of MXFP4, 12 more; those of IQ4_NL, and 124 times those of nf4, 128 more. */
static const uint8_t TABLES[3][16] = {
    {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0},
    {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241},
    {4, 42, 63, 79, 93, 105, 117, 128, 138, 148, 159, 170, 183, 198, 218, 252},
};

/* 2^(e − 128) of sixteen bytes e, the smallest two denormal. */
INLINE Lanes load_exponents(const uint8_t *from) {
    Words e = __builtin_convertvector(*(const Bytes *)from, Words);
    Signed is_small = e < 2;
    return choose(is_small, (Lanes)(((Words){0} + 0x00200000u) << (e & 1)), (Lanes)((e - 1) << 23));
}

/* A block's codes as eight words of four, each a byte. */
INLINE void unpack(const uint8_t *from, Words codes[WORDS], int kind) {
    Words low = (Words){0} + 0x0f0f0f0fu;
    if (kind == Q8_0 || kind == Q5_K || kind == WIDE) {
        for (int i = 0; i < WORDS; i++) codes[i] = load_codes(from + i * 64);
        return;
    }
    for (int i = 0; i < WORDS / 2; i++) {
        Words both = load_codes(from + i * 64);
        codes[i] = both & low;
        codes[i + WORDS / 2] = (both >> 4) & low;
    }
    if (has_table(kind))
        for (int i = 0; i < WORDS; i++) codes[i] = look_up(codes[i], TABLES[kind - MXFP4]);
    if (kind != Q6_K) return;
    for (int i = 0; i < WORDS; i++) {
        Words high = load_codes(from + (WORDS / 2 + i / 4) * 64);
        Words two = i % 4 == 0 ? high << 4 : i % 4 == 1 ? high << 2 : i % 4 == 2 ? high : high >> 2;
        codes[i] |= two & 0x30303030u;
    }
}

/* What a block multiplies its whole sums with, by half, and what it takes off. */
typedef struct {
    Lanes scale[2], least[2];
} Scales;

INLINE Scales scales_of(const uint8_t *from, Lanes d, Lanes m, int kind) {
    Scales s;
    if (kind == Q4_0 || kind == Q8_0 || kind == IQ4_NL || kind == NF4) {
        s.scale[0] = load_float16(from);
    } else if (kind == MXFP4) {
        s.scale[0] = load_exponents(from);
    } else if (kind == Q4_K || kind == Q5_K) {
        s.scale[0] = d * load_bytes(from);
        s.least[0] = m * load_bytes(from + TILE);
    } else if (kind == Q6_K) {
        s.scale[0] = d * load_signed_bytes(from);
        s.scale[1] = d * load_signed_bytes(from + TILE);
    } else {
        for (int h = 0; h < 2; h++) {
            s.scale[h] = load((const float *)(from + h * 2 * 64));
            s.least[h] = load((const float *)(from + (h * 2 + 1) * 64));
        }
    }
    return s;
}

/* One block's share of the sums of `rows` rows; returns where the next one's inputs lie. */
INLINE const uint32_t *add_block(const uint8_t *codes_at, Scales s, const uint32_t *x, Lanes *total,
                                 int rows, int kind) {
    int parts = is_halved(kind) ? 2 : 1, count = WORDS / parts, each = each_of(kind);
    int first_least = offset_of(kind) ? 1 + parts : 1;
    const uint32_t *words = x + rows * fields(kind);
    Words codes[WORDS];
    unpack(codes_at, codes, kind);
    for (int r = 0; r < rows; r++)
        for (int p = 0; p < parts; p++) {
            int32_t begin = offset_of(kind) ? (int32_t)x[(1 + p) * rows + r] : 0;
            const uint32_t *factors = words + (p * count * rows + r) * each;
            const Words *some = codes + p * count;
            Signed whole;
            if (most_of(kind) > 127) {
                whole = begin_bytes(begin);
                for (int i = 0; i < count; i++)
                    whole = add_bytes(whole, some[i], factors + i * rows * each);
            } else {
                whole = add_codes((Signed){0} + begin, some, count, factors, rows * each, most_of(kind));
            }
            Lanes scale = s.scale[p] * all(number(x[r]));
            total[r] = fma(__builtin_convertvector(whole, Lanes), scale, total[r]);
            if (has_least(kind))
                total[r] = fma(-s.least[p], all(number(x[(first_least + p) * rows + r])), total[r]);
        }
    return words + rows * WORDS * each;
}

/* `rows` rows of a tile; count and kind are known when this is compiled. */
INLINE void tile(const Job *job, int32_t row, int32_t index, int rows, int kind) {
    const Linear *layer = job->layer;
    const uint8_t *from = (const uint8_t *)layer->weight + index * tile_bytes(layer);
    const uint32_t *x = job->inputs + row * packed_words(layer);
    Lanes total[MOST], d = {0}, m = {0};
    for (int r = 0; r < rows; r++) total[r] = (Lanes){0};
    for (int32_t left = layer->inputs / BLOCK; left > 0;) {
        int32_t some = 1;
        if (is_super(kind)) {
            d = load_float16(from);
            if (has_least(kind)) m = load_float16(from + 2 * TILE);
            from += super_bytes(kind);
            some = SUPER / BLOCK;
        }
        for (int32_t b = 0; b < some; b++) {
            Scales s = scales_of(from, d, m, kind);
            x = add_block(from + scale_bytes(kind), s, x, total, rows, kind);
            from += scale_bytes(kind) + code_bytes(kind);
        }
        left -= some;
    }
    int32_t first = index * TILE, width = layer->outputs - first < TILE ? layer->outputs - first : TILE;
    for (int r = 0; r < rows; r++) {
        int64_t at = (int64_t)(row + r) * job->stride + first;
        for (int i = 0; i < width; i++) {
            float y = total[r][i];
            if (layer->bias != NULL) y += layer->bias[first + i];
            job->y[at + i] = job->plus == NULL ? y : y + job->plus[at + i];
        }
    }
}

INLINE void rows_of_tile(const Job *job, int32_t row, int32_t index, int32_t rows, int kind) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (n <= MOST) tile(job, row, index, n, kind);                                             \
        break;
    switch (rows) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
        CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
    }
#undef CASE
}

typedef void Rows_of_tile(const Job *job, int32_t row, int32_t index, int32_t rows);

#define KIND(kind)                                                                                 \
    static void tile_of_##kind(const Job *job, int32_t row, int32_t index, int32_t rows) {        \
        rows_of_tile(job, row, index, rows, kind);                                                 \
    }
KIND(Q4_0) KIND(Q8_0) KIND(Q4_K) KIND(Q5_K) KIND(Q6_K) KIND(WIDE)
KIND(MXFP4) KIND(IQ4_NL) KIND(NF4)
#undef KIND

static Rows_of_tile *const TILES[] = {tile_of_Q4_0, tile_of_Q8_0, tile_of_Q4_K,
                                      tile_of_Q5_K, tile_of_Q6_K, tile_of_WIDE,
                                      tile_of_MXFP4, tile_of_IQ4_NL, tile_of_NF4};

static void piece(void *context, int32_t index, int32_t worker) {
    const Job *job = context;
    (void)worker;
    Rows_of_tile *compute = TILES[job->layer->kind - Q4_0];
    int32_t tiles = (job->layer->outputs + TILE - 1) / TILE;
    int32_t end = (index + 1) * GROUP < tiles ? (index + 1) * GROUP : tiles;
    for (int32_t t = index * GROUP; t < end; t++)
        for (int32_t row = 0, rows; row < job->rows; row += rows) {
            rows = block_rows(job->rows, row);
            compute(job, row, t, rows);
        }
}

void blocks_linear(Pool *pool, const Linear *layer, const float *x, uint32_t *packed, int32_t rows,
                   const float *plus, float *y, int32_t stride) {
    pack(layer, x, packed, rows);
    Job job = {layer, packed, rows, plus, y, stride};
    share(pool, piece, &job, (layer->outputs + TILE * GROUP - 1) / (TILE * GROUP));
}
