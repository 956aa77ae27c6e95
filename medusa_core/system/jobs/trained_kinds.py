"""The kinds of heads that can be trained here, and what people read of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class TrainedKind(NamedTuple):
    """A kind of heads.

    Attributes:
        name: As a run's configuration has it.
        card: What the page beside trained heads calls them.
        label: What a list shows; empty where only the command line offers them.
        explanation: What is good and bad about them, in one sentence.
        vocabulary: From how many of the most frequent tokens they draft if nothing is said; 0 for
            all, as other programs' heads do.
        learns_jointly: The model can learn with them.
    """

    name: str
    card: str
    label: str = ""
    explanation: str = ""
    vocabulary: int = 0
    learns_jointly: bool = True


_KINDS = (
    TrainedKind(
        "hydra",
        "Hydra heads: each reads the guesses before its own (this program's layout)",
        "Hydra",
        "Each head reads the guesses before its own; small and quick to train.",
        vocabulary=8192,
    ),
    TrainedKind(
        "medusa-shared",
        "Medusa heads that share the model's projection (format v2)",
        "Medusa, shared projection",
        "Small and quick to train; they use the model's own projection.",
    ),
    TrainedKind(
        "medusa",
        "Medusa heads, each with a projection of its own (format v0.1)",
        "Medusa, plain",
        "Large; other programs run them, too.",
    ),
    TrainedKind(
        "rooted",
        "Medusa heads that read the root's vector, too (this program's format)",
        "Medusa, reading the last token",
        "They guess better; only this program runs them.",
        vocabulary=8192,
    ),
    TrainedKind(
        "eagle",
        "an EAGLE-3 head",
        "EAGLE-3",
        "Guesses best, and takes longest to train and to ask.",
        vocabulary=32_000,
        learns_jointly=False,
    ),
    TrainedKind(
        "dspark",
        "a DSpark drafter",
        "DSpark",
        "Drafts a block of guesses in one pass; quicker to train and to ask than EAGLE-3.",
        vocabulary=8192,
        learns_jointly=False,
    ),
    TrainedKind("streams", "speculative streams (this program's format)", learns_jointly=False),
)

# By their names, in the order of lists.
TRAINED_KINDS: Mapping[str, TrainedKind] = {kind.name: kind for kind in _KINDS}
