/* Constants, structures and functions that Python and the compiled step share.
   Written by medusa_core.system.native.generate; don't edit it. */

#ifndef MEDUSA_ABI_H
#define MEDUSA_ABI_H

#include <stdatomic.h>
#include <stdint.h>

enum { NUM_ALTERNATIVES = 5 };
enum { LANES = 16 }; /* float32 of a vector; the compiler splits it into the CPU's registers */
enum { PANEL = 32 }; /* outputs of a panel of weights */
enum { TILE = 16 }; /* outputs of a tile of block-quantized weights */
enum { BLOCK = 32 }; /* inputs of a block */
enum { SUPER = 256 }; /* inputs of a super-block */
enum { DOWN_TILE = 8 }; /* rows of a LoRA's A that are interleaved */
enum { MAX_KERNEL_SIZE = 64 }; /* taps of a short convolution */
enum { MAX_DRAFT_STEPS = 64 }; /* rows of a pass whose states may be rolled back */
enum { MAX_TOP_K = 64 }; /* best columns of a row */
enum { MAX_CONTEXT = 8 }; /* tokens of a phrase table's longest context */
enum { MAX_TREE_NODES = 1024 };
enum { MAX_LEVELS = 32 }; /* levels of a tree */
enum { MAX_CANDIDATES = 1024 }; /* different tokens after one path */
enum { MAX_SOURCES = 31 }; /* each is a bit of an int32 */
enum { MAX_OFFERS = 128 }; /* candidates that a trace records in a step */
#define MIN_OFFER_VALUE 0.01 /* expected tokens of a recorded candidate */
enum { RATIO_DEPTHS = 4 }; /* deeper nodes share the last depth's acceptance ratio */
/* Upper ends of the ranges of probabilities that have a ratio each; the last range has none. */
#define RATIO_RANGES {0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8}
/* Version of the layouts of weights in linear.h, blocks.h and adapter.h. Raise it when one of them
   changes: files of offloaded layers hold weights in these layouts. */
enum { WEIGHTS_LAYOUT = 16 };

/* Types of weights: floats, int8 with a scale per output, and the blocks of blocks.h. */
typedef enum {
    F32 = 0,
    BF16 = 1,
    I8 = 2,
    Q4_0 = 3,
    Q8_0 = 4,
    Q4_K = 5,
    Q5_K = 6,
    Q6_K = 7,
    Q8_AFFINE = 8,
    MXFP4 = 9,
    IQ4_NL = 10,
    NF4 = 11,
    Q4_1 = 12,
    Q5_0 = 13,
    Q5_1 = 14,
    IQ4_XS = 15,
    IQ3_S = 16,
    IQ3_XXS = 17,
    IQ2 = 18,
    IQ1 = 19,
} TensorType;

/* Codes of the activations in `models/blocks/spec.py`, by the same names. */
typedef enum {
    SILU = 0,
    GELU_TANH = 1,
    CLAMPED_SWIGLU = 2,
    RELU2 = 3,
    GELU = 4,
} ActivationCode;

/* Codes of the router scorings in `models/blocks/spec.py`, by the same names. */
typedef enum {
    SOFTMAX = 0,
    TOPK_SOFTMAX = 1,
    SIGMOID = 2,
} ScoringCode;

/* Rank of a tree node among its siblings. */
typedef enum {
    GREEDY = 0, /* most probable, and so are all of its ancestors */
    FIRST = 1, /* most probable, after an ancestor that isn't */
    SECOND = 2,
    LOWER = 3,
} NodeRank;

/* A task of a job, computed by a worker: 0 is the calling thread. */
typedef void Task(void *job, int32_t index, int32_t worker);

/* Threads that share the tasks of a job, which are claimed one by one. */
typedef struct Pool {
    Task *task;
    void *job;
    _Atomic uint64_t claims; /* number of the job in the upper half, unclaimed tasks in the lower */
    _Atomic int32_t done; /* finished tasks */
    _Atomic int32_t closed;
    _Atomic int32_t busy; /* during a pass: waiting threads go on spinning */
    int32_t workers; /* including the thread that has the tasks computed */
} Pool;

