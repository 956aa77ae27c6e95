#include "cache.h"

#include "words.h"

/* Words of a head's keys, or values. */
static uint32_t *plane(const Cache *c, int32_t layer, int32_t is_value, int32_t head) {
    const LayerCache *of = c->layers + layer;
    int64_t size = c->capacity * of->head_dim / word_size(c->is_bf16);
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
    return slot / LANES * LANES * head_dim / word_size(c->is_bf16) + slot % LANES;
}

/* Offset of a value's row of words, which it may share. */
static int64_t value_at(const Cache *c, int32_t head_dim, int64_t slot) {
    return slot / word_size(c->is_bf16) * head_dim;
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

void put_key(const Cache *c, int32_t layer, int32_t head, int64_t slot, const float *key) {
    int32_t head_dim = c->layers[layer].head_dim;
    uint32_t *to = plane(c, layer, 0, head) + key_at(c, head_dim, slot - c->num_shared);
    for (int32_t i = 0; i < head_dim; i += LANES) {
        if (c->is_bf16) {
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
    uint32_t *to = plane(c, layer, 1, head) + value_at(c, head_dim, slot - c->num_shared);
    for (int32_t i = 0; i < head_dim; i += LANES) {
        Words words = (Words)load(value + i);
        if (c->is_bf16)
            words = with_bf16(load_words(to + i), round_to_bf16((Lanes)words), slot % 2);
        store_words(to + i, words);
    }
}

static void move_key(uint32_t *keys, const Cache *c, int32_t head_dim, int64_t from_slot,
                     int64_t to_slot) {
    const uint32_t *from = keys + key_at(c, head_dim, from_slot);
    uint32_t *to = keys + key_at(c, head_dim, to_slot);
    int32_t count = head_dim / word_size(c->is_bf16);
    for (int32_t i = 0; i < count; i++) to[i * LANES] = from[i * LANES];
}

static void move_value(uint32_t *values, const Cache *c, int32_t head_dim, int64_t from_slot,
                       int64_t to_slot) {
    const uint32_t *from = values + value_at(c, head_dim, from_slot);
    uint32_t *to = values + value_at(c, head_dim, to_slot);
    for (int32_t i = 0; i < head_dim; i += LANES) {
        Words words = load_words(from + i);
        if (c->is_bf16)
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
