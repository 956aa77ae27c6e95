"""Structures and functions that Python and the compiled step share, described once.

`generate.py` writes `src/abi.h` and `src/abi.c` from this module, comments included: the comment of
a class is its docstring, that of a field follows it or precedes it. When a library is loaded, the
size and offset of every field are compared with those of its C compiler.
"""

import re
from collections.abc import Iterator, Sequence
from ctypes import Structure, c_double, c_float, c_int32, c_int64, c_uint64, c_void_p, sizeof
from typing import Annotated, NamedTuple, TypeVar

from medusa_core.system.native import constants
from medusa_core.system.native.constants import ENUMS

Address = int | None
Int32 = Annotated[int, "int32_t", c_int32]
Int64 = Annotated[int, "int64_t", c_int64]
Float = Annotated[float, "float", c_float]
Double = Annotated[float, "double", c_double]
AtomicInt32 = Annotated[int, "_Atomic int32_t", c_int32]
AtomicUInt64 = Annotated[int, "_Atomic uint64_t", c_uint64]
# Pointers are addresses: whoever sets one keeps the memory alive.
Data = Annotated[Address, "const void *", c_void_p]
Floats = Annotated[Address, "const float *", c_void_p]
Int32s = Annotated[Address, "const int32_t *", c_void_p]
FloatsOut = Annotated[Address, "float *", c_void_p]
Int32sOut = Annotated[Address, "int32_t *", c_void_p]

STRUCTS: list[type[Structure]] = []
_Struct = TypeVar("_Struct", bound=type[Structure])


class Field(NamedTuple):
    """A field of a structure.

    Attributes:
        name: Name in C and Python.
        c_type: Type in C.
        kind: Type in Python.
    """

    name: str
    c_type: str
    kind: type


def fields_of(struct: type[Structure]) -> list[Field]:
    """Return the fields that the annotations of a structure describe."""
    fields = []
    for name, annotation in struct.__annotations__.items():
        if isinstance(annotation, type):  # a structure in the structure
            fields.append(Field(name, c_name(annotation), annotation))
        else:
            fields.append(Field(name, *annotation.__metadata__))
    return fields


def c_name(struct: type[Structure]) -> str:
    """Return the name of a structure in C."""
    return struct.__name__.removesuffix("Struct")


def c_struct(described: _Struct) -> _Struct:
    """Make a ctypes structure from the annotations of a class; unknown fields can't be set."""
    members = {
        "__doc__": described.__doc__,
        "__module__": described.__module__,
        "__annotations__": described.__annotations__,
        "__slots__": (),
        "_fields_": tuple((name, kind) for name, _, kind in fields_of(described)),
    }
    metaclass: type = type(described)
    struct: _Struct = metaclass(described.__name__, described.__bases__, members)
    STRUCTS.append(struct)
    return struct


@c_struct
class PoolStruct(Structure):
    """Threads that share the tasks of a job, which are claimed one by one."""

    task: Annotated[Address, "Task *", c_void_p]
    job: Annotated[Address, "void *", c_void_p]
    claims: AtomicUInt64  # number of the job in the upper half, unclaimed tasks in the lower
    done: AtomicInt32  # finished tasks
    closed: AtomicInt32
    busy: AtomicInt32  # during a pass: waiting threads go on spinning
    workers: Int32  # including the thread that has the tasks computed


@c_struct
class UpStruct(Structure):
    """B of a LoRA for a range of outputs, with its scale; layout in adapter.h."""

    weight: Data
    first_output: Int32  # of the layer's outputs
    outputs: Int32
    rank_start: Int32  # first of the outputs of A that it reads
    rank: Int32


@c_struct
class AdapterStruct(Structure):
    """A LoRA: y += B (A x). A is that of all ranges, concatenated; layout in adapter.h."""

    down: Data  # A. [rank, inputs]
    ups: Annotated[Address, "const Up *", c_void_p]
    num_ups: Int32
    inputs: Int32  # a multiple of LANES
    rank: Int32  # of all ranges together
    is_bf16: Int32  # else float32


