"""Medusa heads in training: plain, with one projection for all, or reading the root."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medusa_core.heads.writer import write_heads
from medusa_core.target import Target
from medusa_core.training.accuracy import true_ranks
from medusa_core.training.heads import HeadsForm, HeadsModule, heads_loss, projection_matrix
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.packing import EncodedDocument
from medusa_core.training.positions import Positions, collect
from medusa_core.training.precision import trains_in_bf16
from medusa_core.training.states import Shard

_PROJECTION_SHARE = 0.3  # of the learning rate: they begin as the target's own


class MedusaTrainee:
    """See `Trainee`."""

    has_trees = True

    def __init__(self, target: Target, config: HeadsConfig) -> None:
        """Make heads that have yet to learn anything.

        Args:
            target: The target; it isn't changed.
            config: Which heads.
        """
        form = HeadsForm(
            config.num_heads,
            config.num_layers,
            own_lm_head=config.kind == "medusa",
            reads_root=config.kind == "rooted",
        )
        vectors = target.lent.embedding
        # A state behind the final norm is about as large as a vector of ones.
        size = float(vectors[:4096].float().pow(2).mean().sqrt())
        scale = 1.0 / max(size, 1e-6) if form.reads_root else 1.0
        if not form.reads_root:
            vectors = vectors[:0]
        self.batch = config.batch
        self._bf16 = trains_in_bf16(target.precision.device.type)
        matrix = projection_matrix(target)
        self._heads = HeadsModule(form, matrix, vectors, scale).to(target.precision.device)
        self.row_bytes = 2 * target.config.hidden_size + 8 * (config.num_heads + 3)
        self._target: Target | None = target

    @property
    def module(self) -> HeadsModule:
        return self._heads

    def forget_target(self) -> None:
        """Let the target go: all states are there."""
        self._target = None

    def collect(self, documents: Sequence[EncodedDocument]) -> Shard:
        assert self._target is not None  # until `forget_target`
        some = collect(self._target, documents, self._heads.num_heads)
        return {
            "hidden": some.hidden,
            "roots": some.roots,
            "targets": some.targets,
            "places": some.places,
            "seeds": some.seeds,
        }

    def num_places(self, shard: Shard) -> int:
        return len(shard["roots"])

    def loss(self, shard: Shard, places: Tensor) -> Tensor:
        return heads_loss(self._heads, _positions(shard).at(places), self._bf16)

    def ranks(
        self,
        shard: Shard,
        num_ranks: int,
        token_ids: Tensor | None = None,
        most: int | None = None,
    ) -> Tensor:
        some = _positions(shard)
        some = some if most is None else some.at(torch.arange(min(most, len(some))))
        return true_ranks(self._heads, some, num_ranks, token_ids)

    def parameters(self, learning_rate: float) -> list[dict[str, Any]]:
        groups = [{"params": list(self._heads.blocks.parameters()), "lr": learning_rate}]
        own = list(self._heads.projections.parameters())
        return (
            [*groups, {"params": own, "lr": learning_rate * _PROJECTION_SHARE}] if own else groups
        )

    def write(self, folder: Path, base_model: str, token_ids: Tensor | None) -> str:
        name = self._heads.form.format_name(has_all_tokens=token_ids is None)
        write_heads(self._heads.weights(token_ids), name, folder, base_model)
        return name


def _positions(shard: Shard) -> Positions:
    return Positions(
        shard["hidden"], shard["roots"], shard["targets"], shard["places"], shard["seeds"]
    )
