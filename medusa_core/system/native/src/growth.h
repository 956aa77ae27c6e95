/* Trees grown for one step, level by level, from what any number of sources say may follow. */

#ifndef MEDUSA_GROWTH_H
#define MEDUSA_GROWTH_H

#include <stdint.h>

/* Rows of a tree, levels of it, and different tokens that are weighed behind one path. */
enum { MOST_GROWN = 1024, MOST_LEVELS = 32, MOST_FOLLOWING = 1024, MOST_OFFERS = 128 };

/* How a node lies among its siblings: the likeliest one behind likeliest ones alone, the likeliest
   behind others, the second, a further one. */
enum { ON_SPINE, OFF_SPINE, SECOND, FURTHER, NUM_KINDS };

/* What trust tells apart: depths, the last one and all below it as one, and ranges of chances. */
enum { TRUST_DEPTHS = 4, TRUST_RANGES = 8 };

/* A node: what it is worth, which is the product of the trusted chances down to it, its own chance
   as it was said, its parent, how far it lies below the root, its token, the marks of those who
   proposed it, and its kind. */
typedef struct {
    double worth, chance;
    int32_t parent, depth, token, marks, kind, unused;
} Node;

/* What one source says of the open paths of a level.
   tokens, chances: what may follow, and how likely each is if the path is right; tokens behind one
       path differ from each other. [size]
   counts: how many of them follow each path, one path after the other; null where all of them
       follow every path. [open]
   weight: the source's part of the mixture of those that say something about a path; 0 where its
       chance counts as it is if that is more than the mixture's.
   mark: one bit that no other source has. */
typedef struct {
    const int32_t *tokens;
    const float *chances;
    const int32_t *counts;
    double weight;
    int32_t size, mark;
} Candidates;

/* What may follow a path, as all sources together see it: behind which offer (-1: the root), its
   token, and its chance if the path is right. */
typedef struct {
    int32_t above, token;
    float chance;
} Offer;

/* A tree under way. Between the calls a caller only reads.
   prices: what 1, 2, ... rows cost, rising from 0; null where they cost nothing. [rows]
   floors: what a node must be worth more than to pay where at least 1, 2, ... rows are before it,
       rising; null where prices is. [rows]
   least: the lowest of them, or 0.
   trust: by what a chance is multiplied, of who alone proposed it (several: the last), by kind,
       depth and range; null for 1. [sources + 1, NUM_KINDS, TRUST_DEPTHS, TRUST_RANGES]
   asking: of each level how likely it brings a right token behind a right path, and what asking
       about the first path costs and about a further one, in tokens; null for nothing.
       [MOST_LEVELS, 3]
   promised: becomes what the drafts of the finished tree are worth together.
   nodes: room for them. [rows]
   order: which of them are in use, the most valuable first, then those that are free. [rows]
   open: of which of them is asked what follows, the most valuable first. [rows]
   paths: the tokens from the root's child to each of these. [open, level], room for [rows, 32]
   finished: takes of each node of the tree how many children it has, then of each its marks and its
       token; nodes by depth, siblings by what they are worth, zeros of the root. [3, nodes]
   chances: takes the chance of each draft. [nodes - 1]
   offers: takes the first offers that are worth a hundredth of a token, whether the tree has them or
       not; null where nobody asks. [MOST_OFFERS]
   offered: which of these each node is; -1 for the root and where it isn't told. [rows]
   rows: at most so many nodes, the root included; 1 to MOST_GROWN.
   count: nodes in use.
   num_open: paths of which is asked what follows.
   level: how long they are.
   num_offers: how many are told.
   chain: not 0 if no node may have more than one child. */
typedef struct {
    const float *prices, *floors, *trust, *asking;
    double least, promised;
    Node *nodes;
    int32_t *order, *open, *paths, *finished;
    float *chances;
    Offer *offers;
    int32_t *offered;
    int32_t rows, count, num_open, level, num_offers, chain;
} Growth;

/* Start with the root. */
void grow_begin(Growth *growth);

/* Take what the sources say of the open paths; returns how many paths are open now. */
int32_t grow_level(Growth *growth, const Candidates *sources, int32_t num_sources);

/* Tell the nodes that are together worth most beyond their price; returns how many there are. */
int32_t grow_end(Growth *growth);

#endif