/* B of a LoRA for a range of outputs, with its scale; layout in adapter.h. */
typedef struct Up {
    const void *weight;
    int32_t first_output; /* of the layer's outputs */
    int32_t outputs;
    int32_t rank_start; /* first of the outputs of A that it reads */
    int32_t rank;
} Up;

/* A LoRA: y += B (A x). A is that of all ranges, concatenated; layout in adapter.h. */
typedef struct Adapter {
    const void *down; /* A. [rank, inputs] */
    const Up *ups;
    int32_t num_ups;
    int32_t inputs; /* a multiple of LANES */
    int32_t rank; /* of all ranges together */
    int32_t is_bf16; /* else float32 */
} Adapter;

/* A linear layer, or its first outputs; layout of weights in linear.h and blocks.h. */
typedef struct Linear {
    const void *weight;
    const float *bias; /* or NULL. [outputs] */
    const float *scale; /* of I8, by output; else NULL */
    int32_t outputs;
    int32_t inputs;
    int32_t type; /* a TensorType */
    const struct Linear *next; /* following outputs, or NULL */
    const Adapter *adapter; /* of all outputs together, or NULL */
} Linear;

/* RoPE tables by position. */
typedef struct Rope {
    const float *cos_sin; /* cosine and sine of each pair. [positions, head_dim / 2, 2] */
    const float *attn_temperature_scale; /* of queries, or NULL. [positions] */
} Rope;

/* RMSNorm weights before and after half a block, each or NULL. [hidden] */
typedef struct Norms {
    const float *pre;
    const float *post;
} Norms;

/* RMSNorm of queries, keys or values, in groups such as heads. */
typedef struct HeadNorm {
    const float *weight; /* or NULL for no norm. [group_size] */
    int32_t group_size;
    int32_t is_after_rope;
} HeadNorm;

/* Settings of a layer's attention. */
typedef struct Attention {
    int32_t num_heads;
    int32_t sliding_window; /* rows that a row attends to, itself included; 0 for all */
    float logit_softcap; /* scores become cap · tanh(score / cap); 0 for no cap */
    const float *sinks; /* a score per head that belongs to no key, or NULL. [num_heads] */
} Attention;

/* Sizes of an MLP. */
typedef struct MlpShape {
    int32_t intermediate_size; /* a multiple of LANES; 0 for no MLP */
    /* Offset of the up projection in an output row of `gate_up`: `intermediate_size`, or 0 without a
       gate, where both factors are the same numbers. */
    int32_t up_offset;
} MlpShape;

/* A mixture of experts: MLPs of which a router chooses a few for each row. */
typedef struct Experts {
    Linear router;
    Linear shared_gate_up; /* of the shared expert, if `shared_mlp` has a size */
    Linear shared_down;
    Linear shared_gate; /* its sigmoid multiplies the shared expert's output; 0 outputs: none */
    const Linear *gate_ups; /* [num_experts] */
    const Linear *downs; /* [num_experts] */
    const float *router_bias; /* of SIGMOID, added for top-k only, or NULL. [num_experts] */
    const float *expert_scales; /* factors of the routing weights, or NULL. [num_experts] */
    MlpShape mlp;
    MlpShape shared_mlp;
    int32_t num_experts;
    int32_t num_experts_per_tok;
    int32_t scoring; /* a ScoringCode */
    int32_t norm_topk_prob; /* divide the routing weights of a row by their sum */
    int32_t packed_width; /* largest packed_width() of its layers */
    float sum_eps; /* added to that sum, of SIGMOID */
    float routed_scaling_factor;
} Experts;

/* Experts in parallel to a block's MLP (Gemma 4); norms [hidden]. */
typedef struct ParallelExperts {
    const Experts *experts;
    const float *pre_norm; /* input of the experts */
    const float *router_norm; /* input of their router */
    const float *post_norm; /* output of the experts */
    const float *post_mlp_norm; /* output of the MLP */
} ParallelExperts;

