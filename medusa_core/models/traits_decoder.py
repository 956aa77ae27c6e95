"""The decoder of families whose blocks have more traits than Llama's, in torch's operations.

Sources: Gemma 2 and 3 (Gemma Team 2024, 2025), OLMo 2 (OLMo Team 2024), Granite 3 (IBM 2024),
SmolLM3 (Hugging Face 2025).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from medusa_core.errors import RequestError
from medusa_core.models.activation import active_of
from medusa_core.models.attention import by_kv_head, by_row
from medusa_core.models.config import ModelConfig, RopeConfig
from medusa_core.models.decoder import AnyBlock, Decoder, SequenceRows
from medusa_core.models.experts import ExpertMlps, Mlp, PlainMlp, read_mlps
from medusa_core.models.norm import RmsNorm
from medusa_core.models.parts import (
    BlockParts,
    block_parts,
    norm_names,
    qk_norm_names,
)
from medusa_core.models.plain_block import PlainBlock, PositionTable
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.rope import Rope, interleave_rows, rotate
from medusa_core.models.traits import NormPlaces
from medusa_core.models.weights import Weights


@dataclass(frozen=True, slots=True)
class TraitsBlock:
    """Weights of one block; a norm that it doesn't have is None.

    Attributes:
        norms: Before attention, behind it, before the MLP, behind it.
        q_norm: Of queries: of each head, or of all at once.
        sinks: The scores of each query head that stand for no row. [q heads]
        k_norm: Of keys, likewise.
        head_scales: What turned heads are multiplied with where the norms' weights come behind the
            turn; else None. [q heads + 2 · kv heads, head_dim]
        qkv: The fused projections.
        output: The projection behind attention.
        mlp: What follows attention: one MLP, or experts.
    """

    norms: tuple[RmsNorm | None, RmsNorm | None, RmsNorm | None, RmsNorm | None]
    q_norm: RmsNorm | None
    k_norm: RmsNorm | None
    head_scales: Tensor | None
    sinks: Tensor | None
    qkv: QuantLinear
    output: QuantLinear
    mlp: Mlp | PlainMlp | ExpertMlps

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        return (self.qkv, self.output, *self.mlp.linears)


@dataclass(slots=True)
class _Pass:
    """What the blocks of one pass share.

    Attributes:
        positions: Of its rows. [n]
        turned: Factors of layers that are turned as the configuration says; see `Rope.rotations`.
        local: Of layers with a window.
        still: Of layers that aren't turned: they are scaled alone.
        masks: Additive masks of layers with a window, by window and sequence.
    """

    positions: Tensor
    turned: Tensor
    local: Tensor
    still: Tensor
    masks: dict[tuple[int, int | None], Tensor] = field(default_factory=dict)


class TraitsDecoder(Decoder):
    """A decoder that follows `Traits`; `rotations` begins a pass, whose blocks come after it."""

    def __init__(self, config: ModelConfig, precision: Precision, weights: Weights) -> None:
        traits = config.traits
        if precision.attended and (traits.has_sinks or traits.attention_cap is not None):
            raise RequestError(
                f"Attention of {config.model_type} models takes all rows.",
                "Leave out --sparse-attention.",
            )
        self._own: list[TraitsBlock] = []
        self._precision_scores = precision.scores
        super().__init__(config, precision, weights)
        self._active = active_of(config.traits)
        self._local_rope = Rope(_local(config), precision.scores, precision.device)
        self._pass: _Pass | None = None

    def read_blocks(self, weights: Weights) -> Sequence[AnyBlock]:
        self._own = [self._read(weights, index) for index in range(self.config.num_layers)]
        return self._own

    def logits(self, hidden: Tensor) -> Tensor:
        traits = self.config.traits
        return _capped(self.lm_head(hidden) / traits.score_divisor, traits.score_cap)

    def embed(self, token_ids: Tensor) -> Tensor:
        return self._scaled(super().embed(token_ids))

    def offloaded_vectors(self, token_ids: Sequence[int]) -> Tensor | None:
        vectors = super().offloaded_vectors(token_ids)
        return None if vectors is None else self._scaled(vectors)

    def rotations(self, positions: Tensor, num_positions: int) -> Tensor:
        turned = self._rope.rotations(positions, num_positions)
        local = turned
        if self.config.traits.local_theta is not None:
            local = self._local_rope.rotations(positions, num_positions)
        still = self._rope.rotations(torch.zeros_like(positions), 1)
        scale = self.config.traits.attention_scale
        if scale is not None:  # beyond the 1/√head_dim that is in them
            more = scale * math.sqrt(self.config.head_dim)
            for factors in (turned, still) if local is turned else (turned, local, still):
                factors[:, : self.config.num_heads] *= more
        if self.config.traits.query_growth:
            turned[:, : self.config.num_heads] *= self._growth(positions)[:, None, None]
        self._pass = _Pass(positions, turned, local, still)
        return turned

    def position_tables(self, num_positions: int) -> tuple[PositionTable, ...]:
        growth, traits = None, self.config.traits
        if traits.query_growth:
            growth = self._growth(torch.arange(num_positions))
        tables = (PositionTable(self._rope.turns(num_positions), growth),)
        if traits.local_theta is None:
            return tables
        return (*tables, PositionTable(self._local_rope.turns(num_positions)))

    def plain_block(self, index: int) -> PlainBlock:
        block, config = self._own[index], self.config
        traits, mlp = config.traits, block.mlp
        experts = mlp if isinstance(mlp, ExpertMlps) else None
        one = mlp.shared if isinstance(mlp, ExpertMlps) else mlp
        assert one is None or isinstance(one, Mlp)  # no gate can't be told so
        window = traits.windows[index] if traits.windows else None
        q_norm, k_norm = (
            None if norm is None else norm.weight for norm in (block.q_norm, block.k_norm)
        )
        if (scales := block.head_scales) is not None:
            q_norm, k_norm = scales[0], scales[config.num_heads]
        linears = {"qkv": block.qkv, "output": block.output}
        if one is not None:
            linears |= {"gate_up": one.gate_up, "down": one.down}
        is_local = window is not None and traits.local_theta is not None
        return PlainBlock(
            linears=linears,
            norms=block.norms,
            q_norm=q_norm,
            k_norm=k_norm,
            norms_turned=scales is not None,
            table=None if index in traits.unturned else int(is_local),
            query_scale=traits.attention_scale or config.head_dim**-0.5,
            window=window,
            attention_cap=traits.attention_cap,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            inner=0 if one is None else config.mlp_width(index),
            experts=experts,
            sinks=block.sinks,
        )

    def block(
        self,
        index: int,
        x: Tensor,
        rotations: Tensor,
        sequences: Sequence[SequenceRows],
        only_row: int | None = None,
    ) -> Tensor:
        now, weights = self._pass, self._own[index]
        assert now is not None  # of `rotations`
        before, behind, before_mlp, behind_mlp = weights.norms
        normed = x if before is None else before(x)
        qkv = self._normed(weights, weights.qkv(normed))
        turned = rotate(qkv, self._factors(index, now))
        if weights.head_scales is not None:
            turned = turned * weights.head_scales
        mixed = self.mixed(index, turned, sequences, only_row)
        if only_row is not None:
            x = x[only_row : only_row + 1]
        x = self._add(x, weights.output(mixed.to(x.dtype)), behind)
        normed = x if before_mlp is None else before_mlp(x)
        return self._add(x, weights.mlp(normed, self._active), behind_mlp)

    def attend(
        self, index: int, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
    ) -> Tensor:
        sinks, cap = self._own[index].sinks, self.config.traits.attention_cap
        if sinks is not None:
            return _attend_with_sinks(q, keys, values, mask, sinks)
        if cap is not None:
            return _attend_capped(q, keys, values, mask, cap)
        return super().attend(index, q, keys, values, mask)

    def _add(self, x: Tensor, half: Tensor, norm: RmsNorm | None) -> Tensor:
        """Rows plus what half a block made of them. [n, hidden]"""
        half = half if norm is None else norm(half)
        return x + half * self.config.traits.residual_scale

    def _scaled(self, vectors: Tensor) -> Tensor:
        scale = self.config.traits.embedding_scale
        return vectors if scale == 1 else vectors * torch.tensor(scale, dtype=vectors.dtype)

    def _growth(self, positions: Tensor) -> Tensor:
        """What queries are multiplied with, by their positions. [n]"""
        old = self.config.rope.original_context_tokens
        rounds = torch.div(positions, old, rounding_mode="floor")
        return 1 + self.config.traits.query_growth * torch.log1p(rounds.to(self._scores_dtype))

    def _factors(self, index: int, now: _Pass) -> Tensor:
        traits = self.config.traits
        if index in traits.unturned:
            return now.still
        return now.local if traits.windows and traits.windows[index] else now.turned

    def mask_of(self, index: int, its: SequenceRows, width: int) -> Tensor | None:
        """A layer's mask: rows further back than its window aren't seen.

        Committed rows stand in the columns of their positions, and the rows of a pass behind them:
        those are never further back than any window.
        """
        windows, now = self.config.traits.windows, self._pass
        window = windows[index] if windows else None
        if window is None:
            return its.mask
        assert now is not None  # of `rotations`
        key = (window, its.rows.start)
        if key not in now.masks:
            positions = now.positions[its.rows]
            columns = torch.arange(width, device=positions.device)
            hidden = columns <= (positions - window)[:, None]
            group = self.config.num_heads // self.config.num_kv_heads
            lost = torch.zeros(hidden.shape, dtype=self._scores_dtype, device=hidden.device)
            lost = lost.masked_fill_(hidden, float("-inf")).repeat(group, 1)
            now.masks[key] = lost if its.mask is None else its.mask + lost
        return now.masks[key]

    def _normed(self, weights: TraitsBlock, qkv: Tensor) -> Tensor:
        """Queries and keys normalised, each head on its own or all at once."""
        if weights.q_norm is None or weights.k_norm is None:
            return qkv
        config = self.config
        sizes = [config.num_heads, config.num_kv_heads, config.num_kv_heads]
        q, k, v = torch.split(qkv, [size * config.head_dim for size in sizes], dim=-1)
        parts = [
            norm(part.reshape(-1, len(norm.weight))).view(part.shape)
            for norm, part in ((weights.q_norm, q), (weights.k_norm, k))
        ]
        return torch.cat([*parts, v], dim=-1)

    def _read(self, weights: Weights, index: int) -> TraitsBlock:
        parts, traits = block_parts(self.config, index), self.config.traits
        assert parts.qkv is not None
        assert parts.output is not None
        norms = [
            self.read_norm(weights, f"{parts.prefix}.{name}", self.config.hidden_size)
            for name in norm_names(self.config)
        ]
        first, second, *others = norms
        placed: tuple[RmsNorm | None, RmsNorm | None, RmsNorm | None, RmsNorm | None]
        if traits.norm_places is NormPlaces.BEFORE:
            placed = (first, None, second, None)
        elif traits.norm_places is NormPlaces.BEHIND:
            placed = (None, first, None, second)
        else:
            placed = (first, second, others[0], others[1])
        q_norm, k_norm = self._read_qk_norms(weights, f"{parts.prefix}.self_attn")
        head_scales = None
        if traits.norms_turned and q_norm is not None and k_norm is not None:
            head_scales = self._head_scales(q_norm, k_norm)
            q_norm, k_norm = _without_weight(q_norm), _without_weight(k_norm)
        return TraitsBlock(
            norms=placed,
            q_norm=q_norm,
            k_norm=k_norm,
            head_scales=head_scales,
            sinks=self._read_sinks(weights, parts),
            qkv=weights.linear(parts.qkv),
            output=weights.linear(parts.output),
            mlp=read_mlps(weights, parts, self.config.traits.experts),
        )

    def _read_sinks(self, weights: Weights, parts: BlockParts) -> Tensor | None:
        if not self.config.traits.has_sinks:
            return None
        name = f"{parts.prefix}.self_attn.sinks"
        return weights.named(name, self.config.num_heads).to(self._precision_scores)

    def _read_qk_norms(
        self, weights: Weights, prefix: str
    ) -> tuple[RmsNorm | None, RmsNorm | None]:
        config, traits = self.config, self.config.traits
        if not (traits.qk_norm or traits.wide_qk_norm):
            return None, None
        found = []
        counts = (config.num_heads, config.num_kv_heads)
        for name, heads in zip(qk_norm_names(config), counts, strict=True):
            size = config.head_dim * (heads if traits.wide_qk_norm else 1)
            vector = weights.vector(f"{prefix}.{name}", size) + traits.norm_offset
            found.append(RmsNorm(interleave_rows(vector, *config.head_rows), config.rms_norm_eps))
        return found[0], found[1]

    def _head_scales(self, q_norm: RmsNorm, k_norm: RmsNorm) -> Tensor:
        """Weights of the norms of all heads; values are taken as they are.

        Turning leaves a head as long as it was, so that only the weight must come behind it.
        """
        config, q, k = self.config, q_norm.weight, k_norm.weight
        sizes = (config.num_heads, config.num_kv_heads, config.num_kv_heads)
        heads = [
            weight.expand(size, -1)
            for weight, size in zip((q, k, torch.ones_like(k)), sizes, strict=True)
        ]
        return torch.cat(heads)


def _without_weight(norm: RmsNorm) -> RmsNorm:
    return RmsNorm(torch.ones_like(norm.weight), norm.eps)


def _local(config: ModelConfig) -> ModelConfig:
    """The configuration with the rope of layers with a window."""
    theta = config.traits.local_theta or config.rope.theta
    rope = config.rope if config.traits.scales_local else RopeConfig()
    return replace(config, rope=replace(rope, theta=theta))


def _capped(scores: Tensor, cap: float | None) -> Tensor:
    """Scores within ±cap, smoothly."""
    return scores if cap is None else torch.tanh(scores / cap) * cap


def _attend_with_sinks(
    q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, sinks: Tensor
) -> Tensor:
    """As `attend_by_products`; a part of the weights goes to no row (GPT-OSS, OpenAI 2025)."""
    num_kv, num_rows = len(keys), len(q)
    grouped = by_kv_head(q, num_kv)
    scores = torch.bmm(grouped, keys.transpose(1, 2))
    scores = scores if mask is None else scores + mask
    sink = sinks.to(scores).view(num_kv, -1, 1).repeat_interleave(num_rows, dim=1)
    weights = torch.softmax(torch.cat([scores, sink], dim=-1), dim=-1)[..., :-1]
    return by_row(torch.bmm(weights, values), num_rows)


def _attend_capped(
    q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, cap: float
) -> Tensor:
    """As `attend_by_products`; scores are capped before the mask."""
    grouped = by_kv_head(q, len(keys))
    scores = _capped(torch.bmm(grouped, keys.transpose(1, 2)), cap)
    weights = torch.softmax(scores if mask is None else scores + mask, dim=-1)
    return by_row(torch.bmm(weights, values), len(q))
