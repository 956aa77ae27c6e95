"""Kinds of heads that can be trained, with their texts for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class TrainedKind(NamedTuple):
    """A kind of heads.

    Attributes:
        name: Name in a run's configuration.
        card: Name in the model card of trained heads.
        label: Name in lists; empty for kinds that only the command line offers.
        gist: A few words about cost and benefit, after the label.
        explanation: How they draft, in one sentence.
        vocabulary: Default number of frequent tokens to draft from; 0 for the whole vocabulary,
            as in other programs' heads.
        learns_jointly: Whether a LoRA of the model can be trained together with them.
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
        "Hydra heads: each reads the draft tokens before its own (this program's layout)",
        "Hydra",
        "small, quick to train",
        "Each head reads the draft tokens before its own, so that they fit together.",
        vocabulary=8192,
    ),
    TrainedKind(
        "medusa-shared",
        "Medusa heads that share the model's projection (format v2)",
        "Medusa, shared projection",
        "smallest, quickest to train",
        "Each head drafts without knowing the others' draft tokens, by the model's own projection.",
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
        "a little larger, drafts better",
        "Each head reads the last token, too; only this program runs them.",
        vocabulary=8192,
    ),
    TrainedKind(
        "eagle",
        "an EAGLE-3 head",
        "EAGLE-3",
        "a layer, takes longest",
        "One layer drafts token by token: the slowest to train and to run.",
        vocabulary=32_000,
        learns_jointly=False,
    ),
    TrainedKind(
        "dspark",
        "a DSpark drafter",
        "DSpark",
        "one pass for a whole block",
        "One pass drafts several tokens with a confidence; faster to run than EAGLE-3.",
        vocabulary=8192,
        learns_jointly=False,
    ),
    TrainedKind("streams", "speculative streams (this program's format)", learns_jointly=False),
)

# By name, in the order of lists.
TRAINED_KINDS: Mapping[str, TrainedKind] = {kind.name: kind for kind in _KINDS}
