/* Layers whose state each row decays and writes one product into: gated delta nets, and Mamba-2's
   state space.

   A row i with the parent p: S_i = a S_p + k uᵀ, and it reads o = S_iᵀ q. With the time step
   Δ = softplus(δ + bias) within its limits, a = e^(Δ · rate). A state space writes u = Δ v and reads
   o + skip · v; a delta net writes u = β (v − a S_pᵀ k).

   A state of its own has only a row with children; all are computed step by step along the path, so
   a row's bits don't depend on the rows beside it, nor on which rows were committed together.

   Source: Gated Delta Networks (Yang et al. 2024), section 3; Transformers are SSMs (Dao and Gu
   2024), section 7. */

#ifndef MEDUSA_RECURRENCE_H
#define MEDUSA_RECURRENCE_H

#include <stdint.h>

#include "attention.h"
#include "convolution.h"
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

/* A layer. A projected row holds the inputs of the convolution, which makes queries and keys of key
   heads and values of heads, and an output gate of each head. What heads read is normalised, a few
   numbers together, and passes through the gates. */
typedef struct {
    Convolution conv;
    const float *rate; /* how fast each head forgets, below 0. [heads] */
    const float *bias; /* of its time step. [heads] */
    const float *skip; /* of a state space: how much of a value is read beside it. [heads] */
    const float *norm; /* or NULL. [heads, value_dim] */
    const float *factors; /* what a projected row is multiplied with, or NULL. [width] */
    StateShape shape;
    int32_t place;       /* among the layers with states */
    int32_t tiles;       /* key heads, where `output` reads one head of each, then the next; else 0 */
    int32_t together;    /* numbers that are normalised together */
    int32_t gates_first; /* what is read passes through its gate before it is normalised */
    int32_t is_delta;    /* a delta net: queries and keys are of length one */
    int32_t width, inputs_at, gate_at;        /* of a projected row */
    int32_t queries_at, keys_at, values_at;   /* among the channels */
    int32_t steps_apart; /* the time steps δ aren't in that row, but in one of their own */
    int32_t steps_width, steps_at; /* of the row they are in; of a delta net it begins with what β are made of */
    float least_step, most_step, eps;
} Recurrence;

/* The rows of one sequence in one layer. */
typedef struct {
    const Rows *rows;
    const States *states;
    int32_t is_decided;     /* all rows will be committed: they change the state but for the last */
    const float *projected; /* [rows, width] */
    const float *steps;     /* [rows, steps_width] */
    float *mixed;           /* takes what is read. [rows, heads · value_dim] */
} Recurrent;

/* Floats that `recur` needs per worker. */
int64_t recurrence_scratch(const StateShape *shape, int32_t rows);

/* Apply the first `count` steps of all layers, one after the other. */
void apply_pending(Pool *pool, const States *states, int32_t count);

void recur(Pool *pool, const Recurrence *net, const Recurrent *sequences, int32_t num_sequences,
           float *scratch, int64_t scratch_size);

#endif