/* Activation of a model's MLPs. */
typedef struct Activation {
    int32_t code; /* an ActivationCode */
    float swiglu_limit; /* of CLAMPED_SWIGLU */
    float gate_multiplier; /* factor of the gate before the activation */
} Activation;

/* Sizes of a recurrent layer's state; consecutive heads share a key head. */
typedef struct StateShape {
    int32_t num_heads;
    int32_t key_dim;
    int32_t value_dim;
    int32_t num_key_heads;
    int32_t channels; /* of its convolution */
    int32_t kernel_size;
} StateShape;

/* States of all recurrent layers of a session, and the pending steps of its last pass. */
typedef struct States {
    float *state; /* [layers, num_heads, key_dim, value_dim] */
    float *conv_state; /* last inputs of the convolution. [layers, kernel_size − 1, channels] */
    /* What each row of the last pass would do to the state; of a committed prompt only the last row.
       [layers, max_steps, num_key_heads, key_dim] */
    float *keys;
    float *updates; /* [layers, max_steps, num_heads, value_dim] */
    float *decays; /* logarithms. [layers, max_steps, num_heads] */
    float *inputs; /* of the convolution. [layers, max_steps, channels] */
    StateShape shape;
    int32_t num_layers;
    int32_t max_steps;
} States;

/* A short depthwise convolution; kernel_size 0 if there is none. */
typedef struct Convolution {
    const float *weight; /* the row's own tap is the last. [kernel_size, channels] */
    const float *bias; /* [channels], or NULL */
    int32_t channels; /* a multiple of LANES */
    int32_t kernel_size; /* at most MAX_KERNEL_SIZE */
} Convolution;

/* A gated delta net or Mamba-2 mixer; recurrence.h has the equations.

   A projected row holds the inputs of the convolution, whose outputs are queries and keys of key
   heads and values of heads, and an output gate. */
typedef struct Recurrence {
    Convolution conv;
    const float *decay_rate; /* negative. [num_heads] */
    const float *dt_bias; /* [num_heads] */
    const float *skip; /* D of Mamba-2, or NULL. [num_heads] */
    const float *norm; /* of the output, or NULL. [num_heads, value_dim] */
    const float *input_scale; /* factors of a projected row, or NULL. [width] */
    StateShape shape;
    int32_t state_index; /* among the layers with states */
    int32_t tiled_key_heads; /* key heads, if `output` reads the first head of each, …; else 0 */
    int32_t norm_group_size;
    int32_t is_gated_before_norm;
    int32_t is_delta; /* a delta net: queries and keys are L2-normalized */
    int32_t width; /* of a projected row */
    int32_t conv_offset; /* in a projected row */
    int32_t gate_offset;
    int32_t query_offset; /* among the channels */
    int32_t key_offset;
    int32_t value_offset;
    int32_t has_own_dt; /* time steps are in rows of their own, not in projected rows */
    int32_t dt_width; /* width of the rows with time steps; those of delta nets start with β */
    int32_t dt_offset;
    float min_dt;
    float max_dt;
    float eps;
} Recurrence;

/* A decoder block: token mixer, then MLP, experts or both, then optionally a per-layer input.

   An output row of `qkv` holds queries, keys and values, head by head; only queries if the layer
   reads the cache of an earlier one. `qkv` of a short convolution computes the input of
   convolve_gated(), that of a recurrence its projected rows. */
