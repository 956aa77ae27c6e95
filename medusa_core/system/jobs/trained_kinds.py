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
        gist: What they cost and bring, in a few words behind it.
        explanation: How they guess, in one sentence.
        vocabulary: From how many of the most frequent tokens they draft if nothing is said; 0 for
            all, as other programs' heads do.
        learns_jointly: The model can learn with them.
    """

    name: str
    card: str
    label: str = ""
    gist: str = ""
    explanation: str = ""
    vocabulary: int = 0
    learns_jointly: bool = True


_KINDS = (
    TrainedKind(
        "hydra",
        "Hydra heads: each reads the guesses before its own (this program's layout)",
        "Hydra",
        "small, quick to train",
        "Each head reads the guesses before its own, so that they fit together.",
        vocabulary=8192,
    ),
    TrainedKind(
        "medusa-shared",
        "Medusa heads that share the model's projection (format v2)",
        "Medusa, shared projection",
        "smallest, quickest to train",
        "Each head guesses without knowing the others' guesses, by the model's own projection.",
    ),
    TrainedKind(
        "medusa",
        "Medusa heads, each with a projection of its own (format v0.1)",
        "Medusa, plain",
        "large, runs in other programs, too",
        "Each head has a projection of its own, which takes most memory of all kinds.",
    ),
    TrainedKind(
        "rooted",
        "Medusa heads that read the root's vector, too (this program's format)",
        "Medusa, reading the last token",
        "a little larger, guesses better",
        "Each head reads the last token, too; only this program runs them.",
        vocabulary=8192,
    ),
    TrainedKind(
        "eagle",
        "an EAGLE-3 head",
        "EAGLE-3",
        "guesses best, takes longest",
        "One layer goes on guess by guess: right most often, slowest to train and to ask.",
        vocabulary=32_000,
        learns_jointly=False,
    ),
    TrainedKind(
        "dspark",
        "a DSpark drafter",
        "DSpark",
        "one pass for a whole block",
        "One pass drafts several guesses and says how sure it is; quicker to ask than EAGLE-3.",
        vocabulary=8192,
        learns_jointly=False,
    ),
    TrainedKind("streams", "speculative streams (this program's format)", learns_jointly=False),
)

# By their names, in the order of lists.
TRAINED_KINDS: Mapping[str, TrainedKind] = {kind.name: kind for kind in _KINDS}