@c_struct
class LinearStruct(Structure):
    """A linear layer, or its first outputs; layout of weights in linear.h and blocks.h."""

    weight: Data
    bias: Floats  # or NULL. [outputs]
    scale: Floats  # of I8, by output; else NULL
    outputs: Int32
    inputs: Int32
    type: Int32  # a TensorType
    next: Annotated[Address, "const struct Linear *", c_void_p]  # following outputs, or NULL
    adapter: Annotated[Address, "const Adapter *", c_void_p]  # of all outputs together, or NULL


@c_struct
class RopeStruct(Structure):
    """RoPE tables by position."""

    cos_sin: Floats  # cosine and sine of each pair. [positions, head_dim / 2, 2]
    attn_temperature_scale: Floats  # of queries, or NULL. [positions]


@c_struct
class NormsStruct(Structure):
    """RMSNorm weights before and after half a block, each or NULL. [hidden]"""

    pre: Floats
    post: Floats


@c_struct
class HeadNormStruct(Structure):
    """RMSNorm of queries, keys or values, in groups such as heads."""

    weight: Floats  # or NULL for no norm. [group_size]
    group_size: Int32
    is_after_rope: Int32


@c_struct
class AttentionStruct(Structure):
    """Settings of a layer's attention."""

    num_heads: Int32
    sliding_window: Int32  # rows that a row attends to, itself included; 0 for all
    logit_softcap: Float  # scores become cap · tanh(score / cap); 0 for no cap
    sinks: Floats  # a score per head that belongs to no key, or NULL. [num_heads]


@c_struct
class MlpShapeStruct(Structure):
    """Sizes of an MLP."""

    intermediate_size: Int32  # a multiple of LANES; 0 for no MLP
    # Offset of the up projection in an output row of `gate_up`: `intermediate_size`, or 0 without
    # a gate, where both factors are the same numbers.
    up_offset: Int32


@c_struct
class ExpertsStruct(Structure):
    """A mixture of experts: MLPs of which a router chooses a few for each row."""

    router: LinearStruct
    shared_gate_up: LinearStruct  # of the shared expert, if `shared_mlp` has a size
    shared_down: LinearStruct
    shared_gate: LinearStruct  # its sigmoid multiplies the shared expert's output; 0 outputs: none
    gate_ups: Annotated[Address, "const Linear *", c_void_p]  # [num_experts]
    downs: Annotated[Address, "const Linear *", c_void_p]  # [num_experts]
    router_bias: Floats  # of SIGMOID, added for top-k only, or NULL. [num_experts]
    expert_scales: Floats  # factors of the routing weights, or NULL. [num_experts]
    mlp: MlpShapeStruct
    shared_mlp: MlpShapeStruct
    num_experts: Int32
    num_experts_per_tok: Int32
    scoring: Int32  # a ScoringCode
    norm_topk_prob: Int32  # divide the routing weights of a row by their sum
    packed_width: Int32  # largest packed_width() of its layers
    sum_eps: Float  # added to that sum, of SIGMOID
    routed_scaling_factor: Float


@c_struct
class ParallelExpertsStruct(Structure):
    """Experts in parallel to a block's MLP (Gemma 4); norms [hidden]."""

    experts: Annotated[Address, "const Experts *", c_void_p]
    pre_norm: Floats  # input of the experts
    router_norm: Floats  # input of their router
    post_norm: Floats  # output of the experts
    post_mlp_norm: Floats  # output of the MLP


@c_struct
class ActivationStruct(Structure):
    """Activation of a model's MLPs."""

    code: Int32  # an ActivationCode
    swiglu_limit: Float  # of CLAMPED_SWIGLU
    gate_multiplier: Float  # factor of the gate before the activation


@c_struct
class StateShapeStruct(Structure):
    """Sizes of a recurrent layer's state; consecutive heads share a key head."""

    num_heads: Int32
    key_dim: Int32
    value_dim: Int32
    num_key_heads: Int32
    channels: Int32  # of its convolution
    kernel_size: Int32


