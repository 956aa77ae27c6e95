/* Trees grown for one step from what heads give their guesses. */

#ifndef MEDUSA_GROW_H
#define MEDUSA_GROW_H

#include <stdint.h>

enum { MOST_GROWN = 1024 };

/* The most valuable nodes under a root: a node is worth the product of what the heads give the
   guesses on its path. Returns how many there are, the root included: `rows`, or fewer if no more
   are worth anything.
   chances: [heads, ranks], of each head falling
   rows: at most MOST_GROWN
   children: takes how many children each node has, nodes by depth and siblings by rank. [rows]
   least: takes what another draft must be worth more than to be taken instead. */
int32_t grow(const float *chances, int32_t heads, int32_t ranks, int32_t rows, int32_t *children,
             float *least);

#endif
