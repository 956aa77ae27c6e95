"""Block drafters in llama.cpp's GGUF files: DFlash, DSpark with its Markov head, and DFlash2.

`target_layers` are named by their inputs, published files name them by their outputs. `d2t` has
token ids. MASK is the tokenizer's mask token. Windows of all layers are those of `use_swa`; a
causal block is JetSpec's.

Source: llama.cpp, `conversion/qwen.py` and `src/models/dflash.cpp`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from medusa_core.heads.gguf_format import GgufHeadsFormat
from medusa_core.models.checkpoints.gguf_config import block_sizes_of
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.system.files.gguf import Gguf

_BLOCKS = GgufArchitecture(
    tensors={
        "attn_conv_proj": "attention_conv.kernel_projection",
        "ffn_conv_proj": "mlp_conv.kernel_projection",
        "attn_conv_base": "attention_conv.base_kernel",
        "ffn_conv_base": "mlp_conv.base_kernel",
    },
)
_SELECTOR = "candidate_selector"
OUTSIDE = {
    "enc.output_norm.weight": "model.hidden_norm.weight",
    "fc.weight": "model.fc.weight",
    "markov_w1.weight": "model.markov_head.markov_w1.weight",
    "markov_w2.weight": "model.markov_head.markov_w2.weight",
    "conf_proj.weight": "model.confidence_head.proj.weight",
    "conf_proj.bias": "model.confidence_head.proj.bias",
    "selector_predecessor.weight": f"model.{_SELECTOR}.predecessor_codebook",
    "selector_successor.weight": f"model.{_SELECTOR}.successor_codebook",
    "selector_hidden.weight": f"model.{_SELECTOR}.hidden_projection.weight",
}
# GGUF key of each published setting that a file may have.
_NUMBERS = {
    "block_size": "block_size",
    "sample_from_anchor": "sample_from_anchor",
    "conv_kernel_size": "conv_kernel_size",
    "conv_group_size": "conv_group_size",
    "selector_rank": "selector_rank",
    "selector_top_k": "selector_top_k",
    "output_multiplier": "logit_scale",
    "input_embedding_scale": "embedding_scale",
    "final_logit_softcapping": "final_logit_softcapping",
    "attention_value_scale": "attention.value_scale",
    "hidden_act": "hidden_activation",
    "is_causal": "attention.causal",
}
_MARKOV = "markov_w1.weight"
_ROWS_OF_VOCABULARY = (_MARKOV, "token_embd.weight")
_D2T = "d2t"


def has_gemma4_blocks(names: Collection[str]) -> bool:
    """Whether the blocks are Gemma 4's, with a norm after attention."""
    return "blk.0.post_attention_norm.weight" in names


def drafter_settings(gguf: Gguf) -> dict[str, Any]:
    """Return a block drafter's `config.json`, without the settings of its layers."""
    own = {name: gguf.of_model(key) for name, key in _NUMBERS.items()}
    tables = (gguf.tensors[name] for name in _ROWS_OF_VOCABULARY if name in gguf.tensors)
    listed = len(gguf.texts("tokenizer.ggml.tokens"))
    tokens = next((table.shape[0] for table in tables), listed)
    layers = gguf.numbers(f"{gguf.architecture}.target_layers")
    named = {
        "vocab_size": tokens,
        "draft_vocab_size": gguf.tensors[_D2T].shape[0] if _D2T in gguf.tensors else tokens,
        "mask_token_id": gguf.entries.get("tokenizer.ggml.mask_token_id"),
        "target_layer_ids": [layer - 1 for layer in layers if isinstance(layer, int)],
    }
    return own | _sight(gguf) | named


def _settings(gguf: Gguf) -> dict[str, Any]:
    """Return a `config.json` with Qwen3's layers and the drafter's settings."""
    return {"model_type": "qwen3"} | block_sizes_of(gguf, _BLOCKS) | drafter_settings(gguf)


def _sight(gguf: Gguf) -> dict[str, Any]:
    """Return the settings of attention masks: windows, and causal blocks in JetSpec."""
    marks = list(gguf.numbers(f"{gguf.architecture}.attention.sliding_window_pattern"))
    window = gguf.of_model("attention.sliding_window") if marks else None
    found: dict[str, Any] = {}
    own: dict[str, Any] = {}
    if gguf.of_model("attention.causal") is True and _MARKOV not in gguf.tensors:
        own["causal_head"] = True
    if window and all(marks):
        own |= {"use_swa": True, "swa_window_size": window}
    elif window:
        kinds = ["sliding_attention" if mark else "full_attention" for mark in marks]
        found = {"use_sliding_window": True, "layer_types": kinds}
    return found | {"dflash_config": own}


SPEC = GgufHeadsFormat(
    "dflash",
    "dflash",
    _BLOCKS,
    _settings,
    OUTSIDE,
    serves=lambda names: not has_gemma4_blocks(names),
)
