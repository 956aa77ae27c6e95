/* Trees grown for one step from what heads give their guesses. */

#ifndef MEDUSA_GROW_H
#define MEDUSA_GROW_H

#include <stdint.h>

enum { MOST_GROWN = 1024 };

/* A node, or what may become one: what it is worth, the node above it, how far it lies below the
   root, and which guess of its head it is. */
typedef struct {
    float worth;
    int32_t parent, depth, rank;
} Node;

/* The most valuable nodes under a root, the best first: a node is worth the product of what the
   heads give the guesses on its path. Returns how many there are, the root included: `rows`, or
   fewer if no more are worth anything.
   chances: [heads, ranks], of each head falling
   rows: at most MOST_GROWN
   nodes: takes them. [rows] */
int32_t grow_nodes(const float *chances, int32_t heads, int32_t ranks, int32_t rows, Node *nodes);

/* The same as a tree.
   children: takes how many children each node has, nodes by depth and siblings by rank. [rows] */
int32_t grow(const float *chances, int32_t heads, int32_t ranks, int32_t rows, int32_t *children);

#endif
