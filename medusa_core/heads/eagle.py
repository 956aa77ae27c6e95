"""An EAGLE head in memory: one layer that goes on from the target's states, token by token.

Place i of its cache stands for the pair of the target's state at token i and token i + 1: from it
the head makes the state at token i + 1, and from that what may be token i + 2. Behind its own
guesses it goes on from its own states.

Sources: EAGLE (Li et al. 2024a), section 3.1; EAGLE-3 (Li et al. 2025), section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.heads.eagle_parts import EagleParts
from medusa_core.heads.medusa import Lent
from medusa_core.kv.cache import KvCache
from medusa_core.kv.pool import CachePool
from medusa_core.kv.tensor import TensorCache
from medusa_core.models.attention import choose_attention
from medusa_core.models.norm import RmsNorm
from medusa_core.models.precision import Precision
from medusa_core.models.rope import Rope, interleave_rows, rotate
from medusa_core.native.pool import Workers
from medusa_core.quant.linear import QuantLinear
from medusa_core.quant.native_linear import NativeLinear

MakeLinear = Callable[[Tensor, Tensor | None], QuantLinear]
Take = Callable[[str], Tensor | None]


class EagleLinears(NamedTuple):
    """The matrices of a head; those of one input are one."""

    fc: QuantLinear
    qkv: QuantLinear
    output: QuantLinear
    gate_up: QuantLinear
    down: QuantLinear


class EagleHead:
    """See the module.

    Attributes:
        num_heads: One.
        taps: Layers of the target whose entering states it reads.
        num_columns: From how many tokens it drafts.
        reads_final: It reads the target's last state, not `taps`.
    """

    num_heads = 1

    def __init__(
        self,
        parts: EagleParts,
        taps: tuple[int, ...],
        take: Take,
        lent: Lent,
        make: MakeLinear,
        precision: Precision,
    ) -> None:
        """Take the weights.

        Args:
            parts: What the head is made of.
            taps: Layers of the target that it reads.
            take: A part's tensor in the compute dtype on the device; None where there is none.
            lent: What the target lends it.
            make: Makes a layer of a weight and a bias, in the heads' format.
            precision: Where and in which dtype it runs.
        """
        self.taps, self.reads_final = taps, not parts.is_third
        self._parts, self._precision, self._lent = parts, precision, lent
        self._linears = _linears(parts, take, make)
        eps = parts.layer.rms_norm_eps
        norms = ("vector_norm", "state_norm", "mlp_norm", "last_norm", "features_norm")
        each = [f"feature_norm_{index}" for index in range(parts.num_features)]
        self._norms: dict[str, RmsNorm] = {}
        for name in (*norms, *each):
            if (weight := take(name)) is not None:
                self._norms[name] = RmsNorm(weight, eps)
        own = take("lm_head") if parts.num_columns else None
        self._lm_head = None if own is None else make(own, None)
        self.num_columns = parts.num_columns or lent.vocab_size
        offsets = take("token_offsets") if parts.num_columns else None
        self._token_ids = None
        if offsets is not None:
            self._token_ids = offsets + torch.arange(len(offsets), device=offsets.device)
        embedding = take("embedding")
        is_lent = parts.layer.hidden_size == lent.embedding.shape[1] or embedding is None
        self._own_embedding = None if is_lent else embedding
        self._embedding = lent.embedding if embedding is None or is_lent else embedding
        self._rope = Rope(parts.layer, precision.scores, precision.device)
        self._attend = choose_attention(precision.device)
        self._group = parts.layer.num_heads // parts.layer.num_kv_heads
        self.caches: CachePool | None = None

    @property
    def nbytes(self) -> int:
        linears = [*self._linears, *([] if self._lm_head is None else [self._lm_head])]
        held = sum(linear.nbytes for linear in linears)
        held += sum(norm.weight.nbytes + norm.weight.itemsize for norm in self._norms.values())
        return held + (0 if self._own_embedding is None else self._own_embedding.nbytes)

    def share_workers(self, workers: Workers) -> None:
        for linear in (*self._linears, self._lm_head):
            if isinstance(linear, NativeLinear):
                linear.share_workers(workers)

    def reserve(self, num_rows: int) -> None:
        """Reserve room for so many rows of all conversations together.

        Raises:
            OutOfMemoryError: The device has no room.
        """
        precision = self._precision
        self.caches = CachePool(self._parts.layer, precision.cache, precision.device, num_rows)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> KvCache:
        """An empty cache of its own."""
        return TensorCache(self._parts.layer, self._precision, capacity, memory=memory)

    def features(self, states: Tensor, deep: Tensor | None) -> Tensor:
        """What it goes on from behind tokens that the target has read.

        Args:
            states: The target's states behind its final norm. [n, hidden]
            deep: What enters `taps`, side by side. [n, taps · hidden]

        Returns:
            [n, features]
        """
        read = states if self.reads_final else deep
        assert read is not None  # the runner tells of `taps`
        return read.to(self._precision.device, self._precision.compute)

    def entered(self, features: Tensor) -> Tensor:
        """Features as the first step of a draft reads them. [n, features] → [n, hidden]"""
        if self.reads_final:
            return features
        if (norm := self._norms.get("features_norm")) is not None:
            features = norm(features)
        if "feature_norm_0" in self._norms:
            apart = features.chunk(self._parts.num_features, dim=-1)
            normed = [self._norms[f"feature_norm_{i}"](part) for i, part in enumerate(apart)]
            features = torch.cat(normed, dim=-1)
        return self._linears.fc(features)

    def step(
        self,
        read: Tensor,
        token_ids: Sequence[int],
        positions: Sequence[int],
        slots: Sequence[int],
        mask: Tensor | None,
        width: int,
        kv: KvCache,
    ) -> Tensor:
        """Go on by one token from each of some states.

        Args:
            read: `entered` features, or states that came of this. [n, hidden]
            token_ids: The token behind each.
            positions: Place of each in the cache's order.
            slots: Where their keys and values go.
            mask: Which slot each sees: additive [n, width], or None where all are seen.
            width: Slots that are read, from the first on.
            kv: From `new_cache`.

        Returns:
            States. [n, hidden]
        """
        assert isinstance(kv, TensorCache)
        device, linears = self._precision.device, self._linears
        vectors = self._embedding[torch.tensor(token_ids, device=self._embedding.device)]
        vectors = vectors.to(device, self._precision.compute)
        if self._parts.is_third:
            residual, normed = read, self._norms["state_norm"](read)
            residual = normed if self._parts.norms_residual else residual
            x = torch.cat([self._norms["vector_norm"](vectors), normed], dim=-1)
        else:
            x = residual = linears.fc(torch.cat([vectors, read], dim=-1))
        factors = self._rope.rotations(torch.tensor(positions, device=device), kv.capacity + 1)
        turned = rotate(linears.qkv(x), factors)
        num_q = self._parts.layer.num_heads
        kv.reserve_slots(torch.tensor(slots, device=device), width)
        scores = self._precision.scores
        keys, values = (part.to(scores) for part in kv.write(0, turned[:, num_q:]))
        if mask is not None:
            mask = mask.to(scores).repeat(self._group, 1)
        mixed = self._attend(turned[:, :num_q].to(scores), keys, values, mask)
        x = linears.output.plus(mixed.to(x.dtype), residual)
        gate, up = linears.gate_up(self._norms["mlp_norm"](x)).chunk(2, dim=-1)
        x = linears.down.plus(F.silu(gate) * up, x)
        return self._norms["last_norm"](x) if self._parts.feeds_normed else x

    def scores(self, states: Tensor) -> Tensor:
        """Scores of what may follow. [n, hidden] → [n, columns], float32 or better"""
        if self._lm_head is None:
            return self._lent.lm_head(states).to(_wide(self._precision))
        normed = states if self._parts.feeds_normed else self._norms["last_norm"](states)
        return self._lm_head(normed).to(_wide(self._precision))

    def tokens(self, columns: Tensor) -> Tensor:
        """The tokens of some columns."""
        return columns if self._token_ids is None else self._token_ids[columns]


def _linears(parts: EagleParts, take: Take, make: MakeLinear) -> EagleLinears:
    def need(name: str) -> Tensor:
        tensor = take(name)
        assert tensor is not None  # `eagle_parts` has seen to it
        return tensor

    layer = parts.layer
    q, k = (interleave_rows(need(name), *layer.head_rows) for name in ("q", "k"))
    biases = [take(f"{name}_bias") for name in "qkv"]
    bias = None
    if all(one is not None for one in biases):
        turned = [interleave_rows(one, *layer.head_rows) for one in biases[:2] if one is not None]
        bias = torch.cat([*turned, need("v_bias")])
    return EagleLinears(
        fc=make(need("fc"), take("fc_bias")),
        qkv=make(torch.cat([q, k, need("v")]), bias),
        output=make(need("o"), None),
        gate_up=make(torch.cat([need("gate"), need("up")]), None),
        down=make(need("down"), None),
    )


def _wide(precision: Precision) -> torch.dtype:
    return torch.promote_types(precision.compute, torch.float32)
