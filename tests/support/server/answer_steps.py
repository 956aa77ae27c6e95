"""Events of an answer, as the engine reports them."""

from dataclasses import replace

from medusa_core.messages import (
    TARGET,
    GenerationDone,
    StepDone,
    StepTimes,
    StopReason,
    TokenSource,
)
from tests.support.messages import EXAMPLES

END_ID = 0
DONE = next(one for one in EXAMPLES if isinstance(one, GenerationDone))


def step(
    number: int, pieces: tuple[bytes, ...], num_visible: int, source: TokenSource = TARGET
) -> StepDone:
    ids = tuple(range(1, len(pieces) + 1))
    sources = (source,) * len(pieces)
    times = StepTimes(0, 0, 0, 0)
    return StepDone("s", "r", number, ids, pieces, sources, num_visible, 1, (TARGET,), times, 0, 1)


def done(text: str, reason: StopReason = StopReason.EOS, num_given: int = 0) -> GenerationDone:
    return replace(DONE, text=text, stop_reason=reason, num_given_tokens=num_given)
