"""Traces made by hand, without an engine."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from medusa_core.messages import (
    TARGET,
    GenerateSettings,
    GenerationDone,
    Odds,
    StepTimes,
    StepTrace,
    StopReason,
    TokenSource,
)

WORDS = (b" the", b" cat", b" sat", b" on", b" a", b" mat", b"\n", b"\xf0\x9f")
# 0 ─ 1 ─ 3 ─ 5
#   │   └ 4
#   └ 2
PARENTS = (-1, 0, 0, 1, 1, 3)
RANKS = (-1, 0, 1, 0, 1, 0)
HEADS = (0, 1, 1, 2, 2, 3)


def trace(number: int = 1, path: Sequence[int] = (0, 1, 3), *, num_kept: int = 0) -> StepTrace:
    """A step over the tree above; its tokens are the nodes' indices, 7 is the bonus."""
    if number == 0:
        parents, ranks, sources = (-1,), (-1,), (TARGET,)
        path = (0,)
    else:
        parents, ranks = PARENTS, RANKS
        sources = (TARGET, *(TokenSource("medusa", head) for head in HEADS[1:]))
    choices = (*path[1:], 7)
    others = tuple(range(5)) * len(path)
    judged = array("f", [0.5] * len(path) + [0.125] * len(others))
    return StepTrace(
        "s",
        "r",
        number,
        9 + 3 * number,
        tuple(range(len(parents))),
        parents,
        ranks,
        sources,
        tuple(path),
        choices,
        dict(enumerate(WORDS)),
        Odds(array("f", [0.25]).tobytes(), (0,) * (len(parents) - 1)),
        judged.tobytes() + array("i", others).tobytes(),
        ((),) * len(path),
        num_kept or len(path),
        StepTimes(1e-5, 2e-4, 2e-5, 1e-6),
        2.5e-4,
    )


def done_after(steps: Sequence[StepTrace]) -> GenerationDone:
    """The end of an answer of these steps."""
    ids = tuple(i for step in steps for i in step.choice_ids[: step.num_kept])
    lengths = tuple(step.num_kept for step in steps if step.step)
    return GenerationDone(
        "s", "r", "text", ids, StopReason.EOS, 9, 0, 0, len(lengths), lengths, 0.1, 0.1,
        2.5e-4 * len(lengths), 0, GenerateSettings(),
    )  # fmt: skip