typedef struct Block {
    Linear qkv;
    Linear output;
    Linear gate_up;
    Linear down;
    Linear dt; /* time steps of a recurrence, if it has_own_dt */
    Linear per_layer_gate;
    Linear per_layer_projection;
    Norms mixer_norms;
    Norms mlp_norms;
    HeadNorm q_norm;
    HeadNorm k_norm;
    HeadNorm v_norm;
    const Rope *rope; /* or NULL */
    const float *per_layer_norm; /* after `per_layer_projection`. [hidden] */
    const Experts *experts; /* in place of the MLP, or NULL */
    const ParallelExperts *parallel_experts; /* or NULL */
    Attention attention;
    Convolution convolution; /* in place of attention */
    float query_scale;
    float output_scale; /* of the whole block */
    float mixer_scale; /* of what each half adds */
    float mlp_scale;
    int32_t num_kv_heads;
    int32_t head_dim;
    MlpShape mlp;
    int32_t qkv_width; /* of an output row of `qkv` */
    int32_t values_are_keys; /* V equals K before norm and RoPE */
    int32_t gate_offset; /* of gates of the attention output in a row of `qkv`; 0 for none */
    int32_t mixer_width; /* of an input row of `output`; 0 without a token mixer */
    int32_t per_layer_offset; /* in a row of per-layer inputs */
    int32_t per_layer_width; /* 0 for none */
    const Recurrence *recurrence; /* In place of attention, or NULL. */
    const struct Block *parallel_mixer; /* A second token mixer in parallel to this block's, or NULL. */
} Block;

/* The blocks of a model, with its embeddings and its final norm. */
typedef struct Decoder {
    const Block *blocks;
    const float *final_norm;
    const void *embedding; /* [vocabulary, hidden] */
    const Linear *per_layer_projection; /* Of embeddings to per-layer inputs, or NULL. */
    const float *per_layer_norm; /* of each layer's part. [per_layer_width] */
    int32_t embedding_is_bf16; /* else float32 */
    int32_t num_layers;
    int32_t hidden_size;
    Activation activation;
    float embedding_multiplier;
    float residual_multiplier; /* of what each half of a block adds */
    float eps;
    int32_t per_layer_width;
} Decoder;

/* Memory of a short convolution outside the recurrent states. */
typedef struct ConvState {
    float *state; /* last inputs of the committed rows. [kernel_size − 1, channels] */
    float *inputs; /* takes those of the rows of a pass. [rows, channels] */
} ConvState;

/* Keys of all heads of a layer, then their values; layout in cache.h. */
typedef struct LayerCache {
    uint32_t *words;
    ConvState conv;
    int32_t num_kv_heads;
    int32_t head_dim; /* a multiple of LANES */
    int32_t is_shared; /* an earlier layer writes these rows */
} LayerCache;

/* The KV cache of a sequence; its first rows may be in a cache that several others share. */
typedef struct Cache {
    const LayerCache *layers;
    int64_t capacity; /* slots after the shared rows; a multiple of LANES */
    int32_t num_layers;
    int32_t type; /* a TensorType: F32, BF16 or Q8_0 */
    const struct Cache *prefix; /* read-only, or NULL */
    int64_t num_shared; /* rows of `prefix`; a multiple of LANES */
} Cache;

/* The rows of a sequence in a pass: row i is in slot num_committed + i, parents come first. */
typedef struct Tree {
    int32_t num_rows;
    int32_t num_committed;
    const int32_t *parents; /* −1 for a row that follows the committed ones */
    const int32_t *depths; /* number of ancestors */
} Tree;

/* A sequence in a pass, and the cache that it extends. */
typedef struct Sequence {
    Tree tree;
    const Cache *cache;
    const States *states; /* of recurrent layers, or NULL */
    int32_t num_pending; /* committed steps to apply to the states before the pass */
    int32_t is_decided; /* all rows will be committed: a chunk of a prompt */
} Sequence;

/* A forward pass over rows of sequences, which don't attend to each other. */
typedef struct Pass {
    const Sequence *sequences;
    const int64_t *token_ids; /* of all rows */
    /* Per-layer embeddings of the tokens, or NULL; `per_layer_projection` completes them in place.
       [num_rows, per_layer_width] */
    float *per_layer_inputs;
    const int32_t *taps; /* layers whose input is output, too, ascending; num_layers: output of the last */
    float *scratch;
    /* Of each output row the final norm's output, then the tapped values. [num_rows − first_output_row,
       1 + num_taps, hidden] */
    float *hidden_states;
    /* Input of the first block's token mixer in place of its pre-norm's output, or NULL. [num_rows −
       first_row, inputs of `qkv`] */
    const float *mixer_inputs;
    int32_t num_sequences;
    int32_t num_rows;
    /* Of the only sequence, whose earlier rows have their keys and values in the cache already. */
    int32_t first_row;
    int32_t first_output_row; /* of earlier rows the last layer only writes keys and values */
    int32_t num_workers;
    int32_t num_taps;
    int32_t per_layer_width; /* of all layers together */
} Pass;

