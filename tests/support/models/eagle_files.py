"""Random EAGLE heads in every published spelling, and what such heads draft by their equations.

Nothing here uses our reader: shapes and names are written from the papers and the projects that
publish heads, and the reference below computes path by path, without a cache.
"""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor


@dataclass(frozen=True)
class EagleSpec:
    """A random head.

    Attributes:
        spelling: eagle1, eagle3, sglang or speculators.
        hidden: Width.
        features: States that it reads, of EAGLE-3.
        columns: Tokens that it drafts from.
        norms_heads: Its layers are Qwen3's: queries and keys are normalised head by head.
        depth: Layers of its own.
        mask: P-EAGLE: the token of rows that stand for guesses.
    """

    spelling: str
    hidden: int = 32
    heads: int = 4
    kv_heads: int = 2
    inner: int = 64
    vocab: int = 320
    columns: int = 96
    num_layers: int = 2
    taps: tuple[int, ...] = (0, 1, 2)
    theta: float = 500000.0
    eps: float = 1e-5
    seed: int = 5
    norms_heads: bool = False
    depth: int = 1
    mask: int | None = None
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def is_third(self) -> bool:
        return self.spelling != "eagle1"


# In every published spelling.
EAGLE_HEADS = {
    "EAGLE-1": EagleSpec("eagle1"),
    "EAGLE-3": EagleSpec("eagle3"),
    "EAGLE-3, SGLang": EagleSpec("sglang", taps=(1, 2), seed=6),
    "speculators": EagleSpec("speculators", seed=7),
    "speculators, residual as it is": EagleSpec(
        "speculators", more={"norm_before_residual": False, "norm_before_fc": True}
    ),
    "EAGLE-3.1, of a Qwen3 layer": EagleSpec(
        "speculators",
        taps=(0, 2),
        norms_heads=True,
        more={"fc_norm": True, "norm_output": True},
        seed=8,
    ),
    "speculators, two layers": EagleSpec("speculators", depth=2, norms_heads=True, seed=9),
    "P-EAGLE": EagleSpec("speculators", depth=2, mask=319, more={"fc_norm": True}, seed=10),
}


def parts_of(spec: EagleSpec) -> dict[str, Tensor]:
    """The weights by what they are."""
    generator = torch.Generator().manual_seed(spec.seed)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return (torch.randn(*shape, generator=generator) * scale).bfloat16()

    hidden, size = spec.hidden, spec.hidden // spec.heads
    read = 2 * hidden if spec.is_third else hidden
    features = len(spec.taps) * hidden if spec.is_third else 2 * hidden
    parts = {
        "fc": normal(hidden, features, scale=1.5 / features**0.5),
        "q": normal(spec.heads * size, read, scale=2 / read**0.5),
        "k": normal(spec.kv_heads * size, read, scale=2 / read**0.5),
        "v": normal(spec.kv_heads * size, read, scale=2 / read**0.5),
        "o": normal(hidden, spec.heads * size, scale=2 / hidden**0.5),
        "gate": normal(spec.inner, hidden, scale=2 / hidden**0.5),
        "up": normal(spec.inner, hidden, scale=2 / hidden**0.5),
        "down": normal(hidden, spec.inner, scale=2 / spec.inner**0.5),
        "mlp_norm": normal(hidden, scale=0.1) + 1,
    }
    for name in ("q_norm", "k_norm") if spec.norms_heads else ():
        parts[name] = normal(size, scale=0.3) + 1
    if not spec.is_third:
        return {**parts, "fc_bias": normal(hidden, scale=0.2)}
    offsets = torch.randperm(spec.vocab, generator=generator)[: spec.columns].sort().values
    parts |= {name: normal(hidden, scale=0.1) + 1 for name in ("embed_norm", "hidden_norm", "norm")}
    parts["lm_head"] = normal(spec.columns, hidden, scale=1.0)
    parts["d2t"] = offsets - torch.arange(spec.columns)
    if spec.more.get("norm_before_fc"):
        parts["input_norm"] = normal(features, scale=0.1) + 1
    for index in range(len(spec.taps) * bool(spec.more.get("fc_norm"))):
        parts[f"fc_norm.{index}"] = normal(hidden, scale=0.3) + 1
    for index in range(1, spec.depth):
        parts |= {
            f"{index}.q": normal(spec.heads * size, hidden, scale=2 / hidden**0.5),
            f"{index}.k": normal(spec.kv_heads * size, hidden, scale=2 / hidden**0.5),
            f"{index}.v": normal(spec.kv_heads * size, hidden, scale=2 / hidden**0.5),
            f"{index}.o": normal(hidden, spec.heads * size, scale=2 / hidden**0.5),
            f"{index}.gate": normal(spec.inner, hidden, scale=2 / hidden**0.5),
            f"{index}.up": normal(spec.inner, hidden, scale=2 / hidden**0.5),
            f"{index}.down": normal(hidden, spec.inner, scale=2 / spec.inner**0.5),
        }
        parts |= {f"{index}.{name}": normal(hidden, scale=0.1) + 1 for name in _LAYER_NORMS}
        for name in ("q_norm", "k_norm") if spec.norms_heads else ():
            parts[f"{index}.{name}"] = normal(size, scale=0.3) + 1
    if spec.mask is not None:
        parts["mask_hidden"] = normal(1, 1, features)
        parts["embed_tokens"] = normal(spec.vocab, hidden)
    return parts


