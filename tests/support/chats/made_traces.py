"""Traces made by hand, without an engine."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from medusa_core.messages import (
    TARGET,
    GenerationDone,
    Odds,
    StepTimes,
    StepTrace,
    TokenSource,
)
from tests.support.messages import DONE

WORDS = (b" the", b" cat", b" sat", b" on", b" a", b" mat", b"\n", b"\xf0\x9f")
# 0 ─ 1 ─ 3 ─ 5
#   │   └ 4
#   └ 2
PARENTS = (-1, 0, 0, 1, 1, 3)
RANKS = (-1, 0, 1, 0, 1, 0)
HEADS = (0, 1, 1, 2, 2, 3)


def judged_trace(path: tuple[int, ...], others: tuple[int, ...], **fields: Any) -> StepTrace:
    """Return a trace whose drafts have a quarter and whose chosen tokens half of the probability.

    Args:
        path: As in `StepTrace`.
        others: Tokens that the target could have chosen instead, at each node of the path.
        fields: The rest of `StepTrace`, but for what follows from these.
    """
    ids = others * len(path)
    judged = array("f", [0.5] * len(path) + [0.125] * len(ids))
    return StepTrace(
        path=path,
        odds=Odds(array("f", [0.25]).tobytes(), (0,) * (len(fields["parents"]) - 1)),
        judged=judged.tobytes() + array("i", ids).tobytes(),
        numbers=((),) * len(path),
        **fields,
    )


def trace(number: int = 1, path: Sequence[int] = (0, 1, 3), *, num_appended: int = 0) -> StepTrace:
    """A step over the tree above; its tokens are the nodes' indices, 7 is the bonus."""
    if number == 0:
        parents, ranks, sources = (-1,), (-1,), (TARGET,)
        path = (0,)
    else:
        parents, ranks = PARENTS, RANKS
        sources = (TARGET, *(TokenSource("medusa", head) for head in HEADS[1:]))
    choices = (*path[1:], 7)
    return judged_trace(
        tuple(path),
        tuple(range(5)),
        session_id="s",
        request_id="r",
        step=number,
        root_place=9 + 3 * number,
        token_ids=tuple(range(len(parents))),
        parents=parents,
        ranks=ranks,
        sources=sources,
        choice_ids=choices,
        pieces=dict(enumerate(WORDS)),
        num_appended=num_appended or len(path),
        times=StepTimes(1e-5, 2e-4, 2e-5, 1e-6),
        step_s=2.5e-4,
    )


def done_after(steps: Sequence[StepTrace]) -> GenerationDone:
    """The end of an answer of these steps."""
    ids = tuple(i for step in steps for i in step.choice_ids[: step.num_appended])
    lengths = tuple(step.num_appended for step in steps if step.step)
    times = {"time_to_first_token_s": 0.1, "prefill_s": 0.1, "decode_s": 2.5e-4 * len(lengths)}
    counts = {"num_prompt_tokens": 9, "num_cached_tokens": 0, "num_steps": len(lengths)}
    changes = {"session_id": "s", "request_id": "r", "token_ids": ids, "accept_lengths": lengths}
    return replace(DONE, **changes, **counts, **times)