/* Sampling noise and filters of a position. */
typedef struct Noise {
    const double *uniform; /* in [0, 1), by token id */
    float temperature;
    float top_p; /* 1 for all */
    float min_p;
    int32_t top_k; /* 0 for all */
} Noise;

/* How rows of logits are ranked, and where the best columns of each are written. */
typedef struct Ranking {
    const int64_t *token_ids; /* of columns; NULL if they are ids */
    const Noise *noises; /* by position, or NULL for no noise */
    int32_t *columns; /* best first. [rows, k] */
    int32_t *tokens; /* their token ids, or NULL. [rows, k] */
    float *probabilities; /* given the noise, if any. [rows, k] */
    int32_t num_columns;
    int32_t k; /* at most MAX_TOP_K */
    int32_t rows_per_noise; /* consecutive rows of one position */
    float sharpness; /* factor of noisy scores, below 1, which flattens their softmax */
    float tail_factor; /* mean of e^(sharpness · noise): the weight of columns that aren't drawn */
} Ranking;

/* Medusa heads. */
typedef struct Heads {
    const Linear *first; /* First residual layers of all heads, concatenated, or NULL. */
    const Linear *rest; /* Further residual layers, depth by depth, one for each head. */
    const Linear *projections; /* one per head, or one for all */
    const void *embedding; /* if the first layers read the root's, too; else NULL. [vocabulary, hidden] */
    int32_t hidden_size; /* a multiple of PANEL */
    int32_t num_columns; /* outputs of a projection */
    int32_t num_heads;
    int32_t num_rest; /* depths of `rest` */
    int32_t shares_projection;
    int32_t embedding_is_bf16; /* else float32 */
} Heads;

/* A Hydra head, which reads the target's state, the root and the drafts of a path. */
typedef struct PathHead {
    /* W of the first residual layer, and R below it; without R the residual is the state. */
    const Linear *first;
    const Linear *rest; /* further residual layers */
    const Linear *projection;
    const void *embedding; /* [vocabulary, hidden] */
    int32_t hidden_size; /* a multiple of PANEL */
    int32_t num_tokens; /* of a path, with the root */
    int32_t num_rest;
    int32_t embedding_is_bf16; /* else float32 */
} PathHead;

/* Frequent continuations of short contexts; see models/datastore/phrases.py. */
typedef struct PhraseTable {
    const uint32_t *keys; /* hashes, ascending. [contexts] */
    const int32_t *starts; /* first continuation of each context, and their number. [contexts + 1] */
    const int32_t *tokens; /* most probable first. [continuations] */
    const float *probabilities; /* [continuations] */
    const int32_t *buckets; /* first context whose key starts with i or a higher number. [2^bits + 1] */
    int32_t shift; /* 32 − bits */
    int32_t max_context; /* tokens of the longest context; at most MAX_CONTEXT */
} PhraseTable;

/* A node of a growing tree. */
typedef struct Node {
    double value; /* product of the corrected probabilities of its path */
    double probability; /* as proposed, if the path before is right */
    int32_t parent;
    int32_t depth;
    int32_t token;
    int32_t sources; /* bit mask of those that proposed it */
    int32_t rank; /* a NodeRank */
} Node;

