"""Interface of heads in training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from medusa_core.loading.target import Target
from medusa_core.training.documents import EncodedDocument
from medusa_core.training.positions import computed
from medusa_core.training.states import Shard


class Trainee(Protocol):
    """Heads in training.

    Attributes:
        row_bytes: Bytes per token in a shard, about.
        context: Maximum tokens of a text.
        state_width: Width of the target's states in a shard.
        batch: Samples per step.
        has_trees: Whether trees are chosen after training; otherwise they grow in every step.
    """

    context: int
    row_bytes: int
    state_width: int
    batch: int
    has_trees: bool

    @property
    def module(self) -> nn.Module:
        """Module that is trained."""

    def shard_of(self, documents: Sequence[EncodedDocument], states: Iterable[Tensor]) -> Shard:
        """Return training data of documents, given the target's states.

        Args:
            documents: Documents with answers.
            states: States of each, of all but the last two tokens at least. [n, `state_width` or
                more]
        """

    def num_samples(self, shard: Shard) -> int:
        """Return the number of samples of a shard."""

    def loss(self, shard: Shard, places: Tensor) -> Tensor:
        """Return the loss at some samples of a shard, in nats."""

    def ranks(self, shard: Shard, num_ranks: int, most: int | None = None) -> Tensor:
        """Return the rank at which each depth held the true later token, at about `most` samples.

        See `accuracy.true_ranks`.
        """

    def parameters(self, learning_rate: float) -> list[dict[str, Any]]:
        """Return parameter groups with their learning rates for an optimizer."""

    def write(self, folder: Path, base_model: str) -> str:
        """Write the trained heads in a published format; return its name."""


def collected(trainee: Trainee, target: Target, documents: Sequence[EncodedDocument]) -> Shard:
    """Return `Trainee.shard_of` with states that the target computes now."""
    return trainee.shard_of(documents, computed(target, documents, trainee.context))