@c_struct
class StatesStruct(Structure):
    """States of all recurrent layers of a session, and the pending steps of its last pass."""

    state: FloatsOut  # [layers, num_heads, key_dim, value_dim]
    conv_state: FloatsOut  # last inputs of the convolution. [layers, kernel_size − 1, channels]
    # What each row of the last pass would do to the state; of a committed prompt only the last row.
    keys: FloatsOut  # [layers, max_steps, num_key_heads, key_dim]
    updates: FloatsOut  # [layers, max_steps, num_heads, value_dim]
    decays: FloatsOut  # logarithms. [layers, max_steps, num_heads]
    inputs: FloatsOut  # of the convolution. [layers, max_steps, channels]
    shape: StateShapeStruct
    num_layers: Int32
    max_steps: Int32


@c_struct
class ConvolutionStruct(Structure):
    """A short depthwise convolution; kernel_size 0 if there is none."""

    weight: Floats  # the row's own tap is the last. [kernel_size, channels]
    bias: Floats  # [channels], or NULL
    channels: Int32  # a multiple of LANES
    kernel_size: Int32  # at most MAX_KERNEL_SIZE


@c_struct
class RecurrenceStruct(Structure):
    """A gated delta net or Mamba-2 mixer; recurrence.h has the equations.

    A projected row holds the inputs of the convolution, whose outputs are queries and keys of key
    heads and values of heads, and an output gate.
    """

    conv: ConvolutionStruct
    decay_rate: Floats  # negative. [num_heads]
    dt_bias: Floats  # [num_heads]
    skip: Floats  # D of Mamba-2, or NULL. [num_heads]
    norm: Floats  # of the output, or NULL. [num_heads, value_dim]
    input_scale: Floats  # factors of a projected row, or NULL. [width]
    shape: StateShapeStruct
    state_index: Int32  # among the layers with states
    tiled_key_heads: Int32  # key heads, if `output` reads the first head of each, …; else 0
    norm_group_size: Int32
    is_gated_before_norm: Int32
    is_delta: Int32  # a delta net: queries and keys are L2-normalized
    width: Int32  # of a projected row
    conv_offset: Int32  # in a projected row
    gate_offset: Int32
    query_offset: Int32  # among the channels
    key_offset: Int32
    value_offset: Int32
    has_own_dt: Int32  # time steps are in rows of their own, not in projected rows
    dt_width: Int32  # width of the rows with time steps; those of delta nets start with β
    dt_offset: Int32
    min_dt: Float
    max_dt: Float
    eps: Float


@c_struct
class BlockStruct(Structure):
    """A decoder block: token mixer, then MLP, experts or both, then optionally a per-layer input.

    An output row of `qkv` holds queries, keys and values, head by head; only queries if the layer
    reads the cache of an earlier one. `qkv` of a short convolution computes the input of
    convolve_gated(), that of a recurrence its projected rows.
    """

    qkv: LinearStruct
    output: LinearStruct
    gate_up: LinearStruct
    down: LinearStruct
    dt: LinearStruct  # time steps of a recurrence, if it has_own_dt
    per_layer_gate: LinearStruct
    per_layer_projection: LinearStruct
    mixer_norms: NormsStruct
    mlp_norms: NormsStruct
    q_norm: HeadNormStruct
    k_norm: HeadNormStruct
    v_norm: HeadNormStruct
    rope: Annotated[Address, "const Rope *", c_void_p]  # or NULL
    per_layer_norm: Floats  # after `per_layer_projection`. [hidden]
    experts: Annotated[Address, "const Experts *", c_void_p]  # in place of the MLP, or NULL
    parallel_experts: Annotated[Address, "const ParallelExperts *", c_void_p]  # or NULL
    attention: AttentionStruct
    convolution: ConvolutionStruct  # in place of attention
    query_scale: Float
    output_scale: Float  # of the whole block
    mixer_scale: Float  # of what each half adds
    mlp_scale: Float
    num_kv_heads: Int32
    head_dim: Int32
    mlp: MlpShapeStruct
    qkv_width: Int32  # of an output row of `qkv`
    values_are_keys: Int32  # V equals K before norm and RoPE
    gate_offset: Int32  # of gates of the attention output in a row of `qkv`; 0 for none
    mixer_width: Int32  # of an input row of `output`; 0 without a token mixer
    per_layer_offset: Int32  # in a row of per-layer inputs
    per_layer_width: Int32  # 0 for none
    # In place of attention, or NULL.
    recurrence: Annotated[Address, "const Recurrence *", c_void_p]
    # A second token mixer in parallel to this block's, or NULL.
    parallel_mixer: Annotated[Address, "const struct Block *", c_void_p]


