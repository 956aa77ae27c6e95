"""Convert the metadata of a GGUF file to the content of a `config.json`."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from medusa_core.errors import CheckpointError, ModelError
from medusa_core.i18n import tr
from medusa_core.models.architecture import Arch, gguf_archs
from medusa_core.models.blocks.spec import EACH_EXPERT
from medusa_core.models.checkpoints.gguf_naming import file_type
from medusa_core.models.checkpoints.gguf_unread import unread_key
from medusa_core.models.gguf_architecture import (
    MAX_LAYERS,
    GgufArchitecture,
    hidden_per_head,
    num_layers,
    round_float32,
)
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.system.files.gguf import (
    Gguf,
)

TITLE = "general.name"  # the model's name; not a key of config.json
_SIZES = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
    "sliding_window": "attention.sliding_window",
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), "expert_count"),
    "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": "expert_feed_forward_length",
}
_KEYS = {
    **_SIZES,
    "original_max_position_embeddings": "rope.scaling.original_context_length",
    "head_dim": "attention.key_length",
    "rope_scaling": "rope.scaling",
}
_FLAGS = {"attention_bias": "attn_q.bias", "mlp_bias": "ffn_up.bias"}
_SAMPLING = {
    "temperature": "temp",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repetition_penalty": "penalty_repeat",
}
_YARN = {
    "beta_fast": "rope.scaling.yarn_beta_fast",
    "beta_slow": "rope.scaling.yarn_beta_slow",
    "attention_factor": "rope.scaling.yarn_attn_factor",
}
_ENDS = ("eos", "eot", "eom")
# Files often name only one EOS token of a model that has several.
_END_TEXTS = frozenset(
    {
        *("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>"),
        *("<turn|>", "<|tool_response>"),  # Gemma 4 stops after a tool call
        *("<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>", "[EOT]"),
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
        *("<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"),  # ends of fill-in-the-middle
    }
)
_MESSAGE_END, _ANSWER_ENDS = "<|end|>", ("<|return|>", "<|call|>")
_BASE_MODEL = "general.base_model.0"
_FACTORS = "rope_freqs.weight"
_SPECIAL = ("bos", *_ENDS)
_NO_TOKEN = (1 << 32) - 1  # written by some converters for "none"


_INSTEAD = {
    "gemma3n": (tr("its blocks keep several residual streams"), tr("Choose Gemma 4 instead.")),
    "qwen3next": (tr("only its safetensors files are read"), tr("Choose Qwen3.5 instead.")),
}


def find_gguf_arch(gguf: Gguf) -> Arch:
    """Look up the architecture that `general.architecture` names.

    Raises:
        ModelError: Its architecture isn't supported.
    """
    found = gguf_archs().get(gguf.architecture)
    if found is None:
        supported = tr("Supported are {0}.", ", ".join(sorted(gguf_archs())))
        unknown = (tr("it isn't known here"), supported)
        reason, instead = _INSTEAD.get(gguf.architecture, unknown)
        raise ModelError(
            tr(
                "GGUF models of architecture {0} aren't supported: {1}.",
                repr(gguf.architecture[:40]),
                reason,
            ),
            instead,
        )
    if not found.gguf.has_experts and gguf.of_model("expert_count"):
        raise ModelError(
            tr("This model of architecture {0} has experts.", repr(gguf.architecture)),
            "Choose a dense model, such as Qwen3 or Llama.",
        )
    return found


def config_of(gguf: Gguf) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Convert a file's metadata to the arguments of `parse_config`.

    Returns:
        Content of `config.json` and `generation_config.json`, and the types of quantized matrices.

    Raises:
        CheckpointError: The file is damaged.
        ModelError: Its architecture isn't supported.
    """
    family = find_gguf_arch(gguf)
    architecture = family.gguf
    raw = {"model_type": family.name} | block_sizes_of(gguf, architecture)
    if gguf.of_model("nextn_predict_layers"):
        raw["num_hidden_layers"] = num_layers(gguf)
    raw[TITLE] = gguf.text(TITLE)
    raw["vocab_size"] = _vocab_size(gguf)
    raw["tie_word_embeddings"] = "output.weight" not in gguf.tensors and not _lacks_files(gguf)
    raw["file_type"] = file_type(gguf)
    tensors = {".".join(name.split(".")[2:]) for name in gguf.tensors if name.startswith("blk.")}
    raw |= {name: tensor in tensors for name, tensor in {**_FLAGS, **architecture.flags}.items()}
    if architecture.partial_rotary:
        raw["partial_rotary_factor"] = _partial_rotary_factor(gguf, raw)
    if architecture.windowed_type and raw["sliding_window"]:
        raw["model_type"] = architecture.windowed_type
    raw |= architecture.config(gguf, _without_none(raw))
    _check_features(gguf, architecture, raw)
    _check_tokens(gguf, raw["vocab_size"])
    return _without_none(raw), _generation(gguf), _stored_types(gguf, architecture)


