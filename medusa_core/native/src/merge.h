/* One tree of what heads guess, of what a model often says, and of what followed the same words
   before. */

#ifndef MEDUSA_MERGE_H
#define MEDUSA_MERGE_H

#include <stdint.h>

#include "grow.h"

/* Tokens of a suffix that is looked for, of what followed it, and how many different ones count. */
enum { LONGEST_SUFFIX = 4, DEEPEST = 6, MOST_MATCHES = 3 };

/* What is merged, and what takes the tree.
   trust: how likely the first 1, 2, ... tokens behind a suffix of 1, 2, ... tokens are all right,
       falling; null where nothing is to be looked up. [LONGEST_SUFFIX, DEEPEST]
   prices: what 1, 2, ... rows cost, rising from 0; null where they cost nothing. [rows]
   floors: what a further node must be worth more than to pay where there are 1, 2, ... rows; null
       where prices is. [rows]
   least: the lowest of them, or 0
   rows: at most MOST_GROWN
   told: takes of each node how many children it has, then of each its marks, its token and its place
       among all guesses, -1 where it is none of them; nodes by depth, siblings by what they are
       worth, and of the root zeros. [4, nodes], with room for [4, rows]
   promised: becomes what the nodes are worth together
   suffix, offered: become the length of the suffix whose continuation was found first, 0 if none was,
       and that one's first token. */
typedef struct {
    Known known;
    const float *trust, *prices, *floors;
    double least;
    int32_t *told;
    double promised;
    int32_t rows, suffix, offered, reserved;
} Merge;

/* The most valuable nodes of all under one root, as many as are together worth most beyond their
   price. A node that the lookup proposes, too, is worth what the better says; of equals what was
   grown comes first, then what occurred last. Returns how many there are, the root included. */
int32_t merge(Merge *m);

#endif
