/* Gated delta nets: layers whose state each row decays and writes one product into.

   A row i with the parent p: S_i = a S_p + k uᵀ with u = β (v − a S_pᵀ k), and it reads S_iᵀ q. A
   state of its own has only a row with children; all are computed step by step along the path, so
   a row's bits don't depend on the rows beside it, nor on which rows were committed together.

   Source: Gated Delta Networks (Yang et al. 2024), section 3. */

#ifndef MEDUSA_RECURRENCE_H
#define MEDUSA_RECURRENCE_H

#include <stdint.h>

#include "attention.h"
#include "pool.h"

enum { MOST_STEPS = 64 }; /* rows of a pass that aren't decided */

/* Sizes of a layer's state. Consecutive heads share a key head. */
typedef struct {
    int32_t heads, key_dim, value_dim, key_heads, channels, conv_width;
} StateShape;

/* What a session holds of all such layers, those of one layer together, and the steps that the rows
   of its last pass would change them by; of decided rows that of the last one, in the first place. */
typedef struct {
    float *state;   /* [layers, heads, key_dim, value_dim] */
    float *tail;    /* the last inputs of the convolution. [layers, conv_width − 1, channels] */
    float *keys;    /* [layers, step_rows, key_heads, key_dim] */
    float *updates; /* [layers, step_rows, heads, value_dim] */
    float *decays;  /* logarithms. [layers, step_rows, heads] */
    float *inputs;  /* of the convolution. [layers, step_rows, channels] */
    StateShape shape;
    int32_t layers, step_rows;
} States;

/* A layer. Rows come as queries and keys of key heads, values and output gates of heads, and beside
   them what β and the decay of each head are made of. */
typedef struct {
    const float *conv;  /* that of the row itself is the last. [conv_width, channels] */
    const float *rate;  /* how fast each head forgets. [heads] */
    const float *bias;  /* of the decay's time step. [heads] */
    const float *norm;  /* of what a head reads. [value_dim] */
    StateShape shape;
    int32_t place;      /* among the layers with states */
    int32_t tiles;      /* key heads, where `output` reads one head of each, then the next; else 0 */
    float eps;
    int32_t reserved;
} DeltaNet;

/* The rows of one sequence in one layer. */
typedef struct {
    const Rows *rows;
    const States *states;
    int32_t decided;     /* all rows will be committed: they change the state but for the last */
    const float *projected; /* [rows, channels + heads · value_dim] */
    const float *gates;     /* [rows, 2 · heads] */
    float *mixed;           /* takes what is read. [rows, heads · value_dim] */
} Recurrent;

/* Floats that `recur` needs per worker. */
int64_t recurrence_scratch(const StateShape *shape, int32_t rows);

/* Apply the first `count` steps of all layers, one after the other. */
void settle(Pool *pool, const States *states, int32_t count);

void recur(Pool *pool, const DeltaNet *net, const Recurrent *sequences, int32_t num_sequences,
           float *scratch, int64_t scratch_size);

#endif