def block_sizes_of(gguf: Gguf, architecture: GgufArchitecture) -> dict[str, Any]:
    """Return the sizes of a file's blocks and their RoPE by the names of a `config.json`.

    Raises:
        CheckpointError: A tensor of factors is damaged.
        ModelError: The layers differ in their sizes.
    """
    raw = dict(architecture.defaults)
    for name, key in (_SIZES | dict(architecture.keys)).items():
        value = gguf.of_model(key)
        if value is not None and not (
            key in architecture.per_layer_keys and _varies_by_layer(value)
        ):
            raw[name] = _plain(value)
    raw["head_dim"] = gguf.of_model("attention.key_length") or hidden_per_head(raw)
    raw["rope_scaling"] = _scaling(gguf)
    raw["sliding_window"] = raw.get("sliding_window") or None
    if architecture.full_attention_every:
        raw["layer_types"] = _layer_types(gguf, raw, architecture.full_attention_every)
    return raw


def _layer_types(gguf: Gguf, raw: Mapping[str, Any], every: int) -> list[str] | None:
    """Return `layer_types` as the file says, else with full attention in each `every`-th layer."""
    count = raw.get("num_hidden_layers")
    if not isinstance(count, int) or not 0 < count <= MAX_LAYERS:
        return None
    pattern = gguf.of_model("attention.sliding_window_pattern")
    if isinstance(pattern, int) and 0 < pattern <= MAX_LAYERS:
        every = pattern
    marks = list(gguf.numbers(f"{gguf.architecture}.attention.sliding_window_pattern"))
    if len(marks) != count:
        marks = [(index + 1) % every != 0 for index in range(count)]
    return ["sliding_attention" if mark else "full_attention" for mark in marks]


def _partial_rotary_factor(gguf: Gguf, raw: Mapping[str, Any]) -> float:
    """Return the rotated share of a head's dimensions; 1 if sizes are missing."""
    rotated, size = gguf.of_model("rope.dimension_count"), raw.get("head_dim")
    if not isinstance(rotated, int) or not isinstance(size, int) or not 0 < rotated < size:
        return 1.0
    return rotated / size


@contextmanager
def gguf_errors(gguf: Gguf) -> Iterator[None]:
    """Convert errors about a `config.json` to errors about the keys of a GGUF file.

    Raises:
        ModelError: The converted error.
    """
    try:
        yield
    except ModelError as error:
        if "config.json" not in error.message + error.hint:
            raise
        message = error.message.removeprefix("config.json: ")
        family = gguf_archs().get(gguf.architecture)
        own = {} if family is None else family.gguf.keys
        for name, key in {**_KEYS, **own}.items():
            message = re.sub(rf"\b{name}\b", f"{gguf.architecture}.{key}", message)
        raise ModelError(
            tr("{0}: {1}", gguf.path.name, message),
            "Download the GGUF file again, or choose another one of this model.",
        ) from error


def base_model_of(gguf: Gguf) -> str | None:
    """Return the repository or name of the base model; None if the file has none."""
    address = gguf.text(f"{_BASE_MODEL}.repo_url").rstrip("/")
    owner, _, name = address.rpartition("/")
    named = gguf.text(f"{_BASE_MODEL}.name")
    return f"{owner.rpartition('/')[2]}/{name}" if owner and name else named or None


def _check_features(gguf: Gguf, architecture: GgufArchitecture, raw: Mapping[str, Any]) -> None:
    """Refuse unsupported features that change the output."""
    rotated, size = gguf.of_model("rope.dimension_count"), raw["head_dim"]
    is_partial = isinstance(rotated, int) and isinstance(size, int) and rotated < size
    if is_partial and "partial_rotary_factor" not in raw:
        raise ModelError(
            tr(
                "This model has a partial RoPE of {0} of {1} dimensions per head, which isn't "
                "supported for architecture {2}.",
                rotated,
                size,
                repr(gguf.architecture),
            ),
            "Choose another model, such as a Llama or Qwen3.",
        )
    if gguf.of_model("attention.causal") is False:
        raise ModelError(
            "This model attends in both directions: it can't generate text.",
            "Choose a model that writes text, such as a Llama or Qwen3.",
        )
    head_dim = gguf.of_model("attention.key_length") or hidden_per_head(raw)
    if key := unread_key(gguf, architecture, head_dim):
        raise ModelError(
            tr("This model has {0}.{1}, which isn't supported.", gguf.architecture, key),
            "Choose another model, such as a Llama or Qwen3.",
        )