/* Tokens that a source proposes after the open paths of a level. */
typedef struct Candidates {
    const int32_t *tokens; /* path by path, different ones after each. [size] */
    const float *probabilities; /* [size] */
    const int32_t *counts; /* candidates of each path; NULL if all are those of every path. [open] */
    /* Weight in the mixture of the sources that propose something after a path; 0 for a source whose
       probability replaces that of the mixture if it is higher. */
    double weight;
    int32_t size;
    int32_t source; /* its bit */
} Candidates;

/* A candidate that is recorded for a trace. */
typedef struct Offer {
    int32_t parent; /* index of the offer that it follows; −1 for the root */
    int32_t token;
    float probability;
} Offer;

/* A tree that grows level by level; costs and values are in tokens. */
typedef struct Growth {
    const float *row_costs; /* of 1, 2, … rows, ascending from 0; NULL for no costs. [max_nodes] */
    /* Value that a node must exceed if at least 1, 2, … rows precede it; NULL as above. [max_nodes] */
    const float *min_values;
    /* Factors of probabilities by the single source that proposed a token (the last for several), rank,
       depth and range; NULL for 1. [sources + 1, NodeRank, RATIO_DEPTHS, RATIO_RANGES + 1] */
    const float *acceptance_ratios;
    /* Of each level its acceptance rate, the cost of drafting after the first path, and after another
       one; NULL for no costs. [MAX_LEVELS, 3] */
    const float *draft_costs;
    double min_value; /* the lowest of `min_values`, or 0 */
    double expected_accepted; /* result: summed values of the drafts */
    Node *nodes; /* [max_nodes] */
    int32_t *order; /* slots in use, the highest value first, then free ones. [max_nodes] */
    int32_t *open; /* slots whose children are drafted next, the highest value first. [max_nodes] */
    int32_t *paths; /* their tokens from the root's child on. [open, level], room for MAX_LEVELS */
    /* Result, in breadth-first order, siblings by value: number of children, sources and token of each
       node; 0 for the root's. [3, nodes] */
    int32_t *result;
    float *probabilities; /* result: of each draft. [nodes − 1] */
    /* The first candidates of at least MIN_OFFER_VALUE; NULL if they aren't recorded. [MAX_OFFERS] */
    Offer *offers;
    int32_t *offer_of_node; /* −1 for the root, and if it isn't recorded. [max_nodes] */
    int32_t max_nodes; /* root included; 1 to MAX_TREE_NODES */
    int32_t num_nodes;
    int32_t num_open;
    int32_t level; /* tokens of the open paths */
    int32_t num_offers;
    int32_t is_chain; /* no node may have more than one child */
} Growth;

/* Number of floats of scratch memory for a pass of some rows after `length` committed ones. */
int64_t pass_scratch(const Decoder *decoder, int32_t rows, int32_t length, int32_t workers);

/* Run a forward pass. */
void forward(const Decoder *decoder, const Pass *pass, Pool *pool);

/* Divide logits, then cap them softly unless `softcap` is 0; in place. [count] */
void scale_logits(float *logits, int64_t count, float divisor, float softcap, Pool *pool);

/* Rank rows of logits, `stride` floats apart. */
void rank_rows(const float *logits, int64_t stride, int32_t rows, const Ranking *ranking,
               Pool *pool);

/* Compute and rank the logits of the first `count` heads for one row.
   hidden: the target's hidden state. [hidden_size]; root_id: the token chosen from it
   scratch: [3 · count + 3, hidden_size]; logits: [count, num_columns] */
void run_heads(const Heads *heads, const float *hidden, int64_t root_id, int32_t count,
               float *scratch, float *logits, const Ranking *ranking, Pool *pool);

/* Compute and rank the logits of a Hydra head after `count` paths.
   paths: their tokens without the root. [count, num_tokens − 1]
   scratch: [count, 2 · (num_tokens + 3), hidden_size]; logits: [count, columns] */
void run_path_head(const PathHead *head, const float *hidden, int64_t root_id,
                   const int32_t *paths, int32_t count, float *scratch, float *logits,
                   const Ranking *ranking, Pool *pool);

