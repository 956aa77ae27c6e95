"""What a kind of heads is to the run that trains it."""

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
        row_bytes: Bytes that a token takes in a shard, about.
        context: The longest text, in tokens.
        state_width: Numbers of a target's state that a shard is made of.
        batch: Places of a step.
        has_trees: Its trees are chosen once; else they grow in every step.
    """

    context: int
    row_bytes: int
    state_width: int
    batch: int
    has_trees: bool

    @property
    def module(self) -> nn.Module:
        """What learns."""

    def shard_of(self, documents: Sequence[EncodedDocument], states: Iterable[Tensor]) -> Shard:
        """What heads learn from in some documents, by the target's states over them.

        Args:
            documents: With answers.
            states: Of each, of all tokens but the last two at least. [n, `state_width` or more]
        """

    def num_places(self, shard: Shard) -> int:
        """How many places a shard has to learn from."""

    def loss(self, shard: Shard, places: Tensor) -> Tensor:
        """The loss at some places of a shard, in nats."""

    def ranks(self, shard: Shard, num_ranks: int, most: int | None = None) -> Tensor:
        """At which rank each depth held the true later token, at about `most` places.

        See `accuracy.true_ranks`.
        """

    def parameters(self, learning_rate: float) -> list[dict[str, Any]]:
        """Groups of parameters with their learning rates, as optimizers take them."""

    def write(self, folder: Path, base_model: str) -> str:
        """Write what was learned in a published format; returns the format's name."""


def collected(trainee: Trainee, target: Target, documents: Sequence[EncodedDocument]) -> Shard:
    """As `Trainee.shard_of`, of states that the target computes now."""
    return trainee.shard_of(documents, computed(target, documents, trainee.context))
