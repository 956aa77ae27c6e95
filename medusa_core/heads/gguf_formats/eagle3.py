"""EAGLE-3 heads in llama.cpp's GGUF files.

Rows of queries and keys are interleaved, as a Llama's are. `d2t` has token ids instead of offsets
to columns. `target_layers` are named by their inputs.

Source: llama.cpp, `conversion/llama.py` and `src/models/eagle3.cpp`.
"""

from __future__ import annotations

from typing import Any

from medusa_core.heads.gguf_format import GgufHeadsFormat
from medusa_core.models.checkpoints.gguf_config import block_sizes_of
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.system.files.gguf import Gguf

_BLOCKS = GgufArchitecture(tensors={"attn_norm_2": "hidden_norm"}, interleaved_rope=True)
_D2T = "d2t"


def _settings(gguf: Gguf) -> dict[str, Any]:
    """Return the head's `config.json`."""
    tokens = gguf.of_model("vocab_size") or len(gguf.texts("tokenizer.ggml.tokens"))
    columns = gguf.tensors[_D2T].shape[0] if _D2T in gguf.tensors else tokens
    taps = list(gguf.numbers(f"{gguf.architecture}.target_layers"))
    return block_sizes_of(gguf, _BLOCKS) | {
        "model_type": "llama",
        "vocab_size": tokens,
        "draft_vocab_size": columns,
        "target_hidden_size": gguf.of_model("target_hidden_size"),
        "eagle_aux_hidden_state_layer_ids": taps or None,
        "norm_before_residual": gguf.of_model("norm_before_residual") is True,
    }


SPEC = GgufHeadsFormat(
    "eagle3", "eagle3", _BLOCKS, _settings, {"enc.output_norm.weight": "input_norm.weight"}
)
