"""Hydra heads in memory: each reads the tokens that were drafted before its own.

Head i, counted from 0, reads x = [h; e(root); e(t1); ...; e(ti)]: the target's last hidden state,
the root's vector, and those of the path so far. Its first layer narrows x to the target's width,
R x + r + SiLU(W x + b); every further layer is y + SiLU(W y + b). A projection of its own follows.
So what it drafts differs from path to path. Heads that are trained here have no R: h itself stands
in its place, and one projection serves all.

Source: Hydra (Ankner et al. 2024), section 3; the layers as in the authors' repository,
zankner/Hydra, architecture `mlp`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.heads.medusa import SharedWeights
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import NativeLinear
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.system.native.pool import Workers


class HydraHead(NamedTuple):
    """The layers of one head.

    Attributes:
        first: W above R, as they read the same; or W alone.
        rest: The layers behind it.
        projection: To the vocabulary; maybe one for all heads.
    """

    first: QuantLinear
    rest: tuple[QuantLinear, ...]
    projection: QuantLinear

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """All of them."""
        return (self.first, *self.rest, self.projection)


class HydraHeads:
    """All heads of a target, each evaluated on any number of paths at once.

    Attributes:
        num_heads: How many there are.
        num_columns: From how many tokens they draft.
        nbytes: Bytes of their weights.
        taps: None: they read the target's last state.
        caches: None of their own.
    """

    taps: tuple[int, ...] = ()
    caches: CachePool | None = None

    def __init__(
        self,
        heads: Iterable[HydraHead],
        num_columns: int,
        shared_weights: SharedWeights,
        dtype: torch.dtype,
        token_map: Tensor | None = None,
    ) -> None:
        """Take the heads of a target.

        Args:
            heads: Their layers, where they are to run; taken one by one.
            num_columns: How many outputs of the projections there are, padding included.
            shared_weights: What the target lends them.
            dtype: What they compute in.
            token_map: The token of every column, or None where columns are tokens. int64
        """
        self._heads = tuple(heads)
        self._embedding = shared_weights.embedding
        self._token_map = token_map
        # A projection that serves all heads is there once.
        found = {id(linear): linear for head in self._heads for linear in head.linears}
        linears = list(found.values())
        self._native = [linear for linear in linears if isinstance(linear, NativeLinear)]
        # The compiled step adds in 32 bits whatever the weights are: nothing need be rounded.
        is_native = len(self._native) == len(linears)
        self._dtype = torch.float32 if is_native else dtype
        self.num_heads = len(self._heads)
        self.num_columns = min(num_columns, shared_weights.vocab_size)
        self.nbytes = sum(linear.nbytes for linear in linears)

    def reserve(self, num_rows: int) -> None:
        """They have no caches."""

    def share_workers(self, workers: Workers) -> None:
        """Let the target's threads compute the heads, too."""
        for linear in self._native:
            linear.share_workers(workers)

    def logits(self, hidden: Tensor, paths: Tensor) -> Tensor:
        """Scores of the tokens behind some paths, by the head that is for their length.

        Args:
            hidden: The target's state after its final norm, at the last accepted row. [hidden]
            paths: The root, and the drafts below it. int64, on the CPU. [paths, tokens]

        Returns:
            [paths, num_columns]
        """
        head = self._heads[paths.shape[1] - 1]
        vectors = self._embedding[paths.to(self._embedding.device)]  # [paths, tokens, hidden]
        states = hidden.to(self._dtype).expand(len(paths), -1)
        read = torch.cat((states, vectors.flatten(1).to(states)), dim=1)
        turned, kept = head.first(read), states
        if turned.shape[1] > states.shape[1]:
            turned, kept = turned.chunk(2, dim=1)
        state = kept + F.silu(turned)
        for layer in head.rest:
            state = state + F.silu(layer(state))
        return head.projection(state)[:, : self.num_columns]

    def tokens(self, columns: Tensor) -> Tensor:
        """Return the tokens of some columns."""
        return columns if self._token_map is None else self._token_map.to(columns.device)[columns]
