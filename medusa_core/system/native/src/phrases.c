#include "phrases.h"

#include <string.h>

typedef struct {
    const int32_t *tokens;
    const float *chances;
    int32_t count;
} Followers;

static uint32_t next_key(uint32_t key, int32_t token) {
    uint32_t mixed = key * 0x9E3779B1u + (uint32_t)token + 1;
    mixed = (mixed ^ mixed >> 16) * 0x7FEB352Du;
    mixed = (mixed ^ mixed >> 15) * 0x846CA68Bu;
    return mixed ^ mixed >> 16;
}

/* What often follows the last tokens, given from the end backwards. */
static Followers behind(const Phrases *phrases, const int32_t *recent, int32_t size) {
    uint32_t keys[MOST_CONTEXT];
    for (int32_t i = 0; i < size; i++) {
        keys[i] = next_key(i > 0 ? keys[i - 1] : 0, recent[i]);
        /* Where the table is read next isn't near by: all at once, it is waited for but once. */
        __builtin_prefetch(phrases->buckets + (keys[i] >> phrases->shift));
    }
    for (int32_t i = 0; i < size; i++)
        __builtin_prefetch(phrases->keys + phrases->buckets[keys[i] >> phrases->shift]);
    for (int32_t i = size - 1; i >= 0; i--) {
        const int32_t *bucket = phrases->buckets + (keys[i] >> phrases->shift);
        for (int32_t place = bucket[0]; place < bucket[1]; place++) {
            if (phrases->keys[place] != keys[i]) continue;
            int32_t start = phrases->starts[place];
            int32_t count = phrases->starts[place + 1] - start;
            return (Followers){phrases->tokens + start, phrases->chances + start, count};
        }
    }
    return (Followers){0};
}

int32_t follow(const Phrases *phrases, const int32_t *text, int64_t length, const int32_t *paths,
               int32_t num_paths, int32_t level, int32_t *counts, int32_t *tokens, float *chances,
               int32_t room) {
    int32_t size = 0;
    for (int32_t path = 0; path < num_paths; path++) {
        int32_t recent[MOST_CONTEXT], known = 0, longest = phrases->longest;
        for (int32_t i = level - 1; i >= 0 && known < longest; i--)
            recent[known++] = paths[path * level + i];
        for (int64_t i = length - 1; i >= 0 && known < longest; i--) recent[known++] = text[i];
        Followers found = behind(phrases, recent, known);
        counts[path] = found.count > room - size ? 0 : found.count;
        if (counts[path] == 0) continue;
        memcpy(tokens + size, found.tokens, (size_t)counts[path] * sizeof *tokens);
        memcpy(chances + size, found.chances, (size_t)counts[path] * sizeof *chances);
        size += counts[path];
    }
    return size;
}