def _check_tokens(gguf: Gguf, vocab_size: int) -> None:
    """Check BOS and EOS ids: with an invalid EOS answers would never end.

    Raises:
        CheckpointError: An id is outside of the vocabulary.
    """
    for name in _SPECIAL:
        token_id = gguf.entries.get(f"tokenizer.ggml.{name}_token_id")
        if isinstance(token_id, int) and token_id != _NO_TOKEN and token_id >= vocab_size:
            raise CheckpointError(
                tr(
                    "{0} names token {1} as {2}, but has {3}.",
                    gguf.path.name,
                    token_id,
                    name.upper(),
                    vocab_size,
                ),
                "Download it again, or choose another file of this model.",
            )


def _vocab_size(gguf: Gguf) -> int:
    """Return the rows of the embedding; of a lone first shard, the tokenizer's number of tokens."""
    table = gguf.tensors.get("token_embd.weight")
    if table is not None:
        return table.shape[0]
    tokens = gguf.texts("tokenizer.ggml.tokens")
    if not tokens or not _lacks_files(gguf):
        raise CheckpointError(
            tr("{0} has no token embedding.", gguf.path.name), "Download it again."
        )
    return len(tokens)


def _lacks_files(gguf: Gguf) -> bool:
    """Whether it is the first shard of a model whose other shards are missing."""
    count = gguf.entries.get("split.count")
    return gguf.started_bytes is not None and isinstance(count, int) and count > 1


def _without_none(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Drop keys whose value is None, as an absent key of a `config.json` means."""
    return {name: value for name, value in raw.items() if value is not None}


def _generation(gguf: Gguf) -> dict[str, Any]:
    """Return the content of `generation_config.json`: EOS ids and sampling settings."""
    found: dict[str, Any] = {"eos_token_id": _ends(gguf)}
    for name, key in _SAMPLING.items():
        value = gguf.entries.get(f"general.sampling.{key}")
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = _plain(value)
            found["do_sample"] = True
    return found


def _stored_types(gguf: Gguf, architecture: GgufArchitecture) -> dict[str, str]:
    """Return the block types of matrices by Hugging Face's names; experts have one entry."""
    return {
        half: tensor.kind
        for name, tensor in gguf.tensors.items()
        if tensor.kind in BLOCK_SIZES
        for half in halves_of_experts(architecture.hugging_face_name(name))
    }


def halves_of_experts(name: str) -> tuple[str, ...]:
    """Return the names of gate and up if a tensor holds both, else its name alone."""
    both = ".gate_up_proj."
    if EACH_EXPERT not in name or both not in name:
        return (name,)
    return name.replace(both, ".gate_proj."), name.replace(both, ".up_proj.")


def _varies_by_layer(value: object) -> bool:
    """Whether a GGUF value is an array of different numbers, such as one per layer."""
    return isinstance(value, array) and len(set(value)) > 1


def _plain(value: object) -> object:
    """Convert a GGUF value to JSON: round float32, reduce a list of equal numbers to one number."""
    if isinstance(value, float):
        return round_float32(value)
    if isinstance(value, str | int):
        return value
    # 0 stands for layers without the feature.
    numbers = set(value) - {0} if hasattr(value, "__iter__") else set()
    if len(numbers) != 1:
        raise ModelError(
            "The layers of this model differ in their sizes.", "Choose one whose layers are alike."
        )
    return _plain(numbers.pop())


def _ends(gguf: Gguf) -> list[int]:
    """Return the EOS token ids: those of the file, and tokens that are known to end answers."""
    named = (gguf.entries.get(f"tokenizer.ggml.{name}_token_id") for name in _ENDS)
    ids = {token for token in named if type(token) is int} - {_NO_TOKEN}
    texts = gguf.texts("tokenizer.ggml.tokens")
    known = {text: number for number, text in enumerate(texts) if text in _END_TEXTS}
    if all(text in known for text in _ANSWER_ENDS):
        known.pop(_MESSAGE_END, None)  # GPT-OSS: ends one of several messages of an answer
    return sorted(ids | set(known.values()))


def _scaling(gguf: Gguf) -> dict[str, Any] | None:
    """Return `rope_scaling` from the tensor of RoPE factors or from the metadata; None without."""
    if gguf.has_vector(_FACTORS):
        return {"rope_type": "factors", "factors": list(gguf.vector(_FACTORS))}
    kind = gguf.of_model("rope.scaling.type")
    factor = gguf.of_model("rope.scaling.factor") or gguf.of_model("rope.scale_linear")
    if kind == "none" or not isinstance(factor, int | float):
        return None
    scaling = {"rope_type": kind or "linear", "factor": _plain(factor)}
    old = gguf.of_model("rope.scaling.original_context_length")
    more = {"original_max_position_embeddings": old}
    if kind == "yarn":
        more |= {name: gguf.of_model(key) for name, key in _YARN.items()}
    return scaling | {name: _plain(value) for name, value in more.items() if value is not None}
