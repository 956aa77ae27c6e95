"""Training of Medusa heads: plain, with a shared projection, or with the root's embedding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medusa_core.heads.weights import HeadSet
from medusa_core.heads.writer import write_heads
from medusa_core.loading.target import Target
from medusa_core.training.accuracy import BEYOND, true_ranks
from medusa_core.training.documents import EncodedDocument
from medusa_core.training.heads import (
    HeadsModule,
    MedusaSizes,
    heads_loss,
    projection_matrix,
    published,
)
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.positions import Positions, has_answer, positions_of
from medusa_core.training.precision import trains_in_bf16
from medusa_core.training.states import Shard

_PROJECTION_SHARE = 0.3  # factor of the learning rate for projections, which start as the target's


class MedusaTrainee:
    """Medusa heads in training; see `Trainee`."""

    has_trees = True

    def __init__(
        self, target: Target, config: HeadsConfig, token_ids: Tensor | None = None
    ) -> None:
        """Initialize untrained heads.

        Args:
            target: The target, which isn't changed.
            config: Configuration of the run.
            token_ids: Draft vocabulary; None for all tokens.
        """
        form = MedusaSizes(
            config.num_heads,
            config.num_layers,
            own_lm_head=config.kind == "medusa",
            reads_root=config.kind == "rooted",
        )
        table = target.shared_weights.embedding
        vectors, scale = torch.empty(0, table.shape[1], dtype=table.dtype), 1.0
        if form.reads_root:
            vectors = table.matrix()
            # States after the final norm have about the norm of a vector of ones.
            scale = 1.0 / max(float(vectors[:4096].float().pow(2).mean().sqrt()), 1e-6)
        self.batch = config.batch
        self._bf16 = trains_in_bf16(target.precision.device.type)
        matrix = projection_matrix(target)
        self._token_ids, self._columns = token_ids, None
        if token_ids is not None:
            matrix = matrix[token_ids.to(matrix.device)]
            self._columns = torch.full((target.config.vocab_size,), BEYOND)
            self._columns[token_ids] = torch.arange(len(token_ids))
        self.context = target.config.context_tokens
        self.module = HeadsModule(form, matrix, vectors, scale).to(target.precision.device)
        self.state_width = target.config.hidden_size
        self.row_bytes = 2 * target.config.hidden_size + 8 * (config.num_heads + 3)

    def shard_of(self, documents: Sequence[EncodedDocument], states: Iterable[Tensor]) -> Shard:
        """Return the states at positions in answers, with the columns of later tokens."""
        pairs = [pair for pair in zip(documents, states, strict=True) if has_answer(pair[0])]
        found, known = [document for document, _ in pairs], (own for _, own in pairs)
        some = positions_of(found, known, self.module.num_heads, self.context)
        targets = some.targets
        if self._columns is not None:
            columns = self._columns[targets.clamp(min=0)]
            targets = torch.where(targets < 0, targets, columns)
        return {
            "hidden": some.hidden[:, : self.state_width],
            "roots": some.roots,
            "targets": targets,
            "places": some.places,
            "seeds": some.seeds,
        }

    def num_samples(self, shard: Shard) -> int:
        """Return the number of positions."""
        return len(shard["roots"])

    def loss(self, shard: Shard, places: Tensor) -> Tensor:
        """Return the discounted sum of the heads' cross-entropies."""
        return heads_loss(self.module, _positions(shard).at(places), self._bf16)

    def ranks(self, shard: Shard, num_ranks: int, most: int | None = None) -> Tensor:
        """Return the rank at which each head held the true later token."""
        some = _positions(shard)
        some = some if most is None else some.at(torch.arange(min(most, len(some))))
        return true_ranks(self.module, some, num_ranks)

    def parameters(self, learning_rate: float) -> list[dict[str, Any]]:
        """Return parameter groups; own projections learn more slowly."""
        groups = [{"params": list(self.module.blocks.parameters()), "lr": learning_rate}]
        own = list(self.module.projections.parameters())
        return (
            [*groups, {"params": own, "lr": learning_rate * _PROJECTION_SHARE}] if own else groups
        )

    def write(self, folder: Path, base_model: str) -> str:
        """Write the heads in the format that fits their sizes; return its name."""
        heads, token_ids = self.module.weights(), self._token_ids
        if token_ids is not None:
            own = len(self.module.projections) > 0
            shared = None if own else published(self.module.lm_head)
            heads = HeadSet(heads.heads, token_ids, shared)
        name = self.module.form.format_name(has_all_tokens=token_ids is None)
        write_heads(heads, name, folder, base_model)
        return name


def _positions(shard: Shard) -> Positions:
    """Return a shard's tensors as positions."""
    return Positions(
        shard["hidden"], shard["roots"], shard["targets"], shard["places"], shard["seeds"]
    )