_LAYER_NORMS = ("embed_norm", "mlp_norm")  # the first is what a layer behind the first reads
_INNER = {
    "q": "self_attn.q_proj.weight",
    "k": "self_attn.k_proj.weight",
    "v": "self_attn.v_proj.weight",
    "o": "self_attn.o_proj.weight",
    "gate": "mlp.gate_proj.weight",
    "up": "mlp.up_proj.weight",
    "down": "mlp.down_proj.weight",
    "embed_norm": "input_layernorm.weight",
    "hidden_norm": "hidden_norm.weight",
    "mlp_norm": "post_attention_layernorm.weight",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
}
_OUTER = {"d2t": "d2t", "fc_bias": "fc.bias", "mask_hidden": "mask_hidden"}


def write_eagle(folder: Path, spec: EagleSpec, parts: dict[str, Tensor] | None = None) -> Path:
    """Write a head as its makers do; returns the folder."""
    parts = parts_of(spec) if parts is None else parts
    layer = {"eagle1": "layers.0.", "speculators": "layers.0."}.get(spec.spelling, "midlayer.")
    outer = "model." if spec.spelling == "sglang" else ""
    tensors: dict[str, Tensor] = {}
    for part, tensor in parts.items():
        index, _, inner = part.rpartition(".")
        if inner in _INNER and index.isdigit():
            name = f"{outer}layers.{index}.{_INNER[inner]}"
        elif part in _INNER:
            name = f"{outer}{layer}{_INNER[part]}"
        else:
            name = _OUTER.get(part, f"{part}.weight")
            name = name if part in ("lm_head", "d2t") else outer + name
        tensors[name] = tensor.contiguous()
    if spec.is_third:
        drafted = torch.zeros(spec.vocab, dtype=torch.bool)
        drafted[parts["d2t"] + torch.arange(spec.columns)] = True
        tensors["t2d"] = drafted
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config_of(spec)), encoding="utf-8")
    return folder


