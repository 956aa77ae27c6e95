/* One forward pass of a Llama-like decoder over a few rows. */

#ifndef MEDUSA_DECODER_H
#define MEDUSA_DECODER_H

#include <stdint.h>

#include "attention.h"
#include "cache.h"
#include "linear.h"
#include "pool.h"

typedef struct {
    Linear qkv, output, gate_up, down;
    const float *attention_norm;
    const float *mlp_norm;
    const float *head_norm; /* of every query and key head, or NULL. [heads + kv heads, head_dim] */
} Block;

typedef struct {
    const Block *blocks;
    const float *final_norm;
    const void *embedding; /* [vocabulary, hidden] */
    int32_t embedding_is_half;
    int32_t layers, hidden, inner, heads, kv_heads, head_dim;
    float eps;
    int32_t reserved;
} Decoder;

/* The rows of one sequence in a pass, and the cache that they stand behind. */
typedef struct {
    Rows rows;
    const Cache *cache;
} Sequence;

/* Rows of one or more sequences. What a row has to do with others is its sequence's alone. */
typedef struct {
    const Sequence *sequences;
    const int64_t *token_ids; /* of all rows, those of a sequence together */
    const float *turns; /* cosine and sine of every position and pair. [positions, head_dim / 2, 2] */
    const int32_t *taps; /* layers, rising: what enters them is written, too; `layers` is behind all */
    float *scratch;
    float *hidden; /* takes the wanted rows: after the final norm, then what enters each tapped
                      layer. [wanted, 1 + taps, hidden] */
    int32_t num_sequences, rows;
    int32_t first_wanted; /* rows before it only leave keys and values behind; else 0 */
    int32_t workers, num_taps, reserved;
} Pass;

/* Floats of scratch that a pass needs. */
int64_t pass_scratch(const Decoder *decoder, int32_t rows, int32_t length, int32_t workers);

void forward(const Decoder *decoder, const Pass *pass, Pool *pool);

#endif
