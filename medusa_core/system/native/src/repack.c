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

/* Pack codes into words, which are 16 words apart. */
INLINE void pack_codes(int32_t bits, const uint8_t codes[BLOCK], uint8_t *to) {
    uint32_t words[8] = {0};
    int32_t count = bits == 8 ? 8 : bits == 6 ? 6 : bits == 5 ? 5 : 4;
    if (bits == 8) {
        memcpy(words, codes, BLOCK);
    } else {
        uint8_t nibbles[HALF_BLOCK];
        for (int j = 0; j < HALF_BLOCK; j++)
            nibbles[j] = (uint8_t)((codes[j] & 15) | codes[j + HALF_BLOCK] << 4);
        memcpy(words, nibbles, HALF_BLOCK);
    }
    if (bits == 5)
        for (int i = 0; i < 8; i++) words[4] |= (word_at(codes + 4 * i) >> 4 & 0x01010101) << i;
    if (bits == 6)
        for (int i = 0; i < 8; i++)
            words[4 + i / 4] |= (word_at(codes + 4 * i) >> 4 & 0x03030303) << i % 4 * 2;
    for (int i = 0; i < count; i++) memcpy(to + i * TILE * 4, words + i, 4);
}

INLINE void tile_rows(int32_t type, const uint8_t *stored, int32_t rows, int32_t columns, uint8_t *tiles) {
    Layout layout = layout_of(type);
    int32_t together = layout.weights / BLOCK, count = columns / layout.weights;
    int64_t row_bytes = (int64_t)count * layout.stored;
    for (int32_t first = 0; first < rows; first += TILE)
        for (int32_t outer = 0; outer < count; outer++) {
            const uint8_t *from[TILE];
            for (int r = 0; r < TILE; r++)
                from[r] = first + r < rows ? stored + (first + r) * row_bytes + outer * layout.stored : ZEROS;
            for (int i = 0; i < layout.above; i++, tiles += 2 * TILE)
                for (int r = 0; r < TILE; r++)
                    memcpy(tiles + 2 * r, from[r] + (type == Q6_K ? 208 : 2 * i), 2);
            for (int32_t index = 0; index < together; index++) {
                uint8_t *words = tiles + layout.scales * layout.scale_bytes * TILE;
                for (int r = 0; r < TILE; r++) {
                    uint8_t codes[BLOCK], scales[4];
                    read_scales(type, from[r], index, scales);
                    for (int i = 0; i < layout.scales; i++)
                        memcpy(tiles + (i * TILE + r) * layout.scale_bytes,
                               scales + i * layout.scale_bytes, (size_t)layout.scale_bytes);
                    read_codes(type, from[r], index, codes);
                    pack_codes(layout.bits, codes, words + 4 * r);
                }
                tiles = words + layout.bits * BLOCK / 8 * TILE;
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
