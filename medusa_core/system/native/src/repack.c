/* Weights in the layout of GGUF files (llama.cpp's ggml-common.h): repacked into the tiles of blocks.h,
   dequantized, and quantized. All of it happens once, when a model is loaded. */

#include <string.h>

#include "blocks.h"
#include "bytes.h"

enum { MAX_STORED = 210, HALF_BLOCK = BLOCK / 2 };
static const uint8_t ZEROS[MAX_STORED];

/* Layout of a type. stored: bytes of a block in the file, of `weights` weights.
   scales, scale_bytes: number and size of the scales that precede a block's codes in a tile.
   above: float16 scales that precede every eight blocks. bits: of a code. */
typedef struct {
    int32_t weights, stored, scales, scale_bytes, above, bits;
} Layout;

INLINE Layout layout_of(int32_t type) {
    switch (type) {
    case Q4_0: return (Layout){BLOCK, 18, 1, 2, 0, 4};
    case IQ4_NL: return (Layout){BLOCK, 18, 1, 2, 0, 4};
    case NF4: return (Layout){BLOCK, 18, 1, 2, 0, 4};
    case MXFP4: return (Layout){BLOCK, 17, 1, 1, 0, 4};
    case Q4_1: return (Layout){BLOCK, 20, 2, 2, 0, 4};
    case Q5_0: return (Layout){BLOCK, 22, 1, 2, 0, 5};
    case Q5_1: return (Layout){BLOCK, 24, 2, 2, 0, 5};
    case Q8_0: return (Layout){BLOCK, 34, 1, 2, 0, 8};
    case Q4_K: return (Layout){SUPER, 144, 2, 1, 2, 4};
    case Q5_K: return (Layout){SUPER, 176, 2, 1, 2, 5};
    case Q6_K: return (Layout){SUPER, 210, 2, 1, 1, 6};
    default: return (Layout){0};
    }
}

