/* One forward pass of a decoder over a few rows. */

#ifndef MEDUSA_DECODER_H
#define MEDUSA_DECODER_H

#include <stdint.h>

#include "attention.h"
#include "cache.h"
#include "convolution.h"
#include "experts.h"
#include "gate.h"
#include "linear.h"
#include "pool.h"
#include "recurrence.h"

/* What a row's position does to its queries and keys. */
typedef struct {
    const float *turns;  /* cosine and sine of every position and pair. [positions, head_dim / 2, 2] */
    const float *growth; /* what queries are multiplied with, or NULL. [positions] */
} Positions;

/* Norms of one half of a block, or NULL: of what enters it, and of what it adds. [hidden] */
typedef struct {
    const float *before, *behind;
} Norms;

/* A norm of each few numbers that lie together, or of none where the weight is NULL. [together] */
typedef struct {
    const float *weight;
    int32_t together;
    int32_t is_behind; /* of what has been turned by its position */
} PartNorm;

/* Experts beside a block's MLP, with norms of their own (Gemma 4): both read the block's rows, each behind
   its norm, and the norms of what they make are added. [hidden] */
typedef struct {
    const Experts *experts;
    const float *pre_norm;      /* of what enters the experts */
    const float *router_norm;   /* of what enters their router */
    const float *post_norm;     /* of what the experts make */
    const float *post_mlp_norm; /* of what the MLP makes */
} ExpertsBeside;

/* Attention, then an MLP, or experts, or both side by side, then maybe what the token brings to this
   layer, through a gate. A row behind `qkv` holds queries, keys and values, head by head; where the
   layer attends to the rows of an earlier one, queries alone. A block may convolve in the place of
   attention: there `qkv` makes what `convolve_gated` reads. */
typedef struct Block Block;
struct Block {
    Linear qkv, output, gate_up, down, gates, token_gate, token_projection;
    Norms attention_norms, mlp_norms;
    PartNorm q_norm, k_norm, v_norm;
    const Positions *positions; /* or NULL: queries and keys aren't turned */
    const float *token_norm;    /* of what `token_projection` makes */
    const Experts *experts;     /* in the place of the MLP, or NULL */
    const ExpertsBeside *experts_beside; /* beside the MLP, or NULL */
    Attention attention;
    Convolution convolution;
    float query_scale;
    float scale; /* what leaves the block is multiplied with it */
    float mixer_scale, mlp_scale; /* so is what its halves add */
    int32_t kv_heads, head_dim;
    int32_t inner;     /* numbers between the halves of the MLP, or 0: there is none */
    int32_t factor_at; /* numbers of a row behind `gate_up` before what its gates let through; 0: a
                          number is its own gate */
    int32_t width; /* numbers of a row behind `qkv` */
    int32_t keys_are_values;
    int32_t gates_at; /* numbers of a row before gates of what attention gives, or 0 for none */
    int32_t mixed;    /* numbers of a row that enter `output`; 0: there is an MLP alone */
    int32_t token_at, token_width; /* where it lies in what a token brings; 0 numbers for nothing */
    const Recurrence *recurrence; /* in the place of attention: `qkv` makes what it reads; or NULL */
    const Block *beside; /* its attention reads what that of this one reads, and is added too; or NULL */
};

typedef struct {
    const Block *blocks;
    const float *final_norm;
    const void *embedding; /* [vocabulary, hidden] */
    const Linear *token_projection; /* of what enters: a part of what tokens bring to layers, or NULL */
    const float *token_norm;        /* of each layer's share of it. [token_width] */
    int32_t embedding_is_half;
    int32_t layers, hidden;
    Gate gate;
    float embedding_scale;
    float residual_scale; /* each half of a block is multiplied with it before it is added */
    float eps;
    int32_t token_width;
} Decoder;

/* The rows of one sequence in a pass, and the cache that they stand behind. */
typedef struct {
    Rows rows;
    const Cache *cache;
    const States *states; /* of layers with a state, or NULL */
    int32_t pending;      /* steps that are applied before the pass */
    int32_t is_decided;   /* all rows will be committed: a part of a prompt, a chain */
} Sequence;

/* Rows of one or more sequences. What a row has to do with others is its sequence's alone. */
typedef struct {
    const Sequence *sequences;
    const int64_t *token_ids; /* of all rows, those of a sequence together */
    float *brought; /* what tokens bring to layers, or NULL; what the projection makes of those that
                       enter is added. [rows, brought_width] */
    const int32_t *taps; /* layers, rising: what enters them is written, too; `layers` is behind all */
    float *scratch;
    float *hidden; /* takes the wanted rows: after the final norm, then what enters each tapped
                      layer. [wanted, 1 + taps, hidden] */
    int32_t num_sequences, rows;
    int32_t first_wanted; /* rows before it only leave keys and values behind; else 0 */
    int32_t workers, num_taps, brought_width;
} Pass;

/* Floats of scratch that a pass needs. */
int64_t pass_scratch(const Decoder *decoder, int32_t rows, int32_t length, int32_t workers);

void forward(const Decoder *decoder, const Pass *pass, Pool *pool);

#endif