@c_struct
class DecoderStruct(Structure):
    """The blocks of a model, with its embeddings and its final norm."""

    blocks: Annotated[Address, "const Block *", c_void_p]
    final_norm: Floats
    embedding: Data  # [vocabulary, hidden]
    # Of embeddings to per-layer inputs, or NULL.
    per_layer_projection: Annotated[Address, "const Linear *", c_void_p]
    per_layer_norm: Floats  # of each layer's part. [per_layer_width]
    embedding_is_bf16: Int32  # else float32
    num_layers: Int32
    hidden_size: Int32
    activation: ActivationStruct
    embedding_multiplier: Float
    residual_multiplier: Float  # of what each half of a block adds
    eps: Float
    per_layer_width: Int32


@c_struct
class ConvStateStruct(Structure):
    """Memory of a short convolution outside the recurrent states."""

    state: FloatsOut  # last inputs of the committed rows. [kernel_size − 1, channels]
    inputs: FloatsOut  # takes those of the rows of a pass. [rows, channels]


@c_struct
class LayerCacheStruct(Structure):
    """Keys of all heads of a layer, then their values; layout in cache.h."""

    words: Annotated[Address, "uint32_t *", c_void_p]
    conv: ConvStateStruct
    num_kv_heads: Int32
    head_dim: Int32  # a multiple of LANES
    is_shared: Int32  # an earlier layer writes these rows


@c_struct
class CacheStruct(Structure):
    """The KV cache of a sequence; its first rows may be in a cache that several others share."""

    layers: Annotated[Address, "const LayerCache *", c_void_p]
    capacity: Int64  # slots after the shared rows; a multiple of LANES
    num_layers: Int32
    type: Int32  # a TensorType: F32, BF16 or Q8_0
    prefix: Annotated[Address, "const struct Cache *", c_void_p]  # read-only, or NULL
    num_shared: Int64  # rows of `prefix`; a multiple of LANES


@c_struct
class TreeStruct(Structure):
    """The rows of a sequence in a pass: row i is in slot num_committed + i, parents come first."""

    num_rows: Int32
    num_committed: Int32
    parents: Int32s  # −1 for a row that follows the committed ones
    depths: Int32s  # number of ancestors


@c_struct
class SequenceStruct(Structure):
    """A sequence in a pass, and the cache that it extends."""

    tree: TreeStruct
    cache: Annotated[Address, "const Cache *", c_void_p]
    states: Annotated[Address, "const States *", c_void_p]  # of recurrent layers, or NULL
    num_pending: Int32  # committed steps to apply to the states before the pass
    is_decided: Int32  # all rows will be committed: a chunk of a prompt


@c_struct
class PassStruct(Structure):
    """A forward pass over rows of sequences, which don't attend to each other."""

    sequences: Annotated[int, "const Sequence *", c_void_p]
    token_ids: Annotated[int, "const int64_t *", c_void_p]  # of all rows
    # Per-layer embeddings of the tokens, or NULL; `per_layer_projection` completes them in place.
    per_layer_inputs: FloatsOut  # [num_rows, per_layer_width]
    taps: Int32s  # layers whose input is output, too, ascending; num_layers: output of the last
    scratch: FloatsOut
    # Of each output row the final norm's output, then the tapped values.
    hidden_states: FloatsOut  # [num_rows − first_output_row, 1 + num_taps, hidden]
    # Input of the first block's token mixer in place of its pre-norm's output, or NULL.
    # [num_rows − first_row, inputs of `qkv`]
    mixer_inputs: Floats
    num_sequences: Int32
    num_rows: Int32
    # Of the only sequence, whose earlier rows have their keys and values in the cache already.
    first_row: Int32
    first_output_row: Int32  # of earlier rows the last layer only writes keys and values
    num_workers: Int32
    num_taps: Int32
    per_layer_width: Int32  # of all layers together


@c_struct
class NoiseStruct(Structure):
    """Sampling noise and filters of a position."""

    uniform: Annotated[Address, "const double *", c_void_p]  # in [0, 1), by token id
    temperature: Float
    top_p: Float  # 1 for all
    min_p: Float
    top_k: Int32  # 0 for all


