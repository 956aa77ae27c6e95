/* Trees grown for one step from what heads guess and from what a model often says. */

#ifndef MEDUSA_GROW_H
#define MEDUSA_GROW_H

#include <stdint.h>

#include "phrases.h"

/* Rows of a tree, and how deep phrases alone make it. */
enum { MOST_GROWN = 1024, MOST_DEPTH = 6 };

/* Who proposed a node: any of these. */
enum { BY_HEADS = 1, BY_LOOKUP = 2, BY_PHRASES = 4 };

/* A node, or what may become one: what it is worth, the node above it, how far it lies below the
   root, its token, its place among the heads' guesses or -1, and who proposed it. */
typedef struct {
    double worth;
    int32_t parent, depth, token, place, marks;
} Node;

/* What is known before a step.
   chances, guesses: what the heads give their guesses, of each head falling, and these. [heads, ranks]
   text: all tokens so far, the root last. [length]
   phrases: what the model often says, or null. */
typedef struct {
    const float *chances;
    const int32_t *guesses;
    int32_t heads, ranks;
    const int32_t *text;
    int64_t length;
    const Phrases *phrases;
} Known;

/* The most valuable nodes under a root, the best first: a node is worth the product of the chances
   of the tokens down to it. A token's chance is what its head gives it, mixed with how often it
   follows the tokens before it. Returns how many there are, the root included: `rows`, or fewer if
   no more are worth anything.
   rows: at most MOST_GROWN
   floors: what takes no row where there are 1, 2, ... unless it is worth more; null for 0. [rows]
   least: the lowest of them
   nodes: takes them. [rows] */
int32_t grow(const Known *known, int32_t rows, const float *floors, double least, Node *nodes);

#endif
