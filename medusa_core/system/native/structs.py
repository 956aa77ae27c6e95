"""The structures that Python and the compiled step share; they mirror the headers in `src`."""

from __future__ import annotations

from ctypes import (
    POINTER,
    Structure,
    c_double,
    c_float,
    c_int32,
    c_int64,
    c_uint64,
    c_void_p,
)

# Goes up with every change of a structure or a signature, here and in abi.c.
ABI_VERSION = 16


class PoolStruct(Structure):
    """`Pool` of pool.h."""

    _fields_ = (
        ("piece", c_void_p),
        ("job", c_void_p),
        ("claims", c_uint64),
        ("done", c_int32),
        ("closed", c_int32),
        ("busy", c_int32),
    )


class LinearStruct(Structure):
    """`Linear` of linear.h."""

    _fields_ = (
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("scale", c_void_p),
        ("outputs", c_int32),
        ("inputs", c_int32),
        ("kind", c_int32),
        ("reserved", c_int32),
        ("more", c_void_p),
        ("adapter", c_void_p),
    )


class UpStruct(Structure):
    """`Up` of adapter.h."""

    _fields_ = (
        ("weight", c_void_p),
        ("first", c_int32),
        ("outputs", c_int32),
        ("start", c_int32),
        ("rank", c_int32),
    )


class AdapterStruct(Structure):
    """`Adapter` of adapter.h."""

    _fields_ = (
        ("down", c_void_p),
        ("ups", c_void_p),
        ("num_ups", c_int32),
        ("inputs", c_int32),
        ("inner", c_int32),
        ("is_half", c_int32),
    )


class PositionsStruct(Structure):
    """`Positions` of decoder.h."""

    _fields_ = (
        ("turns", c_void_p),
        ("growth", c_void_p),
    )


class NormsStruct(Structure):
    """`Norms` of decoder.h."""

    _fields_ = (
        ("before", c_void_p),
        ("behind", c_void_p),
    )


class PartNormStruct(Structure):
    """`PartNorm` of decoder.h."""

    _fields_ = (
        ("weight", c_void_p),
        ("together", c_int32),
        ("is_behind", c_int32),
    )


class AttentionStruct(Structure):
    """`Attention` of attention.h."""

    _fields_ = (
        ("heads", c_int32),
        ("window", c_int32),
        ("cap", c_float),
        ("sinks", c_void_p),
    )


class MlpShapeStruct(Structure):
    """`MlpShape` of experts.h."""

    _fields_ = (
        ("inner", c_int32),
        ("up_at", c_int32),
    )


class ExpertsStruct(Structure):
    """`Experts` of experts.h."""

    _fields_ = (
        ("router", LinearStruct),
        ("shared_gate_up", LinearStruct),
        ("shared_down", LinearStruct),
        ("shared_gate", LinearStruct),
        ("gate_ups", c_void_p),
        ("downs", c_void_p),
        ("bias", c_void_p),
        ("scales", c_void_p),
        ("shape", MlpShapeStruct),
        ("shared", MlpShapeStruct),
        ("count", c_int32),
        ("chosen", c_int32),
        ("routing", c_int32),
        ("normalises", c_int32),
        ("packed_width", c_int32),
        ("sum_eps", c_float),
        ("scale", c_float),
    )


class ExpertsBesideStruct(Structure):
    """`ExpertsBeside` of decoder.h."""

    _fields_ = (
        ("experts", c_void_p),
        ("pre_norm", c_void_p),
        ("router_norm", c_void_p),
        ("post_norm", c_void_p),
        ("post_mlp_norm", c_void_p),
    )


class GateStruct(Structure):
    """`Gate` of gate.h."""

    _fields_ = (
        ("kind", c_int32),
        ("bound", c_float),
        ("scale", c_float),
    )


class StateShapeStruct(Structure):
    """`StateShape` of recurrence.h."""

    _fields_ = (
        ("heads", c_int32),
        ("key_dim", c_int32),
        ("value_dim", c_int32),
        ("key_heads", c_int32),
        ("channels", c_int32),
        ("conv_width", c_int32),
    )


