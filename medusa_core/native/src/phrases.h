/* What a model often says behind the same few tokens; see tree/phrases.py. */

#ifndef MEDUSA_PHRASES_H
#define MEDUSA_PHRASES_H

#include <stdint.h>

enum { MOST_CONTEXT = 8 };

/* keys: of every context, ascending. [contexts]
   starts: where the followers of each begin, and the end. [contexts + 1]
   tokens, chances: the followers, of each context the likeliest first. [followers]
   buckets: by the first bits of a key the first context that has them or comes behind. [2^bits + 1]
   shift: how many bits of a key aren't among these.
   longest: tokens of the longest context, at most MOST_CONTEXT. */
typedef struct {
    const uint32_t *keys;
    const int32_t *starts, *tokens;
    const float *chances;
    const int32_t *buckets;
    int32_t shift, longest;
} Phrases;

typedef struct {
    const int32_t *tokens;
    const float *chances;
    int32_t count;
} Followers;

/* What often follows the longest context that is known, the likeliest first; none if none is.
   recent: the last tokens, from the end backwards. [size]
   size: at most MOST_CONTEXT */
Followers behind(const Phrases *phrases, const int32_t *recent, int32_t size);

#endif
