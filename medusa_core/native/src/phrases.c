#include "phrases.h"

static uint32_t next_key(uint32_t key, int32_t token) {
    uint32_t mixed = key * 0x9E3779B1u + (uint32_t)token + 1;
    mixed = (mixed ^ mixed >> 16) * 0x7FEB352Du;
    mixed = (mixed ^ mixed >> 15) * 0x846CA68Bu;
    return mixed ^ mixed >> 16;
}

Followers behind(const Phrases *phrases, const int32_t *recent, int32_t size) {
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