class StatesStruct(Structure):
    """`States` of recurrence.h."""

    _fields_ = (
        ("state", c_void_p),
        ("tail", c_void_p),
        ("keys", c_void_p),
        ("updates", c_void_p),
        ("decays", c_void_p),
        ("inputs", c_void_p),
        ("shape", StateShapeStruct),
        ("layers", c_int32),
        ("step_rows", c_int32),
    )


class ConvolutionStruct(Structure):
    """`Convolution` of convolution.h."""

    _fields_ = (
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("channels", c_int32),
        ("width", c_int32),
    )


class RecurrenceStruct(Structure):
    """`Recurrence` of recurrence.h."""

    _fields_ = (
        ("conv", ConvolutionStruct),
        ("rate", c_void_p),
        ("bias", c_void_p),
        ("skip", c_void_p),
        ("norm", c_void_p),
        ("factors", c_void_p),
        ("shape", StateShapeStruct),
        ("place", c_int32),
        ("tiles", c_int32),
        ("together", c_int32),
        ("gates_first", c_int32),
        ("is_delta", c_int32),
        ("width", c_int32),
        ("inputs_at", c_int32),
        ("gate_at", c_int32),
        ("queries_at", c_int32),
        ("keys_at", c_int32),
        ("values_at", c_int32),
        ("steps_apart", c_int32),
        ("steps_width", c_int32),
        ("steps_at", c_int32),
        ("least_step", c_float),
        ("most_step", c_float),
        ("eps", c_float),
    )


class BlockStruct(Structure):
    """`Block` of decoder.h."""

    _fields_ = (
        ("qkv", LinearStruct),
        ("output", LinearStruct),
        ("gate_up", LinearStruct),
        ("down", LinearStruct),
        ("gates", LinearStruct),
        ("token_gate", LinearStruct),
        ("token_projection", LinearStruct),
        ("attention_norms", NormsStruct),
        ("mlp_norms", NormsStruct),
        ("q_norm", PartNormStruct),
        ("k_norm", PartNormStruct),
        ("v_norm", PartNormStruct),
        ("positions", c_void_p),
        ("token_norm", c_void_p),
        ("experts", c_void_p),
        ("experts_beside", c_void_p),
        ("attention", AttentionStruct),
        ("convolution", ConvolutionStruct),
        ("query_scale", c_float),
        ("scale", c_float),
        ("mixer_scale", c_float),
        ("mlp_scale", c_float),
        ("kv_heads", c_int32),
        ("head_dim", c_int32),
        ("inner", c_int32),
        ("factor_at", c_int32),
        ("width", c_int32),
        ("keys_are_values", c_int32),
        ("gates_at", c_int32),
        ("mixed", c_int32),
        ("token_at", c_int32),
        ("token_width", c_int32),
        ("recurrence", POINTER(RecurrenceStruct)),
        ("beside", c_void_p),
    )


class DecoderStruct(Structure):
    """`Decoder` of decoder.h."""

    _fields_ = (
        ("blocks", POINTER(BlockStruct)),
        ("final_norm", c_void_p),
        ("embedding", c_void_p),
        ("token_projection", c_void_p),
        ("token_norm", c_void_p),
        ("embedding_is_half", c_int32),
        ("layers", c_int32),
        ("hidden", c_int32),
        ("gate", GateStruct),
        ("embedding_scale", c_float),
        ("residual_scale", c_float),
        ("eps", c_float),
        ("token_width", c_int32),
    )


class LayerRowsStruct(Structure):
    """`LayerRows` of cache.h."""

    _fields_ = (
        ("words", c_void_p),
        ("tail", c_void_p),
        ("inputs", c_void_p),
        ("kv_heads", c_int32),
        ("head_dim", c_int32),
        ("is_shared", c_int32),
        ("reserved", c_int32),
    )


class CacheStruct(Structure):
    """`Cache` of cache.h.

    Attributes:
        held: What `prefix` points at, where nothing else keeps it.
    """

    held: CacheStruct

    _fields_ = (
        ("layers", c_void_p),
        ("capacity", c_int64),
        ("num_layers", c_int32),
        ("is_half", c_int32),
        ("prefix", c_void_p),
        ("num_shared", c_int64),
    )


