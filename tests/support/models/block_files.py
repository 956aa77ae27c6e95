"""Random block drafters in every published layout, and what they draft by their equations.

Nothing here uses our reader: shapes and names are written from the papers and the projects that
publish drafters, and the reference below computes place by place, without a cache.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

# Of DFlash2: a convolution's places and channels with one weight, and the selector's rank.
WIDTH, GROUP, RANK = 3, 8, 6


@dataclass(frozen=True)
class BlockSpec:
    """A random drafter.

    Attributes:
        layout: z-lab, muse, deepseek, gemma4, liquid, specforge, speculators or jetspec.
        taps: The target's layers whose entering states it reads.
        columns: Tokens that it drafts from; 0 for all.
        rank: Of the Markov head; 0 for none.
        selected: Tokens that DFlash2's selector compares; 0 for DFlash.
        windows: Of every layer how near a place must be; empty for no windows.
    """

    layout: str
    hidden: int = 32
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 8
    inner: int = 64
    vocab: int = 320
    num_layers: int = 2
    taps: tuple[int, ...] = (0, 1)
    num_places: int = 5
    mask: int = 7
    columns: int = 0
    rank: int = 0
    selected: int = 0
    confidence: bool = False
    windows: tuple[int | None, ...] = ()
    has_bias: bool = False
    theta: float = 500000.0
    eps: float = 1e-5
    seed: int = 5
    more: dict[str, Any] = field(default_factory=dict)
    own: dict[str, Any] = field(default_factory=dict)

    @property
    def first_place(self) -> int:
        return 0 if self.layout in ("deepseek", "gemma4", "liquid") else 1

    @property
    def are_causal(self) -> tuple[bool, ...]:
        if self.layout == "jetspec":
            return (True,) * self.num_layers
        if self.layout == "muse":
            return (False,) * self.num_layers
        return tuple(window is not None for window in self.windows) or (False,) * self.num_layers


DFLASH = BlockSpec("z-lab")
DSPARK = BlockSpec("deepseek", num_places=4, rank=6, confidence=True, seed=6)
DFLASH2 = replace(DFLASH, selected=12, seed=9)
JETSPEC = BlockSpec("jetspec", seed=7)
REDUCED = replace(DSPARK, layout="speculators", columns=96, seed=8)
# What a drafter may say of how tokens are embedded and scored.
SCORED = {"input_embedding_scale": 2.5, "output_multiplier": 0.5, "final_logit_softcapping": 3.0}
# In every published layout.
BLOCK_DRAFTERS = {
    "DFlash, z-lab": DFLASH,
    "DFlash with windows and scaled scores": replace(
        DFLASH, windows=(4, None), has_bias=True, own=SCORED
    ),
    "DFlash, transformers' Muse": replace(DFLASH, layout="muse", windows=(3, None)),
    "DFlash, speculators": replace(DFLASH, layout="speculators", columns=80),
    "DFlash2": DFLASH2,
    "DFlash2 behind windows": replace(DFLASH2, windows=(None, 3)),
    "DSpark, DeepSeek": DSPARK,
    "DSpark, Gemma 4": replace(DSPARK, layout="gemma4", own={"final_logit_softcapping": 4.0}),
    "DSpark, LFM2.5": replace(DSPARK, layout="liquid"),
    "DSpark, SpecForge": replace(DSPARK, layout="specforge", confidence=False),
    "DSpark, speculators, some tokens": REDUCED,
    "JetSpec": JETSPEC,
}


def parts_of(spec: BlockSpec) -> dict[str, Tensor]:
    """The weights by z-lab's and DeepSeek's names."""
    return _parts(spec, _Normal(torch.Generator().manual_seed(spec.seed)))


def shapes_of(spec: BlockSpec) -> dict[str, tuple[int, ...]]:
    """Return the tensor shapes of a drafter of any size."""
    return {name: tuple(part.shape) for name, part in _parts(spec, _NoNumbers()).items()}


def _parts(spec: BlockSpec, normal: "_Normal") -> dict[str, Tensor]:
    hidden, features = spec.hidden, len(spec.taps) * spec.hidden
    parts = {
        "fc.weight": normal(hidden, features, scale=1.5 / features**0.5),
        "hidden_norm.weight": normal(hidden, scale=0.1) + 1,
        "norm.weight": normal(hidden, scale=0.1) + 1,
    }
    for index in range(spec.num_layers):
        layer = _layer_of(spec, normal)
        parts |= {f"layers.{index}.{name}": tensor for name, tensor in layer.items()}
    return parts | _heads_of(spec, normal)


class _Normal:
    """Generator of random tensors."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator

    def __call__(self, *shape: int, scale: float = 1.0) -> Tensor:
        return (torch.randn(*shape, generator=self.generator) * scale).bfloat16()