INLINE uint32_t word_at(const uint8_t *from) {
    uint32_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

/* Bits 0 to 3 as the lowest bits of four bytes. */
INLINE uint32_t spread_bits(uint32_t bits) { return (bits & 15) * 0x204081 & 0x01010101; }

/* Read the codes of block `index` of a stored block of `type`. */
INLINE void read_codes(int32_t type, const uint8_t *stored, int32_t index, uint8_t codes[BLOCK]) {
    const uint8_t *from = stored;
    int32_t shift = 0;
    switch (type) {
    case Q8_0:
        for (int j = 0; j < BLOCK; j++) codes[j] = stored[2 + j] ^ 128;
        return;
    case Q4_K:
    case Q5_K:
        from += (type == Q4_K ? 16 : 48) + index / 2 * BLOCK;
        shift = index % 2 * 4;
        break;
    case Q6_K:
        from += index / 4 * 2 * BLOCK + index % 2 * BLOCK;
        shift = index % 4 / 2 * 4;
        break;
    default: /* both halves of a block of 32 share their bytes */
        from += layout_of(type).stored - HALF_BLOCK;
        for (int j = 0; j < HALF_BLOCK; j++) {
            codes[j] = from[j] & 15;
            codes[j + HALF_BLOCK] = from[j] >> 4;
        }
        if (type == Q5_0 || type == Q5_1) {
            uint32_t fifth = word_at(from - 4);
            for (int i = 0; i < BLOCK / 4; i++) {
                uint32_t word = word_at(codes + 4 * i) | spread_bits(fifth >> 4 * i) << 4;
                memcpy(codes + 4 * i, &word, sizeof word);
            }
        }
        return;
    }
    for (int j = 0; j < BLOCK; j++) codes[j] = from[j] >> shift & 15;
    if (type == Q5_K)
        for (int j = 0; j < BLOCK; j++) codes[j] |= (stored[16 + j] >> index & 1) << 4;
    if (type == Q6_K) {
        const uint8_t *upper = stored + 128 + index / 4 * BLOCK;
        for (int j = 0; j < BLOCK; j++) codes[j] |= (upper[j] >> index % 4 * 2 & 3) << 4;
    }
}

/* Read the scales of block `index` as a tile has them, except those of the super-block. */
INLINE void read_scales(int32_t type, const uint8_t *stored, int32_t index, uint8_t scales[4]) {
    if (type == Q4_K || type == Q5_K) {
        const uint8_t *low = stored + 4 + index % 4, *mid = low + 4, *high = low + 8;
        scales[0] = index < 4 ? *low & 63 : (*high & 15) | *low >> 6 << 4;
        scales[1] = index < 4 ? *mid & 63 : *high >> 4 | *mid >> 6 << 4;
    } else if (type == Q6_K) {
        memcpy(scales, stored + 192 + 2 * index, 2);
    } else {
        Layout layout = layout_of(type);
        memcpy(scales, stored, (size_t)(layout.scales * layout.scale_bytes));
    }
}

typedef uint8_t LowBytes __attribute__((vector_size(TILE), aligned(1)));
typedef uint32_t FourWords __attribute__((vector_size(16), aligned(1)));
typedef uint32_t EightWords __attribute__((vector_size(32)));
enum { LOW_NIBBLES = 0x0f0f0f0f, LOW_PAIRS = 0x03030303, LOW_BITS = 0x01010101 };

/* Read 16 bytes of each row as four words, each of all rows. */
INLINE void transpose(const uint8_t *const from[TILE], int32_t offset, Words to[4]) {
    Words rows[4]; /* row i, i + 4, i + 8 and i + 12 */
    for (int i = 0; i < 4; i++) {
        FourWords part[4];
        for (int p = 0; p < 4; p++) part[p] = *(const FourWords *)(from[i + 4 * p] + offset);
        EightWords low = __builtin_shufflevector(part[0], part[1], 0, 1, 2, 3, 4, 5, 6, 7);
        EightWords high = __builtin_shufflevector(part[2], part[3], 0, 1, 2, 3, 4, 5, 6, 7);
        rows[i] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    }
#define FIRST(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define SECOND(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
    Words a = FIRST(rows[0], rows[2]), b = FIRST(rows[1], rows[3]);
    Words c = SECOND(rows[0], rows[2]), d = SECOND(rows[1], rows[3]);
    to[0] = FIRST(a, b);
    to[1] = SECOND(a, b);
    to[2] = FIRST(c, d);
    to[3] = SECOND(c, d);
#undef FIRST
#undef SECOND
}

INLINE uint8_t *put_words(uint8_t *to, const Words *words, int32_t count) {
    memcpy(to, words, (size_t)count * sizeof *words);
    return to + count * (int32_t)sizeof *words;
}
INLINE uint8_t *put_halves(uint8_t *to, Words low_halves) {
    Halves halves = __builtin_convertvector(low_halves, Halves);
    memcpy(to, &halves, sizeof halves);
    return to + sizeof halves;
}
INLINE uint8_t *put_bytes(uint8_t *to, Words low_bytes) {
    LowBytes bytes = __builtin_convertvector(low_bytes, LowBytes);
    memcpy(to, &bytes, sizeof bytes);
    return to + sizeof bytes;
}

/* Move even bits to the lower half of a word, odd ones to the upper. */
INLINE Words unshuffle(Words x) {
    static const uint32_t MASKS[] = {0x22222222, 0x0c0c0c0c, 0x00f000f0, 0x0000ff00};
    for (uint32_t i = 0; i < 4; i++) {
        Words moved = (x ^ x >> (1u << i)) & MASKS[i];
        x ^= moved ^ moved << (1u << i);
    }
    return x;
}

/* Write the scales that precede the codes of block `index`. head: the 16 stored bytes that have them. */
INLINE uint8_t *put_scales(int32_t type, const Words head[4], int32_t index, uint8_t *to) {
    Layout layout = layout_of(type);
    if (type == Q4_K || type == Q5_K) {
        Words low = head[1] >> (uint32_t)(index % 4 * 8), mid = head[2] >> (uint32_t)(index % 4 * 8);
        Words high = head[3] >> (uint32_t)(index % 4 * 8);
        to = put_bytes(to, index < 4 ? low & 63 : (high & 15) | (low >> 6 & 3) << 4);
        return put_bytes(to, index < 4 ? mid & 63 : (high >> 4 & 15) | (mid >> 6 & 3) << 4);
    }
    if (type == Q6_K) {
        Words pair = head[index / 2] >> (uint32_t)(index % 2 * 16);
        return put_bytes(put_bytes(to, pair), pair >> 8);
    }
    if (layout.scale_bytes == 1) return put_bytes(to, head[0]);
    to = put_halves(to, head[0]);
    return layout.scales == 2 ? put_halves(to, head[0] >> 16) : to;
}

/* Write the codes of block `index` as words, those of all rows side by side. */
INLINE uint8_t *put_codes(int32_t type, const uint8_t *const from[TILE], int32_t index, uint8_t *to) {
    Layout layout = layout_of(type);
    Words words[8], upper[8];
    if (type == Q8_0) {
        transpose(from, 2, words);
        transpose(from, 2 + HALF_BLOCK, words + 4);
        for (int i = 0; i < 8; i++) words[i] ^= 0x80808080;
        return put_words(to, words, 8);
    }
    if (layout.weights == BLOCK) { /* both halves of a block share their bytes, as in a tile */
        transpose(from, layout.stored - HALF_BLOCK, words);
        to = put_words(to, words, 4);
        if (layout.bits == 4) return to;
        transpose(from, layout.stored - HALF_BLOCK - 4, words);
        words[0] = unshuffle(unshuffle(words[0])); /* bit 4i + k becomes bit 8k + i */
        return put_words(to, words, 1);
    }
    int32_t at = type == Q6_K   ? index / 4 * 2 * BLOCK + index % 2 * BLOCK
                 : type == Q5_K ? 48 + index / 2 * BLOCK
                                : 16 + index / 2 * BLOCK;
    int32_t is_high = type == Q6_K ? index % 4 / 2 : index % 2;
    transpose(from, at, words);
    transpose(from, at + HALF_BLOCK, words + 4);
    for (int i = 0; i < 4; i++)
        words[i] = is_high ? (words[i] >> 4 & LOW_NIBBLES) | (words[i + 4] & ~(uint32_t)LOW_NIBBLES)
                           : (words[i] & LOW_NIBBLES) | (words[i + 4] & LOW_NIBBLES) << 4;
    to = put_words(to, words, 4);
    if (layout.bits == 4) return to;
    at = type == Q6_K ? 128 + index / 4 * BLOCK : 16;
    transpose(from, at, upper);
    transpose(from, at + HALF_BLOCK, upper + 4);
    words[0] = words[1] = (Words){0};
    for (uint32_t i = 0; i < 8; i++)
        if (type == Q5_K)
            words[0] |= (upper[i] >> (uint32_t)index & LOW_BITS) << i;
        else
            words[i / 4] |= (upper[i] >> (uint32_t)(index % 4 * 2) & LOW_PAIRS) << (i % 4 * 2);
    return put_words(to, words, layout.bits - 4);
}

INLINE void tile_rows(int32_t type, const uint8_t *stored, int32_t rows, int32_t columns, uint8_t *tiles) {
    Layout layout = layout_of(type);
    int32_t together = layout.weights / BLOCK, count = columns / layout.weights;
    int64_t row_bytes = (int64_t)count * layout.stored;
    for (int32_t first = 0; first < rows; first += TILE)
        for (int32_t outer = 0; outer < count; outer++) {
            const uint8_t *from[TILE];
            Words head[4], last[4];
            for (int r = 0; r < TILE; r++)
                from[r] = first + r < rows ? stored + (first + r) * row_bytes + outer * layout.stored : ZEROS;
            transpose(from, type == Q6_K ? 192 : 0, head);
            if (type == Q6_K) {
                transpose(from, MAX_STORED - 16, last);
                tiles = put_halves(tiles, last[3] >> 16);
            } else if (layout.above) {
                tiles = put_halves(put_halves(tiles, head[0]), head[0] >> 16);
            }
            for (int32_t index = 0; index < together; index++) {
                tiles = put_scales(type, head, index, tiles);
                tiles = put_codes(type, from, index, tiles);
            }
        }
}

int32_t tile_blocks(int32_t type, const void *stored, int32_t rows, int32_t columns, void *tiles) {
    switch (type) {
#define CASE(type)                                \
    case type:                                    \
        tile_rows(type, stored, rows, columns, tiles); \
        return 1
        CASE(Q4_0);
        CASE(Q4_1);
        CASE(Q5_0);
        CASE(Q5_1);
        CASE(Q8_0);
        CASE(Q4_K);
        CASE(Q5_K);
        CASE(Q6_K);
        CASE(IQ4_NL);
        CASE(NF4);
        CASE(MXFP4);
#undef CASE
    default: return 0;
    }
}

INLINE float float16_at(const uint8_t *from) {
    _Float16 half;
    memcpy(&half, from, sizeof half);
    return (float)half;
}

/* Dequantize a block: code − offset, times the scale, minus the minimum, each rounded. */
INLINE void read_numbers(int32_t type, const uint8_t *stored, int32_t index, float numbers[BLOCK]) {
    uint8_t codes[BLOCK], scales[4];
    read_codes(type, stored, index, codes);
    read_scales(type, stored, index, scales);
    float scale[2], minimum = 0;
    int32_t offset = type == Q8_0 ? 128 : type == Q6_K ? 32 : type == Q5_0 ? 16 : type == Q4_0 ? 8 : 0;
    if (type == Q4_K || type == Q5_K) {
        scale[0] = scale[1] = float16_at(stored) * scales[0];
        minimum = float16_at(stored + 2) * scales[1];
    } else if (type == Q6_K) {
        for (int i = 0; i < 2; i++) scale[i] = float16_at(stored + 208) * (int8_t)scales[i];
    } else {
        scale[0] = scale[1] = float16_at(stored);
        if (type == Q4_1 || type == Q5_1) minimum = -float16_at(stored + 2);
    }
    for (int j = 0; j < BLOCK; j++) {
        float number = (float)(codes[j] - offset) * scale[j / HALF_BLOCK];
        numbers[j] = type == Q4_0 || type == Q5_0 || type == Q8_0 || type == Q6_K ? number : number - minimum;
    }
}

INLINE void dequantize_rows(int32_t type, const uint8_t *stored, int64_t count, int32_t is_bf16, uint8_t *to) {
    Layout layout = layout_of(type);
    for (int64_t outer = 0; outer < count; outer++, stored += layout.stored)
        for (int32_t index = 0; index < layout.weights / BLOCK; index++) {
            float numbers[BLOCK];
            read_numbers(type, stored, index, numbers);
            if (!is_bf16) {
                memcpy(to, numbers, sizeof numbers);
                to += sizeof numbers;
                continue;
            }
            for (int i = 0; i < BLOCK; i += LANES, to += 2 * LANES) {
                Halves halves = __builtin_convertvector(round_to_bf16(load(numbers + i)), Halves);
                memcpy(to, &halves, sizeof halves);
            }
        }
}

int32_t dequantize_blocks(int32_t type, const void *stored, int64_t count, int32_t is_bf16, void *numbers) {
    switch (type) {
#define CASE(type)                                             \
    case type:                                                 \
        dequantize_rows(type, stored, count, is_bf16, numbers); \
        return 1
        CASE(Q4_0);
        CASE(Q4_1);
        CASE(Q5_0);
        CASE(Q5_1);
        CASE(Q8_0);
        CASE(Q4_K);
        CASE(Q5_K);
        CASE(Q6_K);
#undef CASE
    default: return 0;
    }
}

/* Round weights to codes from −8 to 7. */
INLINE Lanes codes_of(Lanes weights, float scale) {
    Lanes codes = weights * all(scale == 0 ? 0 : 1 / scale);
    codes = choose(codes > all(7), all(7), choose(codes < all(-8), all(-8), codes));
    return __builtin_convertvector(round_to_int(codes), Lanes);
}

/* Scale of least squares for the codes that `scale` leads to, as a float16. */
INLINE _Float16 best_scale(Lanes first, Lanes second, float scale) {
    Lanes a = codes_of(first, scale), b = codes_of(second, scale);
    float squares = sum(a * a + b * b), products = sum(a * first + b * second);
    return (_Float16)(squares == 0 ? scale : products / squares);
}

void quantize_q4(const float *weights, int64_t count, void *stored) {
    static const float FACTORS[] = {1.0f, 0.9f};
    uint8_t *to = stored;
    for (int64_t block = 0; block < count; block++, weights += BLOCK, to += 2 + HALF_BLOCK) {
        Lanes first = load(weights), second = load(weights + LANES);
        float farthest = weights[0], least = 0;
        for (int j = 1; j < BLOCK; j++)
            if (__builtin_fabsf(weights[j]) > __builtin_fabsf(farthest)) farthest = weights[j];
        for (int i = 0; i < 2; i++) {
            _Float16 scale = best_scale(first, second, farthest / -8 * FACTORS[i]);
            Lanes a = codes_of(first, (float)scale), b = codes_of(second, (float)scale);
            Lanes c = a * all((float)scale) - first, d = b * all((float)scale) - second;
            float error = sum(c * c + d * d);
            if (i > 0 && !(error < least)) break;
            least = error;
            Words nibbles = ((Words)round_to_int(a) + 8 & 15) | ((Words)round_to_int(b) + 8 & 15) << 4;
            memcpy(to, &scale, sizeof scale);
            for (int j = 0; j < HALF_BLOCK; j++) to[2 + j] = (uint8_t)nibbles[j];
        }
    }
}