class SequenceStruct(Structure):
    """`Sequence` of decoder.h, its `Rows` of attention.h first."""

    _fields_ = (
        ("rows", c_int32),
        ("length", c_int32),
        ("parents", c_void_p),
        ("depths", c_void_p),
        ("cache", c_void_p),
        ("states", c_void_p),
        ("pending", c_int32),
        ("is_decided", c_int32),
    )


class PassStruct(Structure):
    """`Pass` of decoder.h."""

    _fields_ = (
        ("sequences", c_void_p),
        ("token_ids", c_void_p),
        ("per_layer", c_void_p),
        ("taps", c_void_p),
        ("scratch", c_void_p),
        ("hidden", c_void_p),
        ("num_sequences", c_int32),
        ("rows", c_int32),
        ("first_wanted", c_int32),
        ("workers", c_int32),
        ("num_taps", c_int32),
        ("per_layer_width", c_int32),
    )


class HeadsStruct(Structure):
    """ctypes mirror of the C struct `Heads` in heads.h."""

    _fields_ = (
        ("first", POINTER(LinearStruct)),
        ("rest", POINTER(LinearStruct)),
        ("projections", POINTER(LinearStruct)),
        ("embedding", c_void_p),
        ("hidden", c_int32),
        ("columns", c_int32),
        ("num_heads", c_int32),
        ("num_rest", c_int32),
        ("is_shared", c_int32),
        ("embedding_is_half", c_int32),
    )


class PhrasesStruct(Structure):
    """`Phrases` of phrases.h."""

    _fields_ = (
        ("keys", c_void_p),
        ("starts", c_void_p),
        ("tokens", c_void_p),
        ("chances", c_void_p),
        ("buckets", c_void_p),
        ("shift", c_int32),
        ("longest", c_int32),
    )


class NodeStruct(Structure):
    """`Node` of growth.h."""

    _fields_ = (
        ("worth", c_double),
        ("chance", c_double),
        ("parent", c_int32),
        ("depth", c_int32),
        ("token", c_int32),
        ("marks", c_int32),
        ("kind", c_int32),
        ("unused", c_int32),
    )


class CandidatesStruct(Structure):
    """`Candidates` of growth.h."""

    _fields_ = (
        ("tokens", c_void_p),
        ("chances", c_void_p),
        ("counts", c_void_p),
        ("weight", c_double),
        ("size", c_int32),
        ("mark", c_int32),
    )


class GrowthStruct(Structure):
    """`Growth` of growth.h."""

    _fields_ = (
        ("prices", c_void_p),
        ("floors", c_void_p),
        ("trust", c_void_p),
        ("asking", c_void_p),
        ("least", c_double),
        ("promised", c_double),
        ("nodes", c_void_p),
        ("order", c_void_p),
        ("open", c_void_p),
        ("paths", c_void_p),
        ("finished", c_void_p),
        ("chances", c_void_p),
        ("offers", c_void_p),
        ("offered", c_void_p),
        ("rows", c_int32),
        ("count", c_int32),
        ("num_open", c_int32),
        ("level", c_int32),
        ("num_offers", c_int32),
        ("chain", c_int32),
    )


# What abi.c describes.
STRUCTS: tuple[type[Structure], ...] = (
    PoolStruct,
    LinearStruct,
    UpStruct,
    AdapterStruct,
    PositionsStruct,
    NormsStruct,
    PartNormStruct,
    AttentionStruct,
    MlpShapeStruct,
    ExpertsStruct,
    ExpertsBesideStruct,
    GateStruct,
    StateShapeStruct,
    StatesStruct,
    ConvolutionStruct,
    RecurrenceStruct,
    BlockStruct,
    DecoderStruct,
    LayerRowsStruct,
    CacheStruct,
    SequenceStruct,
    PassStruct,
    HeadsStruct,
    PhrasesStruct,
    NodeStruct,
    CandidatesStruct,
    GrowthStruct,
)
