"""What a GGUF file says of a model's sizes, as a `config.json` would."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medusa_core.errors import CheckpointError, ModelError
from medusa_core.files.gguf import Gguf, read_beginning, read_gguf
from medusa_core.models.gguf_names import ARCHITECTURES, Architecture, hugging_face_name
from medusa_core.quant.block_sizes import BLOCK_SIZES

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
}
# Gemma, Granite: numbers that a config.json has, too.
_MORE = {
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "attention_multiplier": "attention.scale",
    "embedding_multiplier": "embedding_scale",
    "residual_multiplier": "residual_scale",
    "logits_scaling": "logit_scale",
}
_ENDS = ("eos", "eot", "eom")
_FACTORS = "rope_freqs.weight"
_MOST_FACTORS = 1 << 12


def find_architecture(gguf: Gguf) -> Architecture:
    """The architecture of a file.

    Raises:
        ModelError: It isn't supported.
    """
    found = ARCHITECTURES.get(gguf.architecture)
    if found is None:
        raise ModelError(
            f"GGUF models of architecture {gguf.architecture[:40]!r} aren't supported.",
            f"Supported are {', '.join(sorted(ARCHITECTURES))}.",
        )
    return found


def read_gguf_config(
    path: Path, most_bytes: int | None = None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """What `parse_config` takes, from a GGUF file: sizes, ends of answers, types of matrices.

    Args:
        path: The file.
        most_bytes: How many bytes of one file are there to be read; None for all of them, and for
            all files of the model.

    Raises:
        CheckpointError: The file is damaged.
        ModelError: Its architecture isn't supported.
    """
    gguf = read_gguf(path) if most_bytes is None else read_beginning(path, most_bytes)
    of = find_architecture(gguf)
    raw: dict[str, Any] = {"model_type": of.model_type}
    for name, key in (_SIZES | _MORE).items():
        if (value := gguf.of_model(key)) is not None:
            raw[name] = _plain(value)
    table = gguf.tensors.get("token_embd.weight")
    if table is None:
        raise CheckpointError(f"{path.name} holds no token vectors.", "Download it again.")
    raw["vocab_size"] = table.shape[0]
    raw["tie_word_embeddings"] = "output.weight" not in gguf.tensors
    raw["head_dim"] = gguf.of_model("attention.key_length") or gguf.of_model("rope.dimension_count")
    raw["attention_bias"] = "blk.0.attn_q.bias" in gguf.tensors
    raw["rope_scaling"] = _scaling(gguf)
    sizes = {name: value for name, value in raw.items() if value is not None}
    return sizes, {"eos_token_id": _ends(gguf)}, _stored_types(gguf, of)


def _stored_types(gguf: Gguf, of: Architecture) -> dict[str, str]:
    """The type of every matrix in blocks, by Hugging Face's name of it."""
    return {
        hugging_face_name(name, of): tensor.kind
        for name, tensor in gguf.tensors.items()
        if tensor.kind in BLOCK_SIZES
    }


def usual_type(stored_types: Mapping[str, str]) -> str:
    """The type that most matrices have; empty for plain numbers."""
    counted = Counter(kind for name, kind in stored_types.items() if ".layers." in name)
    return counted.most_common(1)[0][0] if counted else ""


def _plain(value: object) -> object:
    """A number without the digits that float32 doesn't have; of equal ones in a list the one."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, str | int):
        return value
    numbers = set(value) if hasattr(value, "__iter__") else set()
    if len(numbers) != 1:
        raise ModelError(
            "The layers of this model differ in their sizes.", "Choose one whose layers are alike."
        )
    return _plain(numbers.pop())


def _ends(gguf: Gguf) -> list[int]:
    ids = (gguf.entries.get(f"tokenizer.ggml.{name}_token_id") for name in _ENDS)
    return sorted({one for one in ids if isinstance(one, int) and not isinstance(one, bool)})


def _scaling(gguf: Gguf) -> dict[str, Any] | None:
    """How positions are stretched: by a tensor of factors, or as its keys say."""
    if _FACTORS in gguf.tensors:
        return {"rope_type": "factors", "factors": _factors(gguf)}
    kind = gguf.of_model("rope.scaling.type")
    factor = gguf.of_model("rope.scaling.factor")
    if kind in (None, "none") or not isinstance(factor, float):
        return None
    old = gguf.of_model("rope.scaling.original_context_length")
    scaling = {"rope_type": kind, "factor": _plain(factor)}
    return scaling if old is None else scaling | {"original_max_position_embeddings": old}


def _factors(gguf: Gguf) -> list[float]:
    tensor = gguf.tensors[_FACTORS]
    count = tensor.nbytes // 4
    if tensor.kind != "f32" or not 0 < count <= _MOST_FACTORS:
        raise CheckpointError(f"{_FACTORS} isn't what it should be.", "Download the file again.")
    with tensor.path.open("rb") as file:
        file.seek(tensor.start)
        return list(struct.unpack(f"<{count}f", file.read(4 * count)))
