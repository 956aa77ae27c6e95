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

/* RoPE tables. */
typedef struct {
    const float *turns;  /* cosine and sine of every position and pair. [positions, head_dim / 2, 2] */
    const float *growth; /* scale of queries by position (attention temperature), or NULL. [positions] */
} Positions;

/* Pre-norm and post-norm of half a block, each or NULL. [hidden] */
typedef struct {
    const float *before, *behind;
} Norms;

/* RMSNorm of groups of `together` numbers, such as heads; none if the weight is NULL. [together] */
typedef struct {
    const float *weight;
    int32_t together;
    int32_t is_behind; /* after RoPE, not before it */
} PartNorm;

/* Experts in parallel to a block's MLP, with norms of their own (Gemma 4): both read the residual stream
   after a norm each, and the norms of both outputs are added. [hidden] */
typedef struct {
    const Experts *experts;
    const float *pre_norm;      /* input of the experts */
    const float *router_norm;   /* input of their router */
    const float *post_norm;     /* output of the experts */
    const float *post_mlp_norm; /* output of the MLP */
} ExpertsBeside;

/* A decoder block: attention, then an MLP, experts or both in parallel, then optionally a per-layer input.
   An output row of `qkv` holds queries, keys and values, head by head; only queries if the layer reads
   the cache of an earlier one. With a short convolution in place of attention, `qkv` computes the input
   of `convolve_gated`. */
typedef struct Block Block;
struct Block {
    Linear qkv, output, gate_up, down, gates, token_gate, token_projection;
    Norms attention_norms, mlp_norms;
    PartNorm q_norm, k_norm, v_norm;
    const Positions *positions; /* NULL: no RoPE */
    const float *token_norm;    /* post-norm of `token_projection` */
    const Experts *experts;     /* in place of the MLP, or NULL */
    const ExpertsBeside *experts_beside; /* in parallel to the MLP, or NULL */
    Attention attention;
    Convolution convolution;
    float query_scale;
    float scale; /* of the block's output */
    float mixer_scale, mlp_scale; /* of what its halves add */
    int32_t kv_heads, head_dim;
    int32_t inner;     /* intermediate size of the MLP; 0 without one */
    int32_t factor_at; /* offset of the up half in an output row of `gate_up`; 0 for an MLP without a
                          gate */
    int32_t width; /* of an output row of `qkv` */
    int32_t keys_are_values;
    int32_t gates_at; /* offset of gates of the attention output in a row of `qkv`; 0 for none */
    int32_t mixed;    /* width of the input of `output`; 0 for a block with an MLP alone */
    int32_t token_at, token_width; /* offset and width in the per-layer inputs; width 0 for none */
    const Recurrence *recurrence; /* in place of attention, with `qkv` as its input projection; or NULL */
    const Block *beside; /* a second token mixer in parallel to this block's, or NULL */
};

typedef struct {
    const Block *blocks;
    const float *final_norm;
    const void *embedding; /* [vocabulary, hidden] */
    const Linear *token_projection; /* of embeddings to per-layer inputs, or NULL */
    const float *token_norm;        /* of each layer's part of these. [token_width] */
    int32_t embedding_is_half;
    int32_t layers, hidden;
    Gate gate;
    float embedding_scale;
    float residual_scale; /* of what each half of a block adds */
    float eps;
    int32_t token_width;
} Decoder;

/* The rows of one sequence in a pass, and the cache that they extend. */
typedef struct {
    Rows rows;
    const Cache *cache;
    const States *states; /* of recurrent layers, or NULL */
    int32_t pending;      /* committed steps to apply to the states before the pass */
    int32_t is_decided;   /* all rows will be committed: a chunk of a prompt */
} Sequence;

/* Rows of one or more sequences, which don't attend to each other. */
typedef struct {
    const Sequence *sequences;
    const int64_t *token_ids; /* of all rows, sequence by sequence */
    float *per_layer; /* per-layer embeddings of the tokens, completed in place by `token_projection`;
                         or NULL. [rows, per_layer_width] */
    const int32_t *taps; /* layers whose input is output, too, ascending; `layers` is the output of the last */
    float *scratch;
    float *hidden; /* output for the wanted rows: after the final norm, then the input of each tapped
                      layer. [wanted, 1 + taps, hidden] */
    int32_t num_sequences, rows;
    int32_t first_wanted; /* the last layer only writes keys and values of earlier rows; 0 for all rows */
    int32_t workers, num_taps, per_layer_width;
} Pass;

/* Floats of scratch that a pass needs. */
int64_t pass_scratch(const Decoder *decoder, int32_t rows, int32_t length, int32_t workers);

void forward(const Decoder *decoder, const Pass *pass, Pool *pool);

#endif