class _NoNumbers(_Normal):
    """Tensors of which there is the shape alone."""

    def __init__(self) -> None:
        super().__init__(torch.Generator())

    def __call__(self, *shape: int, scale: float = 1.0) -> Tensor:
        return torch.empty(shape, device="meta")


def _layer_of(spec: BlockSpec, normal: _Normal) -> dict[str, Tensor]:
    hidden, inner = spec.hidden, spec.inner
    queries, keys = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    sizes = {
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.o_proj": (hidden, queries),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    parts = {}
    for name, (rows, columns) in sizes.items():
        parts[f"{name}.weight"] = normal(rows, columns, scale=2 / columns**0.5)
        if spec.has_bias and name.startswith("self_attn"):
            parts[f"{name}.bias"] = normal(rows, scale=0.3)
    for name in ("input_layernorm", "post_attention_layernorm"):
        parts[f"{name}.weight"] = normal(hidden, scale=0.1) + 1
    for name in ("q_norm", "k_norm"):
        parts[f"self_attn.{name}.weight"] = normal(spec.head_dim, scale=0.3) + 1
    if spec.layout == "gemma4":
        del parts["self_attn.v_proj.weight"]
        for name in ("pre_feedforward_layernorm", "post_feedforward_layernorm"):
            parts[f"{name}.weight"] = normal(hidden, scale=0.1) + 1
        parts["layer_scalar"] = normal(1, scale=0.1) + 1
    for name in ("attention_conv", "mlp_conv") if spec.selected else ():
        parts[f"{name}.base_kernel"] = normal(2, WIDTH, hidden, scale=0.7)
        projected = normal(2 * WIDTH * hidden // GROUP, hidden, scale=0.1)
        parts[f"{name}.kernel_projection.weight"] = projected
    return parts


def _heads_of(spec: BlockSpec, normal: _Normal) -> dict[str, Tensor]:
    parts = {}
    if spec.selected:
        for name in ("predecessor", "successor"):
            parts[f"candidate_selector.{name}_codebook"] = normal(spec.vocab, RANK)
        parts["candidate_selector.hidden_projection.weight"] = normal(RANK, spec.hidden, scale=0.3)
    if spec.columns:
        ids = torch.randperm(spec.vocab, generator=normal.generator)[: spec.columns].sort().values
        parts["lm_head.weight"] = normal(spec.columns, spec.hidden)
        parts["d2t"] = ids - torch.arange(spec.columns)
    if spec.rank:
        columns = spec.columns or spec.vocab
        parts["markov_head.markov_w1.weight"] = normal(spec.vocab, spec.rank)
        parts["markov_head.markov_w2.weight"] = normal(columns, spec.rank, scale=0.7)
    if spec.confidence:
        parts["confidence_head.proj.weight"] = normal(1, spec.hidden + spec.rank, scale=0.2)
        parts["confidence_head.proj.bias"] = normal(1)
    return parts


def write_block(folder: Path, spec: BlockSpec, parts: dict[str, Tensor] | None = None) -> Path:
    """Write a drafter as its makers do; returns the folder."""
    tensors = dict(parts_of(spec) if parts is None else parts)
    if spec.layout == "muse":
        renamed = {"fc.weight": "encoder.fc.weight"}
        renamed["hidden_norm.weight"] = "encoder.output_norm_enc.weight"
        tensors = {renamed.get(name, name): tensor for name, tensor in tensors.items()}
    if spec.layout in ("deepseek", "gemma4"):  # copies of the target's, or nearly
        tensors["embed_tokens.weight"] = torch.zeros(spec.vocab, spec.hidden)
        tensors["lm_head.weight"] = torch.zeros(spec.vocab, spec.hidden)
    if spec.columns:
        drafted = torch.zeros(spec.vocab, dtype=torch.bool)
        drafted[tensors["d2t"] + torch.arange(spec.columns)] = True
        tensors["t2d"] = drafted
    folder.mkdir(parents=True, exist_ok=True)
    contiguous = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(contiguous, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config_of(spec)), encoding="utf-8")
    return folder


def config_of(spec: BlockSpec) -> dict[str, Any]:
    """`config.json`."""
    kinds = ["sliding_attention" if window else "full_attention" for window in spec.windows]
    window = next((window for window in spec.windows if window), None)
    qwen3 = {
        "model_type": "qwen3",
        "hidden_size": spec.hidden,
        "intermediate_size": spec.inner,
        "num_attention_heads": spec.heads,
        "num_key_value_heads": spec.kv_heads,
        "head_dim": spec.head_dim,
        "num_hidden_layers": spec.num_layers,
        "rms_norm_eps": spec.eps,
        "rope_theta": spec.theta,
        "hidden_act": "silu",
        "max_position_embeddings": 2048,
        "vocab_size": spec.vocab,
        "attention_bias": spec.has_bias,
        "use_sliding_window": window is not None,
        "sliding_window": window,
        **({"layer_types": kinds} if kinds else {}),
    }
    leaving = [tap - 1 for tap in spec.taps]
    apart = {"mask_token_id": spec.mask, "target_layer_ids": leaving}
    markov = {
        "markov_rank": spec.rank,
        "markov_head_type": "vanilla",
        "enable_confidence_head": spec.confidence,
        "confidence_head_with_markov": spec.confidence,
    }
    if spec.selected:
        apart |= {"conv_kernel_size": WIDTH, "conv_group_size": GROUP, "selector_rank": RANK}
        apart["selector_top_k"] = spec.selected
    size = {"block_size": spec.num_places}
    if spec.layout == "z-lab":
        named = {"architectures": ["DFlashDraftModel"], "dflash_config": {**apart, **spec.own}}
        return {**qwen3, **size, **named, **spec.more}
    if spec.layout == "jetspec":
        own = {**apart, "causal_head": True, **spec.own}
        return {**qwen3, **size, "architectures": ["DFlashDraftModel"], "dflash_config": own}
    if spec.layout == "muse":
        named = {"model_type": "muse_glimmer_assistant", "sliding_window": window}
        return {**qwen3, **named, **size, **apart, **spec.more}
    if spec.layout == "deepseek":
        named = {"architectures": ["Qwen3DSparkModel"], "num_anchors": 8}
        return {**qwen3, **size, **named, **apart, **markov, **spec.more}
    if spec.layout == "gemma4":
        turned = {"rope_type": "proportional", "partial_rotary_factor": 0.5}
        named = {
            "architectures": ["Gemma4DSparkModel"],
            "model_type": "gemma4_text",
            "hidden_activation": "gelu_pytorch_tanh",
            "head_dim": 2 * spec.head_dim,
            "global_head_dim": spec.head_dim,
            "num_key_value_heads": 1,
            "num_global_key_value_heads": spec.kv_heads,
            "attention_k_eq_v": True,
            "hidden_size_per_layer_input": 0,
            "layer_types": ["full_attention"] * spec.num_layers,
            "rope_parameters": {"full_attention": {**turned, "rope_theta": spec.theta}},
        }
        del qwen3["hidden_act"]
        return {**qwen3, **size, **named, **apart, **markov, **spec.own}
    if spec.layout == "liquid":
        named = {"architectures": ["Lfm2DSparkDraftModel"], "rope_is_neox_style": False}
        return {**qwen3, **size, **named, **markov, "dflash_config": apart, **spec.more}
    if spec.layout == "specforge":
        own = {**apart, **markov, "projector_type": "dspark"}
        return {**qwen3, **size, "architectures": ["DSparkDraftModel"], "dflash_config": own}
    kind = "dspark" if spec.rank else "dflash"
    count = spec.num_places - spec.first_place
    methods = [{"proposal_type": "greedy", "speculative_tokens": count}]
    return {
        "speculators_model_type": kind,
        "architectures": ["DSparkSpeculator" if spec.rank else "DFlashSpeculator"],
        "transformer_layer_config": qwen3,
        "aux_hidden_state_layer_ids": list(spec.taps),
        "mask_token_id": spec.mask,
        "draft_vocab_size": spec.columns or spec.vocab,
        "speculators_config": {"algorithm": kind, "proposal_methods": methods},
        **size,
        **(markov if spec.rank else {}),
        **spec.more,
    }


class Slowly:
    """Reference of a block drafter, position by position in float64."""

    def __init__(self, spec: BlockSpec, embedding: Tensor, lm_head: Tensor) -> None:
        self.spec, self.embedding = spec, embedding.double()
        self.parts = {name: tensor.double() for name, tensor in parts_of(spec).items()}
        self.lm_head = self.parts.get("lm_head.weight", lm_head.double())
        self.is_gemma = spec.layout == "gemma4"

    def states(self, deep: Tensor, root: int) -> Tensor:
        """Behind the last norm, of the places that draft.

        Args:
            deep: What enters the taps at all tokens before the root. [n, taps · hidden]
            root: The last decided token.
        """
        spec, count = self.spec, len(deep)
        read = self._norm(deep.double() @ self.parts["fc.weight"].T, "hidden_norm")
        block = [root, *[spec.mask] * (spec.num_places - 1)]
        scale = spec.own.get("input_embedding_scale", 1)
        scale = math.sqrt(spec.hidden) if self.is_gemma else scale
        x = [self.embedding[token] * scale for token in block]
        for index in range(spec.num_layers):
            normed = [self._norm(row, f"layers.{index}.input_layernorm") for row in x]
            normed, behind = self._convolved(f"layers.{index}.attention_conv", normed)
            rows = [*read, *normed]
            keys = [self._head(index, "k", row, place) for place, row in enumerate(rows)]
            values = [self._head(index, "v", row, 0) for row in rows]
            mixed = [
                self._mixed(index, row, count + place, keys, values)
                for place, row in enumerate(normed)
            ]
            mixed = behind(mixed)
            before_mlp = f"layers.{index}.post_attention_layernorm"
            if self.is_gemma:
                mixed = [self._norm(row, before_mlp) for row in mixed]
                before_mlp = f"layers.{index}.pre_feedforward_layernorm"
            x = [row + made for row, made in zip(x, mixed, strict=True)]
            normed = [self._norm(row, before_mlp) for row in x]
            normed, behind = self._convolved(f"layers.{index}.mlp_conv", normed)
            made = behind([self._mlp(index, row) for row in normed])
            if self.is_gemma:
                made = [self._norm(r, f"layers.{index}.post_feedforward_layernorm") for r in made]
            x = [row + one for row, one in zip(x, made, strict=True)]
            x = [row * self.parts.get(f"layers.{index}.layer_scalar", 1) for row in x]
        return torch.stack([self._norm(row, "norm") for row in x[spec.first_place :]])

    def scores(self, states: Tensor, level: int, before: int) -> Tensor:
        """Return the logits of the columns after a token, and their confidence."""
        scores = self.lm_head @ states[level] * self.spec.own.get("output_multiplier", 1)
        if cap := self.spec.own.get("final_logit_softcapping"):
            scores = torch.tanh(scores / cap) * cap
        if self.spec.selected:
            kept = scores.topk(self.spec.selected).indices
            before_it, behind_it = (
                self.parts[f"candidate_selector.{name}_codebook"]
                for name in ("predecessor", "successor")
            )
            gate = self.parts["candidate_selector.hidden_projection.weight"] @ states[level]
            added = behind_it[kept] @ (before_it[before] * gate)
            only = torch.full_like(scores, -math.inf)
            return only.index_put((kept,), scores[kept] + added)
        if self.spec.rank:
            vector = self.parts["markov_head.markov_w1.weight"][before]
            scores = scores + self.parts["markov_head.markov_w2.weight"] @ vector
        return scores

    def chances(self, states: Tensor, level: int, before: int) -> dict[int, float]:
        """Return the probability of each token at a position after a token."""
        found = torch.softmax(self.scores(states, level, before), 0)
        if self.spec.confidence:
            vector = self.parts["markov_head.markov_w1.weight"][before]
            weight = self.parts["confidence_head.proj.weight"][0]
            said = weight @ torch.cat([states[level], vector])
            found = found * torch.sigmoid(said + self.parts["confidence_head.proj.bias"])
        ids = range(self.spec.vocab)
        if self.spec.columns:
            ids = (self.parts["d2t"].long() + torch.arange(self.spec.columns)).tolist()
        return dict(zip(ids, found.tolist(), strict=True))

    def _mixed(
        self, index: int, normed: Tensor, place: int, keys: list[Tensor], values: list[Tensor]
    ) -> Tensor:
        spec = self.spec
        queries = self._head(index, "q", normed, place)
        window = spec.windows[index] if spec.windows else None
        reach = math.inf if window is None else window + (spec.layout == "muse")
        seen = [
            other
            for other in range(len(keys))
            if abs(other - place) < reach and (other <= place or not spec.are_causal[index])
        ]
        group = spec.heads // spec.kv_heads
        mixed = []
        for head in range(spec.heads):
            near = torch.stack([keys[other][head // group] for other in seen])
            scale = 1 if self.is_gemma else spec.head_dim**-0.5
            weights = torch.softmax(near @ queries[head] * scale, 0)
            mixed.append(weights @ torch.stack([values[other][head // group] for other in seen]))
        return self._linear(index, "self_attn.o_proj", torch.cat(mixed))

    def _mlp(self, index: int, x: Tensor) -> Tensor:
        gate = self._linear(index, "mlp.gate_proj", x)
        gate = F.gelu(gate, approximate="tanh") if self.is_gemma else F.silu(gate)
        return self._linear(index, "mlp.down_proj", gate * self._linear(index, "mlp.up_proj", x))

    def _convolved(
        self, name: str, rows: list[Tensor]
    ) -> tuple[list[Tensor], Callable[[list[Tensor]], list[Tensor]]]:
        """Return the input and output of a convolution in half a layer."""
        if not self.spec.selected:
            return rows, lambda made: made
        kernels = self.parts[f"{name}.base_kernel"]
        said = [self.parts[f"{name}.kernel_projection.weight"] @ row for row in rows]

        def mixed(side: int, given: list[Tensor]) -> list[Tensor]:
            found = []
            for place in range(len(given)):
                total = torch.zeros_like(given[place])
                for back in range(min(WIDTH, place + 1)):
                    own = said[place].view(2, WIDTH, -1)[side, back]
                    weight = kernels[side, back] + own.repeat_interleave(GROUP)
                    total = total + weight * given[place - back]
                found.append(total)
            return found

        return mixed(0, rows), lambda made: mixed(1, made)

    def _head(self, index: int, name: str, row: Tensor, place: int) -> Tensor:
        said = "k" if self.is_gemma and name == "v" else name
        heads = self._linear(index, f"self_attn.{said}_proj", row).view(-1, self.spec.head_dim)
        if name == "v" and self.is_gemma:
            return heads * (heads.pow(2).mean(-1, keepdim=True) + self.spec.eps).rsqrt()
        if name == "v":
            return heads
        return self._turned(self._norm(heads, f"layers.{index}.self_attn.{name}_norm"), place)

    def _linear(self, index: int, name: str, x: Tensor) -> Tensor:
        y = self.parts[f"layers.{index}.{name}.weight"] @ x
        bias = self.parts.get(f"layers.{index}.{name}.bias")
        return y if bias is None else y + bias

    def _norm(self, x: Tensor, name: str) -> Tensor:
        root = (x.pow(2).mean(-1, keepdim=True) + self.spec.eps).rsqrt()
        return x * root * self.parts[f"{name}.weight"]

    def _turned(self, rows: Tensor, place: int) -> Tensor:
        half = rows.shape[-1] // 2
        angles = place * self.spec.theta ** (-torch.arange(half).double() / half)
        if self.is_gemma:  # the second half of the pairs isn't turned
            angles = angles * (torch.arange(half) < half // 2)
        cosine, sine = angles.cos(), angles.sin()
        if self.spec.layout == "liquid":  # neighbours are turned
            a, b = rows[:, ::2], rows[:, 1::2]
            turned = [a * cosine - b * sine, b * cosine + a * sine]
            return torch.stack(turned, dim=-1).flatten(1)
        a, b = rows[:, :half], rows[:, half:]
        return torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1)