@c_struct
class RankingStruct(Structure):
    """How rows of logits are ranked, and where the best columns of each are written."""

    token_ids: Annotated[Address, "const int64_t *", c_void_p]  # of columns; NULL if they are ids
    noises: Annotated[Address, "const Noise *", c_void_p]  # by position, or NULL for no noise
    columns: Int32sOut  # best first. [rows, k]
    tokens: Int32sOut  # their token ids, or NULL. [rows, k]
    probabilities: FloatsOut  # given the noise, if any. [rows, k]
    num_columns: Int32
    k: Int32  # at most MAX_TOP_K
    rows_per_noise: Int32  # consecutive rows of one position
    sharpness: Float  # factor of noisy scores, below 1, which flattens their softmax
    tail_factor: Float  # mean of e^(sharpness · noise): the weight of columns that aren't drawn


@c_struct
class HeadsStruct(Structure):
    """Medusa heads."""

    # First residual layers of all heads, concatenated, or NULL.
    first: Annotated[Address, "const Linear *", c_void_p]
    # Further residual layers, depth by depth, one for each head.
    rest: Annotated[Address, "const Linear *", c_void_p]
    projections: Annotated[Address, "const Linear *", c_void_p]  # one per head, or one for all
    embedding: Data  # if the first layers read the root's, too; else NULL. [vocabulary, hidden]
    hidden_size: Int32  # a multiple of PANEL
    num_columns: Int32  # outputs of a projection
    num_heads: Int32
    num_rest: Int32  # depths of `rest`
    shares_projection: Int32
    embedding_is_bf16: Int32  # else float32


@c_struct
class PathHeadStruct(Structure):
    """A Hydra head, which reads the target's state, the root and the drafts of a path."""

    # W of the first residual layer, and R below it; without R the residual is the state.
    first: Annotated[Address, "const Linear *", c_void_p]
    rest: Annotated[Address, "const Linear *", c_void_p]  # further residual layers
    projection: Annotated[Address, "const Linear *", c_void_p]
    embedding: Data  # [vocabulary, hidden]
    hidden_size: Int32  # a multiple of PANEL
    num_tokens: Int32  # of a path, with the root
    num_rest: Int32
    embedding_is_bf16: Int32  # else float32


@c_struct
class PhraseTableStruct(Structure):
    """Frequent continuations of short contexts; see models/datastore/phrases.py."""

    keys: Annotated[Address, "const uint32_t *", c_void_p]  # hashes, ascending. [contexts]
    starts: Int32s  # first continuation of each context, and their number. [contexts + 1]
    tokens: Int32s  # most probable first. [continuations]
    probabilities: Floats  # [continuations]
    buckets: Int32s  # first context whose key starts with i or a higher number. [2^bits + 1]
    shift: Int32  # 32 − bits
    max_context: Int32  # tokens of the longest context; at most MAX_CONTEXT


@c_struct
class NodeStruct(Structure):
    """A node of a growing tree."""

    value: Double  # product of the corrected probabilities of its path
    probability: Double  # as proposed, if the path before is right
    parent: Int32
    depth: Int32
    token: Int32
    sources: Int32  # bit mask of those that proposed it
    rank: Int32  # a NodeRank


@c_struct
class CandidatesStruct(Structure):
    """Tokens that a source proposes after the open paths of a level."""

    tokens: Int32s  # path by path, different ones after each. [size]
    probabilities: Floats  # [size]
    counts: Int32s  # candidates of each path; NULL if all are those of every path. [open]
    # Weight in the mixture of the sources that propose something after a path; 0 for a source whose
    # probability replaces that of the mixture if it is higher.
    weight: Double
    size: Int32
    source: Int32  # its bit


@c_struct
class OfferStruct(Structure):
    """A candidate that is recorded for a trace."""

    parent: Int32  # index of the offer that it follows; −1 for the root
    token: Int32
    probability: Float


