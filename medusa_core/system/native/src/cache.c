#include "cache.h"

#include "words.h"

/* Words of a head's keys, or values. */
static uint32_t *plane(const Cache *c, int32_t layer, int32_t is_value, int32_t head) {
    const LayerCache *of = c->layers + layer;
    int64_t size = c->type == Q8_0 ? c->capacity / LANES * panel_words(of->head_dim)
                                   : c->capacity * of->head_dim / word_size(c->type);
    return of->words + ((int64_t)is_value * of->num_kv_heads + head) * size;
}

/* The cache that has a slot, and the end of its slots. */
static const Cache *holder(const Cache *c, int64_t slot, int64_t *end) {
    *end = INT64_MAX;
    while (slot < c->num_shared) {
        *end = c->num_shared;
        c = c->prefix;
    }
    return c;
}

/* Offset of a key's first word; the next ones are LANES words apart. */
static int64_t key_at(const Cache *c, int32_t head_dim, int64_t slot) {
    if (c->type == Q8_0) return slot / LANES * panel_words(head_dim) + slot % LANES;
    return slot / LANES * LANES * head_dim / word_size(c->type) + slot % LANES;
}

/* Offset of a value's row of words, which it may share. */
static int64_t value_at(const Cache *c, int32_t head_dim, int64_t slot) {
    if (c->type == Q8_0)
        return slot / LANES * panel_words(head_dim) + slot % LANES * (head_dim / 4);
    return slot / word_size(c->type) * head_dim;
}

Slots keys_from(const Cache *c, int32_t layer, int32_t head, int64_t slot) {
    int64_t end;
    const Cache *in = holder(c, slot, &end);
    int32_t head_dim = in->layers[layer].head_dim;
    return (Slots){plane(in, layer, 0, head) + key_at(in, head_dim, slot - in->num_shared), end};
}

Slots values_from(const Cache *c, int32_t layer, int32_t head, int64_t slot) {
    int64_t end;
    const Cache *in = holder(c, slot, &end);
    int32_t head_dim = in->layers[layer].head_dim;
    return (Slots){plane(in, layer, 1, head) + value_at(in, head_dim, slot - in->num_shared), end};
}

/* The float16 scales of a slot in Q8_0, LANES apart. */
static uint16_t *scales_of(uint32_t *words, int32_t head_dim, int64_t slot) {
    uint32_t *panel = words + slot / LANES * panel_words(head_dim);
    return (uint16_t *)(panel + panel_codes(head_dim)) + slot % LANES;
}

/* Round to float16, ties to even; for numbers from 0 to 65504, and NaN. */
static uint16_t half_of(float x) {
    union {
        float number;
        uint32_t bits;
    } of = {x};
    if (x != x) return 0x7e00;
    if (x < 0x1p-14f) { /* subnormal: adding ½ rounds to a multiple of 2^−24 */
        of.number = x + 0.5f;
        return (uint16_t)(of.bits - 0x3f000000u);
    }
    return (uint16_t)((of.bits - (112u << 23) + 0xfff + ((of.bits >> 13) & 1)) >> 13);
}

/* Quantize a row to codes, [head_dim], and the scales of its blocks, LANES apart. */
static void quantize_row(const float *row, int32_t head_dim, int8_t *codes, uint16_t *scales) {
    const float limit = 127.0f * 65504.0f; /* of scales in float16 */
    for (int32_t begin = 0; begin < head_dim; begin += BLOCK, scales += LANES) {
        int32_t end = begin + BLOCK < head_dim ? begin + BLOCK : head_dim;
        Lanes most = {0};
        for (int32_t i = begin; i < end; i += LANES) {
            Lanes x = load(row + i), size = choose(x < 0.0f, -x, x);
            most = choose(most < size | size != size, size, most); /* keeps NaN */
        }
        float largest = 0;
        for (int i = 0; i < LANES; i++)
            if (most[i] > largest || most[i] != most[i]) largest = most[i];
        *scales = half_of((largest > limit ? limit : largest) / 127.0f);
        float scale = number((uint32_t)*scales << 13) * 0x1p112f;
        for (int32_t i = begin; i < end; i += LANES) {
            Lanes x = larger(all(-127.0f), load(row + i) / (scale > 0 ? scale : 1.0f));
            Signed rounded = round_to_int(choose(x > 127.0f, all(127.0f), x));
            for (int j = 0; j < LANES; j++) codes[i + j] = (int8_t)rounded[j];
        }
    }
}

