/* One tree of what heads guess, of what a model often says, and of what followed the same words
   before. */

#ifndef MEDUSA_MERGE_H
#define MEDUSA_MERGE_H

#include <stdint.h>

#include "grow.h"

/* Tokens of a suffix that is looked for, of what followed it, and how many different ones count. */
enum { LONGEST_SUFFIX = 4, DEEPEST = 6, MOST_MATCHES = 3 };

/* The most valuable nodes of all under one root, as many as are together worth most beyond their
   price. A node that the lookup proposes, too, is worth what the better says; of equals what was
   grown comes first, then what occurred last. Returns how many there are, the root included.
   chances, guesses: what the heads give their guesses, of each head falling, and these; [heads, ranks]
   text: all tokens so far, the root last. [length]
   trust: how likely the first 1, 2, ... tokens behind a suffix of 1, 2, ... tokens are all right,
       falling; null where nothing is to be looked up. [LONGEST_SUFFIX, DEEPEST]
   phrases: what the model often says, or null
   rows: at most MOST_GROWN
   prices: what 1, 2, ... rows cost, rising from 0; null where they cost nothing. [rows]
   floors: what a further node must be worth more than to pay where there are 1, 2, ... rows; null
       where prices is. [rows]
   least: the lowest of them, or 0
   told: takes of each node how many children it has, then of each its marks, its token and its place
       among all guesses, -1 where it is none of them; nodes by depth, siblings by what they are
       worth, and of the root zeros. [4, nodes], with room for [4, rows]
   offered: takes the length of the suffix whose continuation was found first, 0 if none was, and that
       one's first token. [2]
   promised: takes what the nodes are worth together. [1] */
int32_t merge(const float *chances, const int32_t *guesses, int32_t heads, int32_t ranks,
              const int32_t *text, int64_t length, const float *trust, const Phrases *phrases,
              int32_t rows, const float *prices, const float *floors, double least,
              int32_t *told, int32_t *offered, double *promised);

#endif
