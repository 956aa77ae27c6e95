/* What a model often says behind the same few tokens; see models/datastore/phrases.py. */

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

/* What often follows each of some paths: of the longest context that is known the followers, the
   likeliest first, none if none is known.
   text: all tokens before the paths. [length]
   paths: tokens. [num_paths, level]
   counts: takes how many follow each path. [num_paths]
   tokens, chances: take the followers, one path's after the other's. [room]
   Returns how many followers there are; a path's are left out where they find no room. */
int32_t follow(const Phrases *phrases, const int32_t *text, int64_t length, const int32_t *paths,
               int32_t num_paths, int32_t level, int32_t *counts, int32_t *tokens, float *chances,
               int32_t room);

#endif