@c_struct
class GrowthStruct(Structure):
    """A tree that grows level by level; costs and values are in tokens."""

    row_costs: Floats  # of 1, 2, … rows, ascending from 0; NULL for no costs. [max_nodes]
    # Value that a node must exceed if at least 1, 2, … rows precede it; NULL as above. [max_nodes]
    min_values: Floats
    # Factors of probabilities by the single source that proposed a token (the last for several),
    # rank, depth and range; NULL for 1. [sources + 1, NodeRank, RATIO_DEPTHS, RATIO_RANGES + 1]
    acceptance_ratios: Floats
    # Of each level its acceptance rate, the cost of drafting after the first path, and after
    # another one; NULL for no costs. [MAX_LEVELS, 3]
    draft_costs: Floats
    min_value: Double  # the lowest of `min_values`, or 0
    expected_accepted: Double  # result: summed values of the drafts
    nodes: Annotated[Address, "Node *", c_void_p]  # [max_nodes]
    order: Int32sOut  # slots in use, the highest value first, then free ones. [max_nodes]
    open: Int32sOut  # slots whose children are drafted next, the highest value first. [max_nodes]
    paths: Int32sOut  # their tokens from the root's child on. [open, level], room for MAX_LEVELS
    # Result, in breadth-first order, siblings by value: number of children, sources and token of
    # each node; 0 for the root's. [3, nodes]
    result: Int32sOut
    probabilities: FloatsOut  # result: of each draft. [nodes − 1]
    # The first candidates of at least MIN_OFFER_VALUE; NULL if they aren't recorded. [MAX_OFFERS]
    offers: Annotated[Address, "Offer *", c_void_p]
    offer_of_node: Int32sOut  # −1 for the root, and if it isn't recorded. [max_nodes]
    max_nodes: Int32  # root included; 1 to MAX_TREE_NODES
    num_nodes: Int32
    num_open: Int32
    level: Int32  # tokens of the open paths
    num_offers: Int32
    is_chain: Int32  # no node may have more than one child


# Functions that Python calls, with pointers as addresses; a pool may be NULL.
DECLARATIONS = """\
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
"""
# Calls of microseconds keep the GIL: getting it back may take milliseconds.
SHORT_FUNCTIONS = frozenset(
    (
        *("pass_scratch", "walk_greedy", "probabilities", "read_choices", "keep_rows"),
        *("grow_begin", "grow_level", "grow_end", "find_continuations", "experts_scratch"),
    )
)
_RESULTS = {"void": None, "int32_t": c_int32, "int64_t": c_int64}
_ARGUMENTS = {"int32_t": c_int32, "int64_t": c_int64, "float": c_float}


class Function(NamedTuple):
    """A function that Python calls.

    Attributes:
        name: Its name.
        declaration: Its declaration in C.
        result: Type of its result; None for void.
        arguments: Types of its arguments.
    """

    name: str
    declaration: str
    result: type | None
    arguments: Sequence[type]


def functions() -> Iterator[Function]:
    """Yield the declared functions."""
    for found in re.finditer(r"^(\w+) (\w+)\(([^)]*)\);", DECLARATIONS, re.MULTILINE):
        result, name, listed = found.groups()
        arguments = [
            c_void_p if "*" in argument else _ARGUMENTS[argument.split()[0]]
            for argument in listed.split(",")
        ]
        yield Function(name, " ".join(found[0].split()), _RESULTS[result], arguments)


class Entry(NamedTuple):
    """A line of the table that a library exports; see generate.py.

    Attributes:
        owner: A structure, an enumeration, `constant`, or the declaration of a function.
        name: Field, enumerator or constant; empty for the structure itself.
        c_type: Type of a field, or a constant's value.
        value: Offset of a field, or number of an enumerator.
        size: Bytes.
    """

    owner: str
    name: str = ""
    c_type: str = ""
    value: int = 0
    size: int = 0


def entries() -> Iterator[Entry]:
    """Yield the table of the structures, enumerations and functions as Python has them."""
    for struct in STRUCTS:
        yield Entry(c_name(struct), size=sizeof(struct))
        for name, c_type, _ in fields_of(struct):
            field = getattr(struct, name)
            yield Entry(c_name(struct), name, c_type, field.offset, field.size)
    for enum in ENUMS:
        for member in enum:
            yield Entry(enum.__name__, member.name, value=member)
    for name, value in constants.shared():
        yield Entry("constant", name, repr(value))
    for function in functions():
        yield Entry(function.declaration)
