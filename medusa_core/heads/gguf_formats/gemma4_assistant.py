"""Gemma 4 assistants in llama.cpp's GGUF files: blocks as Gemma 4's own.

Clusters aren't stored, so that all tokens are scored. A file counts its blocks as MTP layers.

Source: llama.cpp, `conversion/gemma.py` and `src/models/gemma4-assistant.cpp`.
"""

from __future__ import annotations

from typing import Any

from medusa_core.heads.gguf_format import GgufHeadsFormat
from medusa_core.models.arch.gemma4_text import SPEC as GEMMA4
from medusa_core.models.checkpoints.gguf_config import block_sizes_of
from medusa_core.system.files.gguf import Gguf

_BLOCKS = GEMMA4.gguf
_VECTORS = "token_embd.weight"


def _settings(gguf: Gguf) -> dict[str, Any]:
    """Return the assistant's `config.json`."""
    known = {"model_type": GEMMA4.name} | block_sizes_of(gguf, _BLOCKS)
    own = _BLOCKS.config(gguf, known)
    table = gguf.tensors.get(_VECTORS)
    # Layers of both attention types give the target's number of KV heads.
    text = {**known, **own} | {"attention_k_eq_v": True, "rope_theta": None}
    return {
        "model_type": "gemma4_assistant",
        "backbone_hidden_size": gguf.of_model("embedding_length_out"),
        "use_ordered_embeddings": False,
        "tie_word_embeddings": True,
        "text_config": {name: value for name, value in text.items() if value is not None}
        | {"vocab_size": 0 if table is None else table.shape[0]},
    }


SPEC = GgufHeadsFormat(
    "gemma4-assistant",
    "gemma4-assistant",
    _BLOCKS,
    _settings,
    {
        "nextn.pre_projection.weight": "pre_projection.weight",
        "nextn.post_projection.weight": "post_projection.weight",
    },
    unread=frozenset(
        ("masked_embd_centroids.weight", "masked_embd_ordering", "masked_embd_ordering.weight")
    ),
)