def config_of(spec: EagleSpec) -> dict[str, Any]:
    """`config.json`."""
    llama = {
        "model_type": "qwen3" if spec.norms_heads else "llama",
        "hidden_size": spec.hidden,
        "intermediate_size": spec.inner,
        "num_attention_heads": spec.heads,
        "num_key_value_heads": spec.kv_heads,
        "num_hidden_layers": spec.depth,
        "rms_norm_eps": spec.eps,
        "rope_theta": spec.theta,
        "hidden_act": "silu",
        "max_position_embeddings": 2048,
        "vocab_size": spec.vocab,
    }
    if spec.spelling == "eagle1":
        return {**llama, "architectures": ["LlamaForCausalLM"], "bias": True}
    if spec.spelling == "eagle3":
        ids = {"eagle_aux_hidden_state_layer_ids": list(spec.taps)}
        named = {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": spec.columns}
        return {**llama, **named, **ids, **spec.more}
    if spec.spelling == "sglang":  # names layers by what leaves them
        ids = {"eagle_aux_hidden_state_layer_ids": [tap - 1 for tap in spec.taps]}
        named = {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": spec.columns}
        return {**llama, **named, "eagle_config": ids, **spec.more}
    return {
        "speculators_model_type": "eagle3" if spec.mask is None else "peagle",
        "mask_token_id": spec.mask,
        "architectures": ["Eagle3Speculator"],
        "draft_vocab_size": spec.columns,
        "transformer_layer_config": llama,
        "eagle_aux_hidden_state_layer_ids": list(spec.taps),
        "speculators_config": {"algorithm": "eagle3", "verifier": {"name_or_path": "x"}},
        **spec.more,
    }


class Slowly:
    """Reference of an EAGLE head, recomputed for every path."""

    def __init__(self, spec: EagleSpec, embedding: Tensor, lm_head: Tensor) -> None:
        self._spec = spec
        self._parts = {name: tensor.double() for name, tensor in parts_of(spec).items()}
        self._embedding = self._parts.get("embed_tokens", embedding.double())
        self._target_head = lm_head.double()

    def chances(self, features: Tensor, token_ids: list[int], path: list[int]) -> dict[int, float]:
        """Return the probability of each token after a path.

        Args:
            features: What the target says of tokens 0 … n − 1; [n, hidden], of EAGLE-3
                [n, taps · hidden].
            token_ids: Tokens 1 … n: the last is the root.
            path: Guesses behind the root.
        """
        spec = self._spec
        states = list(self._entered(features.double()))
        seen: list[list[Tensor]] = [[] for _ in range(spec.depth)]
        for place, token in enumerate([*token_ids, *path]):
            is_guess = place >= len(token_ids)
            if is_guess and spec.mask is not None:
                (masked,) = self._entered(self._parts["mask_hidden"].view(1, -1))
                left = self._layers(masked, spec.mask, seen)
            else:
                left = self._layers(states[place], token, seen)
            if place >= len(token_ids) - 1:
                feeds_normed = spec.more.get("norm_output", False)
                states.append(self._norm(left, self._parts["norm"]) if feeds_normed else left)
        return self._scores(states[-1])

    def _entered(self, read: Tensor) -> Tensor:
        """Return the target's states as the first step's inputs. [n, hidden]"""
        spec, parts = self._spec, self._parts
        if not spec.is_third:
            return read
        if "input_norm" in parts:
            read = self._norm(read, parts["input_norm"])
        if spec.more.get("fc_norm"):
            each = read.chunk(len(spec.taps), dim=-1)
            normed = [self._norm(x, parts[f"fc_norm.{i}"]) for i, x in enumerate(each)]
            read = torch.cat(normed, dim=-1)
        return read @ parts["fc"].T

    def _layers(self, hidden: Tensor, token: int, seen: list[list[Tensor]]) -> Tensor:
        """Run one row through all layers and append its keys and values to `seen`."""
        spec, parts = self._spec, self._parts
        vector = self._embedding[token]
        if spec.is_third:
            normed = self._norm(hidden, parts["hidden_norm"])
            default = spec.spelling == "speculators"
            residual = normed if spec.more.get("norm_before_residual", default) else hidden
            x = torch.cat([self._norm(vector, parts["embed_norm"]), normed])
        else:
            residual = x = parts["fc"] @ torch.cat([vector, hidden]) + parts["fc_bias"]
        for index in range(spec.depth):
            prefix = f"{index}." if index else ""
            if index:
                x, residual = self._norm(residual, parts[f"{prefix}embed_norm"]), residual
            residual = self._layer(prefix, x, residual, seen[index])
        return residual

    def _layer(self, prefix: str, x: Tensor, residual: Tensor, seen: list[Tensor]) -> Tensor:
        """Return a layer's output for the inputs of its attention and its residual."""
        spec, part = self._spec, lambda name: self._parts[f"{prefix}{name}"]
        place, size = len(seen), spec.hidden // spec.heads
        q, k = (part("q") @ x).view(spec.heads, size), (part("k") @ x).view(spec.kv_heads, size)
        if spec.norms_heads:
            q, k = self._norm(q, part("q_norm")), self._norm(k, part("k_norm"))
        q, k = self._turned(q, place), self._turned(k, place)
        v = (part("v") @ x).view(spec.kv_heads, size)
        seen.append(torch.stack([k, v]))
        group = spec.heads // spec.kv_heads
        mixed = []
        for head in range(spec.heads):
            keys = torch.stack([row[0, head // group] for row in seen])
            values = torch.stack([row[1, head // group] for row in seen])
            mixed.append(torch.softmax(keys @ q[head] / math.sqrt(size), 0) @ values)
        x = residual + part("o") @ torch.cat(mixed)
        inner = self._norm(x, part("mlp_norm"))
        gate = torch.nn.functional.silu(part("gate") @ inner)
        return x + part("down") @ (gate * (part("up") @ inner))

    def _scores(self, state: Tensor) -> dict[int, float]:
        spec, parts = self._spec, self._parts
        if not spec.is_third:
            chances = torch.softmax(self._target_head @ state, 0)
            return dict(enumerate(chances.tolist()))
        if not spec.more.get("norm_output"):  # else it is normed already
            state = self._norm(state, parts["norm"])
        chances = torch.softmax(parts["lm_head"] @ state, 0)
        ids = (parts["d2t"].long() + torch.arange(spec.columns)).tolist()
        return dict(zip(ids, chances.tolist(), strict=True))

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return x * (x.pow(2).mean(-1, keepdim=True) + self._spec.eps).rsqrt() * weight

    def _turned(self, rows: Tensor, place: int) -> Tensor:
        half = rows.shape[-1] // 2
        angles = place * self._spec.theta ** (-torch.arange(half).double() / half)
        a, b = rows[:, :half], rows[:, half:]
        cosine, sine = angles.cos(), angles.sin()
        return torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1)