void put_key(const Cache *c, int32_t layer, int32_t head, int64_t slot, const float *key) {
    int32_t head_dim = c->layers[layer].head_dim;
    uint32_t *keys = plane(c, layer, 0, head);
    uint32_t *to = keys + key_at(c, head_dim, slot - c->num_shared);
    if (c->type == Q8_0) {
        int8_t codes[head_dim];
        quantize_row(key, head_dim, codes, scales_of(keys, head_dim, slot - c->num_shared));
        for (int32_t i = 0; i < head_dim; i += 4, to += LANES) __builtin_memcpy(to, codes + i, 4);
        return;
    }
    for (int32_t i = 0; i < head_dim; i += LANES) {
        if (c->type == BF16) {
            Words halves = round_to_bf16(load(key + i));
            for (int j = 0; j < LANES; j += 2, to += LANES) *to = pair(halves, j);
        } else {
            Words words = (Words)load(key + i);
            for (int j = 0; j < LANES; j++, to += LANES) *to = words[j];
        }
    }
}

void put_value(const Cache *c, int32_t layer, int32_t head, int64_t slot, const float *value) {
    int32_t head_dim = c->layers[layer].head_dim;
    uint32_t *values = plane(c, layer, 1, head);
    uint32_t *to = values + value_at(c, head_dim, slot - c->num_shared);
    if (c->type == Q8_0) {
        quantize_row(value, head_dim, (int8_t *)to, scales_of(values, head_dim, slot - c->num_shared));
        return;
    }
    for (int32_t i = 0; i < head_dim; i += LANES) {
        Words words = (Words)load(value + i);
        if (c->type == BF16)
            words = with_bf16(load_words(to + i), round_to_bf16((Lanes)words), slot % 2);
        store_words(to + i, words);
    }
}

static void move_scales(uint32_t *words, int32_t head_dim, int64_t from_slot, int64_t to_slot) {
    const uint16_t *from = scales_of(words, head_dim, from_slot);
    uint16_t *to = scales_of(words, head_dim, to_slot);
    for (int32_t i = 0; i < head_dim; i += BLOCK, to += LANES, from += LANES) *to = *from;
}

static void move_key(uint32_t *keys, const Cache *c, int32_t head_dim, int64_t from_slot,
                     int64_t to_slot) {
    const uint32_t *from = keys + key_at(c, head_dim, from_slot);
    uint32_t *to = keys + key_at(c, head_dim, to_slot);
    int32_t count = head_dim / (c->type == Q8_0 ? 4 : word_size(c->type));
    if (c->type == Q8_0) move_scales(keys, head_dim, from_slot, to_slot);
    for (int32_t i = 0; i < count; i++) to[i * LANES] = from[i * LANES];
}

static void move_value(uint32_t *values, const Cache *c, int32_t head_dim, int64_t from_slot,
                       int64_t to_slot) {
    const uint32_t *from = values + value_at(c, head_dim, from_slot);
    uint32_t *to = values + value_at(c, head_dim, to_slot);
    if (c->type == Q8_0) {
        __builtin_memcpy(to, from, (size_t)head_dim);
        move_scales(values, head_dim, from_slot, to_slot);
        return;
    }
    for (int32_t i = 0; i < head_dim; i += LANES) {
        Words words = load_words(from + i);
        if (c->type == BF16)
            words = with_bf16(load_words(to + i), bf16_of(words, from_slot % 2), to_slot % 2);
        store_words(to + i, words);
    }
}

static void keep_rows_of_head(const Cache *c, int32_t layer, int32_t head, int64_t length,
                              const int64_t *slots, int64_t count) {
    int32_t head_dim = c->layers[layer].head_dim;
    uint32_t *keys = plane(c, layer, 0, head), *values = plane(c, layer, 1, head);
    for (int64_t i = 0; i < count; i++) { /* rows only move down, so none is overwritten before it moves */
        if (slots[i] == i) continue;
        move_key(keys, c, head_dim, length + slots[i], length + i);
        move_value(values, c, head_dim, length + slots[i], length + i);
    }
}

void keep_rows(const Cache *c, int64_t length, const int64_t *slots, int64_t count) {
    for (int32_t l = 0; l < c->num_layers; l++)
        for (int32_t h = 0; h < c->layers[l].num_kv_heads && !c->layers[l].is_shared; h++)
            keep_rows_of_head(c, l, h, length - c->num_shared, slots, count);
}
