#include "abi.h"

#include <string.h>

typedef struct {
    const int32_t *tokens;
    const float *probabilities;
    int32_t count;
} Continuations;

/* Hash of a context, from that of its later tokens. */
static uint32_t next_key(uint32_t key, int32_t token) {
    uint32_t mixed = key * 0x9E3779B1u + (uint32_t)token + 1;
    mixed = (mixed ^ mixed >> 16) * 0x7FEB352Du;
    mixed = (mixed ^ mixed >> 15) * 0x846CA68Bu;
    return mixed ^ mixed >> 16;
}

/* Continuations of the longest known context. recent: the last tokens, the very last first. */
static Continuations look_up(const PhraseTable *table, const int32_t *recent, int32_t size) {
    uint32_t keys[MAX_CONTEXT];
    for (int32_t i = 0; i < size; i++) {
        keys[i] = next_key(i > 0 ? keys[i - 1] : 0, recent[i]);
        /* The table is larger than the caches: the reads of all contexts overlap. */
        __builtin_prefetch(table->buckets + (keys[i] >> table->shift));
    }
    for (int32_t i = 0; i < size; i++)
        __builtin_prefetch(table->keys + table->buckets[keys[i] >> table->shift]);
    for (int32_t i = size - 1; i >= 0; i--) {
        const int32_t *bucket = table->buckets + (keys[i] >> table->shift);
        for (int32_t place = bucket[0]; place < bucket[1]; place++) {
            if (table->keys[place] != keys[i]) continue;
            int32_t start = table->starts[place];
            int32_t count = table->starts[place + 1] - start;
            return (Continuations){table->tokens + start, table->probabilities + start, count};
        }
    }
    return (Continuations){0};
}

int32_t find_continuations(const PhraseTable *table, const int32_t *text, int64_t length,
                           const int32_t *paths, int32_t num_paths, int32_t level, int32_t *counts,
                           int32_t *tokens, float *probabilities, int32_t room) {
    int32_t size = 0;
    for (int32_t path = 0; path < num_paths; path++) {
        int32_t recent[MAX_CONTEXT], known = 0;
        for (int32_t i = level - 1; i >= 0 && known < table->max_context; i--)
            recent[known++] = paths[path * level + i];
        for (int64_t i = length - 1; i >= 0 && known < table->max_context; i--) recent[known++] = text[i];
        Continuations found = look_up(table, recent, known);
        counts[path] = found.count > room - size ? 0 : found.count;
        if (counts[path] == 0) continue;
        memcpy(tokens + size, found.tokens, (size_t)counts[path] * sizeof *tokens);
        memcpy(probabilities + size, found.probabilities, (size_t)counts[path] * sizeof *probabilities);
        size += counts[path];
    }
    return size;
}
