"""Random tiny targets on disk in the layout of Hugging Face, with heads of either format.

Torch is imported where weights are made: rooms that need the sizes alone collect without it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from medusa_core.models.text import template

if TYPE_CHECKING:
    from torch import Tensor

    from medusa_core.heads.weights import HeadSet

SPECIALS = ("<|bos|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>")
EOS_ID = 1
VOCAB_SIZE = 320
TEMPLATE = (
    "<|bos|>{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}"
    "{% if m['role'] == 'assistant' %}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
# Ranks that the table beside the heads claims to be right; they only shape the trees.
ACCURACIES = [[0.4, 0.2, 0.1, 0.05], [0.3, 0.2, 0.1, 0.05], [0.3, 0.1, 0.1, 0.05]]


@contextmanager
def trusted_template() -> Iterator[None]:
    """Render this template as those that ship: a process for each load takes 60 ms."""
    ships = template.is_shipped
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(template, "is_shipped", lambda text: text == TEMPLATE or ships(text))
        yield


@dataclass(frozen=True, slots=True)
class TinySpec:
    """Sizes and family of a random target."""

    model_type: str = "llama"
    num_layers: int = 2
    num_heads: int = 4
    num_kv_heads: int = 2
    hidden_size: int = 32
    intermediate_size: int = 64
    vocab_size: int = VOCAB_SIZE
    context_tokens: int = 512
    is_tied: bool = False
    has_bias: bool = False
    rope: dict[str, Any] = field(default_factory=dict)
    seed: int = 1

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads


def make_tokenizer(vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    """Byte-level BPE: the special tokens, all bytes, then pairs of letters."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate((*SPECIALS, *alphabet))}
    # Some pairs lie within one character (e-acute and others begin with the byte C3).
    pairs = [(a, b) for a in "ĠtaeiosÃ" for b in "thnersaied©¨"]
    merges = []
    for first, second in pairs:
        if len(vocabulary) < vocab_size and first + second not in vocabulary:
            vocabulary[first + second] = len(vocabulary)
            merges.append((first, second))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIALS])
    return tokenizer


def config_of(spec: TinySpec) -> dict[str, Any]:
    """`config.json` of a random target."""
    return {
        "model_type": spec.model_type,
        "vocab_size": spec.vocab_size,
        "hidden_size": spec.hidden_size,
        "intermediate_size": spec.intermediate_size,
        "num_hidden_layers": spec.num_layers,
        "num_attention_heads": spec.num_heads,
        "num_key_value_heads": spec.num_kv_heads,
        "max_position_embeddings": spec.context_tokens,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "rope_theta": 10000.0,
        "rope_scaling": spec.rope or None,
        "tie_word_embeddings": spec.is_tied,
        "attention_bias": spec.has_bias,
        "mlp_bias": spec.has_bias,
        "eos_token_id": EOS_ID,
    }


def random_weights(spec: TinySpec) -> dict[str, Tensor]:
    """Weights by name, bfloat16, so that every compute dtype starts from the same numbers."""
    import torch

    generator = torch.Generator().manual_seed(spec.seed)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return (torch.randn(*shape, generator=generator) * scale).bfloat16()

    hidden, inner = spec.hidden_size, spec.intermediate_size
    kv = spec.num_kv_heads * spec.head_dim
    sizes = {
        "self_attn.q_proj": (hidden, hidden),
        "self_attn.k_proj": (kv, hidden),
        "self_attn.v_proj": (kv, hidden),
        "self_attn.o_proj": (hidden, hidden),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    weights = {
        "model.embed_tokens.weight": normal(spec.vocab_size, hidden),
        "model.norm.weight": normal(hidden, scale=0.1) + 1,
    }
    if not spec.is_tied:
        weights["lm_head.weight"] = normal(spec.vocab_size, hidden, scale=0.5)
    for layer in range(spec.num_layers):
        prefix = f"model.layers.{layer}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{prefix}.{norm}.weight"] = normal(hidden, scale=0.1) + 1
        for name, (rows, columns) in sizes.items():
            weights[f"{prefix}.{name}.weight"] = normal(rows, columns, scale=2 / columns**0.5)
            has_bias = spec.has_bias or (
                spec.model_type in ("qwen2", "mimo") and name[-6:-5] in "qkv"
            )
            if has_bias:
                weights[f"{prefix}.{name}.bias"] = normal(rows, scale=0.3)
        if spec.model_type == "qwen3":
            for norm in ("q_norm", "k_norm"):
                name = f"{prefix}.self_attn.{norm}.weight"
                weights[name] = normal(spec.head_dim, scale=0.1) + 1
    return weights


