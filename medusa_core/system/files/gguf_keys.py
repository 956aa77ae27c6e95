"""Types of the metadata values that are read from GGUF files; other types are refused.

Source: the keys of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping

from medusa_core.system.files.gguf_header import Value


def _is_text(value: Value) -> bool:
    """Whether a value is a string."""
    return isinstance(value, str)


def _is_flag(value: Value) -> bool:
    """Whether a value is a boolean."""
    return isinstance(value, bool)


def _is_whole(value: Value) -> bool:
    """Whether a value is an integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def _are_whole(value: Value) -> bool:
    """Whether a value is an array of integers."""
    return isinstance(value, array) and value.typecode not in "fd"


def _is_number(value: Value) -> bool:
    """Whether a value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_or_are_whole(value: Value) -> bool:
    """Whether a value is an integer or an array of integers."""
    return _is_whole(value) or _are_whole(value)


def _are_texts(value: Value) -> bool:
    """Whether a value is an array of strings."""
    return isinstance(value, list)


def _are_numbers(value: Value) -> bool:
    """Whether a value is an array of numbers."""
    return isinstance(value, array)


_Kind = tuple[str, Callable[[Value], bool]]
_TEXT: _Kind = ("a text", _is_text)
_FLAG: _Kind = ("true or false", _is_flag)
_WHOLE: _Kind = ("a whole number", _is_whole)
_NUMBER: _Kind = ("a number", _is_number)
_OF_LAYERS: _Kind = ("whole numbers", _is_or_are_whole)
_OF_TOKENS: _Kind = ("a list of whole numbers", _are_whole)
_TEXTS: _Kind = ("a list of texts", _are_texts)
_NUMBERS: _Kind = ("a list of numbers", _are_numbers)

_KINDS: dict[str, _Kind] = {
    "tokenizer.chat_template": _TEXT,
    "tokenizer.ggml.model": _TEXT,
    "tokenizer.ggml.pre": _TEXT,
    "tokenizer.ggml.tokens": _TEXTS,
    "tokenizer.ggml.merges": _TEXTS,
    "tokenizer.ggml.token_type": _OF_TOKENS,
    "tokenizer.ggml.scores": _NUMBERS,
    **dict.fromkeys(
        (
            f"tokenizer.ggml.{name}_token_id"
            for name in ("bos", "eos", "eot", "eom", "unknown", "padding", "mask")
        ),
        _WHOLE,
    ),
    "tokenizer.ggml.add_bos_token": _FLAG,
    "tokenizer.ggml.add_space_prefix": _FLAG,
}
# After the name of the architecture and a dot.
_OF_MODEL: dict[str, _Kind] = {
    **dict.fromkeys(
        (
            *("embedding_length", "block_count", "context_length"),
            *("attention.key_length", "attention.sliding_window"),
            *("rope.dimension_count", "rope.scaling.original_context_length"),
            *("expert_count", "expert_used_count", "expert_feed_forward_length"),
            *("attention.key_length_swa", "attention.shared_kv_layers"),
            *("embedding_length_per_layer_input", "rope.dimension_count_swa"),
            *("embedding_length_out", "target_hidden_size", "block_size"),
            *("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k"),
        ),
        _WHOLE,
    ),
    **dict.fromkeys(
        ("feed_forward_length", "attention.head_count", "attention.head_count_kv"), _OF_LAYERS
    ),
    **dict.fromkeys(
        (
            *("attention.layer_norm_rms_epsilon", "attention.scale", "attention.temperature_scale"),
            *("rope.freq_base", "rope.freq_base_swa", "rope.scaling.factor", "rope.scale_linear"),
            *("rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow"),
            *("rope.scaling.yarn_attn_factor", "rope.scaling.yarn_log_multiplier"),
            *("attn_logit_softcapping", "final_logit_softcapping"),
            *("embedding_scale", "residual_scale", "logit_scale", "attention.value_scale"),
        ),
        _NUMBER,
    ),
    "rope.scaling.type": _TEXT,
    "rope.scaling.finetuned": _FLAG,
    **dict.fromkeys(
        (
            *("attention.causal", "sample_from_anchor"),
            *("norm_before_residual", "norm_before_fc"),
        ),
        _FLAG,
    ),
    "target_layers": _OF_TOKENS,
    "hidden_activation": _TEXT,
}


def wrong_kind(entries: Mapping[str, Value]) -> str:
    """Describe the first known key with a value of a wrong type; empty if there is none.

    Args:
        entries: A file's metadata. Integers are accepted as floats.
    """
    architecture = entries.get("general.architecture")
    for key, value in entries.items():
        kind = _KINDS.get(key)
        if kind is None and isinstance(architecture, str):
            kind = _OF_MODEL.get(key.removeprefix(f"{architecture}."))
        if kind is not None and not kind[1](value):
            return f"its {key} isn't {kind[0]}"
    return ""