/* Follow the most probable tokens down a tree from its root.
   logits: [nodes, columns]; token_ids, parents: [nodes]
   walked: takes the visited nodes, then the best token of each; the last isn't in the tree.
   [2 · nodes]
   summary: takes what read_choices() writes for them, or NULL.
   Returns the number of visited nodes; 0 if a row has NaN or an infinite maximum. */
int32_t walk_greedy(const float *logits, int64_t columns, const int32_t *token_ids,
                    const int32_t *parents, int32_t nodes, int32_t *walked, float *summary);

/* Softmax probabilities of entries: entry i is in row rows[i] and column places[i]; entries of a
   row are consecutive. */
void probabilities(const float *logits, int64_t columns, const int32_t *rows, const int32_t *places,
                   int32_t count, float *result);

/* Probabilities of chosen tokens and of their best alternatives, for a trace.
   rows: `count` rows, then the chosen column of each.
   result: of the choices [count], of the alternatives [count, NUM_ALTERNATIVES], then, as int32,
   their columns [count, NUM_ALTERNATIVES]. */
void read_choices(const float *logits, int64_t columns, const int32_t *rows, int32_t count,
                  float *result);

/* y = x Wᵀ + b + residual, and the output of the adapter; `residual` may be NULL, or y.
   With weights in I8 or blocks x is quantized to 8 bits: each 64 inputs of a row, or each block,
   have a scale.
   packed: scratch of rows · packed_width floats. [rows, inputs] → [rows, outputs] */
void linear(Pool *pool, const Linear *layer, const float *x, uint32_t *packed, int32_t rows,
            const float *residual, float *y);

/* Repack rows of blocks, in the layout of GGUF files, into tiles; zeros pad the last one.
   Returns 0 if that isn't implemented for the type. */
int32_t tile_blocks(int32_t type, const void *stored, int32_t rows, int32_t columns, void *tiles);

/* Dequantize `count` stored blocks to bfloat16 or float32.
   Returns 0 if that isn't implemented for the type. */
int32_t dequantize_blocks(int32_t type, const void *stored, int64_t count, int32_t is_bf16,
                          void *numbers);

/* Quantize `count` blocks of weights to stored Q4_0, with the scales of least squares. */
void quantize_q4(const float *weights, int64_t count, void *stored);

/* Number of floats of scratch memory for run_experts(). */
int64_t experts_scratch(const Experts *experts, int32_t hidden, int32_t rows);

/* Output of the experts: of each row a weighted sum in the order of their indices, then the shared
   expert. x, router_input: [rows, hidden] → y: [rows, hidden] */
void run_experts(Pool *pool, const Experts *experts, const Activation *activation, int32_t hidden,
                 const float *x, const float *router_input, int32_t rows, float *scratch, float *y);

/* Start a tree with its root. */
void grow_begin(Growth *growth);

/* Add the candidates of all sources after the open paths; returns the new number of open paths. */
int32_t grow_level(Growth *growth, const Candidates *sources, int32_t num_sources);

/* Write the nodes whose total value most exceeds their cost; returns their number. */
int32_t grow_end(Growth *growth);

/* Look up what follows each path: the continuations of the longest context in the table.
   text: tokens before the paths. [length]; paths: [num_paths, level]
   counts: takes the number of continuations of each path. [num_paths]
   tokens, probabilities: take them, path by path; a path without room gets none. [room]
   Returns the number of continuations. */
int32_t find_continuations(const PhraseTable *table, const int32_t *text, int64_t length,
                           const int32_t *paths, int32_t num_paths, int32_t level, int32_t *counts,
                           int32_t *tokens, float *probabilities, int32_t room);

/* Move rows of all layers to slot `length` and after; `slots` are offsets to it, ascending. */
void keep_rows(const Cache *cache, int64_t length, const int64_t *slots, int64_t count);

/* Apply the first `count` pending steps to the states of all layers. */
void apply_pending(Pool *pool, const States *states, int32_t count);

/* Compute tasks as worker 1, 2, … until there have been none for a while, or the pool is closed. */
void run_worker(Pool *pool, int32_t worker);

#endif
