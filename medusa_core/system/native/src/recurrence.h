/* Gated delta nets and Mamba-2: layers with a state matrix per head.

   With parent p of row i: S_i = a S_p + k uᵀ, and the output is S_iᵀ q. With the time step
   Δ = softplus(δ + dt_bias), clamped, a = e^(Δ · decay_rate). Mamba-2 has u = Δ v and the output
   S_iᵀ q + skip · v; a delta net has u = β (v − a S_pᵀ k).

   Only rows with children get a state of their own. All are computed step by step along their path, so
   a row's bits depend neither on the other rows nor on which rows were committed together.

   Source: Gated Delta Networks (Yang et al. 2024), section 3; Transformers are SSMs (Dao and Gu 2024),
   section 7. */

#ifndef MEDUSA_RECURRENCE_H
#define MEDUSA_RECURRENCE_H

#include "abi.h"

/* The rows of one sequence in one layer. */
typedef struct {
    const Tree *tree;
    const States *states;
    int32_t is_decided;     /* all rows will be committed: the state advances to the last but one */
    const float *projected; /* [rows, width] */
    const float *dt;        /* [rows, dt_width] */
    float *output;          /* [rows, num_heads · value_dim] */
} RecurrentRows;

/* Floats of scratch memory per worker. */
int64_t recurrence_scratch(const StateShape *shape, int32_t rows);

/* Compute the outputs of all sequences, and store their pending steps. */
void run_recurrence(Pool *pool, const Recurrence *net, const RecurrentRows *sequences,
                    int32_t num_sequences, float *scratch, int64_t scratch_size);

#endif
