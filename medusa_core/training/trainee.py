"""What a kind of heads is to the run that trains it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from medusa_core.training.packing import EncodedDocument
from medusa_core.training.states import Shard


class Trainee(Protocol):
    """Heads in training.

    Attributes:
        row_bytes: Bytes that a token takes in a shard, about.
        batch: Places of a step.
        has_trees: Its trees are chosen once; else they grow in every step.
    """

    row_bytes: int
    batch: int
    has_trees: bool

    @property
    def module(self) -> nn.Module:
        """What learns."""

    def collect(self, documents: Sequence[EncodedDocument]) -> Shard:
        """What the target makes of some documents; asked as long as the target is loaded."""

    def forget_target(self) -> None:
        """Let the target go: all that it has to say is there."""

    def num_places(self, shard: Shard) -> int:
        """How many places a shard has to learn from."""

    def loss(self, shard: Shard, places: Tensor) -> Tensor:
        """The loss at some places of a shard, in nats."""

    def ranks(
        self,
        shard: Shard,
        num_ranks: int,
        token_ids: Tensor | None = None,
        most: int | None = None,
    ) -> Tensor:
        """At which rank each depth held the true later token, at about `most` places.

        See `accuracy.true_ranks`.
        """

    def parameters(self, learning_rate: float) -> list[dict[str, Any]]:
        """Groups of parameters with their learning rates, as optimizers take them."""

    def write(self, folder: Path, base_model: str, token_ids: Tensor | None) -> str:
        """Write what was learned in a published format; returns the format's name."""