def write_tiny(folder: Path, spec: TinySpec | None = None) -> Path:
    """Write a random target with tokenizer and chat template; returns its folder."""
    from safetensors.torch import save_file

    spec = spec or TinySpec()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_of(spec)), encoding="utf-8")
    save_file(random_weights(spec), folder / "model.safetensors")
    write_text_files(folder)
    return folder


def write_text_files(folder: Path) -> None:
    """Tokenizer and chat template of all tiny targets."""
    make_tokenizer().save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<|bos|>", "eos_token": "<|end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")


def random_heads(
    spec: TinySpec, num_heads: int = 3, num_layers: int = 1, is_shared: bool = False
) -> dict[str, Tensor]:
    """Medusa heads by tensor name, in the v0.1 format or with the target's projection shared."""
    import torch

    generator = torch.Generator().manual_seed(spec.seed + 100)
    hidden = spec.hidden_size
    tensors = {}
    for head in range(num_heads):
        for layer in range(num_layers):
            weight = torch.randn(hidden, hidden, generator=generator) / hidden**0.5
            tensors[f"{head}.{layer}.linear.weight"] = weight.bfloat16()
            tensors[f"{head}.{layer}.linear.bias"] = torch.randn(
                hidden, generator=generator
            ).bfloat16()
        if not is_shared:
            projection = torch.randn(spec.vocab_size, hidden, generator=generator)
            tensors[f"{head}.{num_layers}.weight"] = projection.bfloat16()
    return tensors


def random_rooted_heads(
    spec: TinySpec, num_heads: int = 3, num_layers: int = 2, has_one_projection: bool = True
) -> HeadSet:
    """Heads that read the root, with half the vocabulary or with the target's projection."""
    import torch

    from medusa_core.heads.weights import HeadSet, HeadWeights

    generator = torch.Generator().manual_seed(spec.seed + 200)
    hidden = spec.hidden_size

    def take(*shape: int) -> Tensor:
        return (torch.randn(*shape, generator=generator) / hidden**0.5).bfloat16()

    def layers() -> tuple[tuple[Tensor, Tensor], ...]:
        widths = (2 * hidden, *[hidden] * (num_layers - 1))
        return tuple((take(hidden, width), take(hidden)) for width in widths)

    heads = tuple(HeadWeights(layers(), None) for _ in range(num_heads))
    if not has_one_projection:
        return HeadSet(heads)
    token_ids = torch.randperm(spec.vocab_size, generator=generator)[: spec.vocab_size // 2]
    return HeadSet(heads, token_ids, take(len(token_ids), hidden))


def write_rooted_heads(folder: Path, heads: HeadSet) -> Path:
    """Write such heads; returns the folder."""
    from medusa_core.heads.writer import write_heads as write_head_set

    write_head_set(heads, "rooted", folder, "tiny")
    return folder


def write_heads(
    folder: Path, tensors: dict[str, Tensor], accuracies: list[list[float]] | None = None
) -> Path:
    """Write heads, with a table of trees where accuracies are given; returns the folder."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "medusa_lm_head.safetensors")
    if accuracies is not None:
        table = {"head_accuracies": accuracies, "default_rows": 12}
        (folder / "medusa_trees.json").write_text(json.dumps(table), encoding="utf-8")
    return folder
