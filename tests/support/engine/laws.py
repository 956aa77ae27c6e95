"""What must hold of any drafter, rule and cache, as checks that raise AssertionError."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from medusa_core.engine.direct import events_of
from medusa_core.engine.generation import Generation
from medusa_core.engine.scheduler import Scheduler
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.loading.target import Target
from medusa_core.messages import (
    GIVEN,
    TARGET,
    ChatMessage,
    Event,
    Generate,
    GenerateSettings,
    GenerationDone,
    Role,
    StepDone,
)
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import WalkContext
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.rules.rule import RuleSpec
from medusa_core.speculation.tuning.row_policy import RowPolicy


@dataclass(frozen=True, slots=True)
class Run:
    """An answer and the steps that made it.

    Attributes:
        prompt_ids: Tokens of the prompt.
        steps: Prefill's step first.
        done: The end of the answer.
    """

    prompt_ids: tuple[int, ...]
    steps: tuple[StepDone, ...]
    done: GenerationDone

    @property
    def token_ids(self) -> tuple[int, ...]:
        return self.done.token_ids


@dataclass(frozen=True, slots=True)
class Tie:
    """A difference that rounding explains.

    Attributes:
        position: Place of the differing token.
        plain_id: What plain decoding chose.
        drafted_id: What decoding with a drafter chose.
        rounding: Error of a score in this dtype on this context.
    """

    position: int
    plain_id: int
    drafted_id: int
    rounding: float


def user_says(text: str) -> tuple[ChatMessage, ...]:
    """A conversation of one message."""
    return (ChatMessage(Role.USER, text),)


def decode(
    target: Target,
    settings: GenerateSettings,
    messages: tuple[ChatMessage, ...],
    *,
    session: Session | None = None,
    drafter: DrafterSpec | None = None,
    rule: RuleSpec | None = None,
    after_step: Callable[[Session], None] | None = None,
    keep_tokens: int | None = None,
    grammar: str = "",
) -> Run:
    """Decode one answer by the engine's own loop, and look at the session after every step."""
    session = session or Session(target)
    settings = replace(settings, tree_rows=settings.tree_rows or 12)
    request = Generate("session", "request", messages, settings, keep_tokens, grammar=grammar)
    generation = start_generation(request, target, session, RowPolicy(target), drafter, rule)
    steps: list[StepDone] = []
    for event in events_of(generation):
        if isinstance(event, StepDone):
            steps.append(event)
            if after_step is not None:
                after_step(session)
    done = event
    assert isinstance(done, GenerationDone)
    prompt_ids = tuple(session.token_ids[: done.num_prompt_tokens])
    return Run(prompt_ids, tuple(steps), done)


def take_step(generation: Generation) -> tuple[Event, ...]:
    """The events of one step of an answer that nothing runs beside."""
    (turn,) = Scheduler().step([generation])
    if turn.error is not None:
        raise turn.error
    return turn.events


@torch.inference_mode()
def plain_states(target: Target, token_ids: Sequence[int]) -> tuple[Tensor, Tensor]:
    """A fresh prefill: hidden states [n, hidden] and the cache [layers, 2, heads, n, dim]."""
    kv = target.runner.new_cache(len(token_ids))
    hidden = target.runner.extend(token_ids, kv)
    return hidden, kv.committed()


@torch.inference_mode()
def plain_scores(target: Target, token_ids: Sequence[int]) -> Tensor:
    """The target's scores for the token after these, by a fresh prefill. [vocabulary]"""
    return target.runner.logits(plain_states(target, token_ids)[0][-1:])[0]


def check_same_tokens(plain: Run, drafted: Run) -> None:
    """Check laws 1 and 2 exactly."""
    assert drafted.token_ids == plain.token_ids, _first_difference(plain, drafted)
    assert drafted.done.text == plain.done.text
    assert drafted.done.stop_reason == plain.done.stop_reason


def check_same_but_for_ties(
    plain: Run, drafted: Run, target: Target, exact: Target, rule: RuleSpec
) -> Tie | None:
    """Check laws 1 and 2 in lower precision, in which tokens may differ within rounding error.

    Args:
        plain: Decoded without a drafter.
        drafted: Decoded with one.
        target: What both were decoded with.
        exact: The same weights in float64.
        rule: The rule of both.

    Returns:
        The tie at which they part, or None where they are the same.
    """
    if drafted.token_ids == plain.token_ids:
        check_same_tokens(plain, drafted)
        return None
    pairs = zip(plain.token_ids, drafted.token_ids, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    assert at is not None, "one text is the beginning of the other"
    context = [*plain.prompt_ids, *plain.token_ids[:at]]
    scores = plain_scores(exact, context)
    rounding = float((plain_scores(target, context).double() - scores).abs().max())
    ids = (plain.token_ids[at], drafted.token_ids[at])
    walker = rule.build(plain.done.settings)
    tree = TokenTree(TreeShape.root_only(), (context[-1],))
    # Either pass may be off by that much at every score.
    chosen = {
        walker.walk(tree, moved.unsqueeze(0), WalkContext(context, len(plain.prompt_ids))).bonus_id
        for moved in _perturbed(scores, ids, 2 * rounding)
    }
    assert set(ids) <= chosen, (
        f"token {at} is {ids[1]} instead of {ids[0]}, which rounding ({rounding:.2g}) can't explain"
    )
    return Tie(len(context), *ids, rounding)


def _perturbed(scores: Tensor, ids: tuple[int, int], error: float) -> Iterator[Tensor]:
    """Return the logits with one of two tokens favoured by at most `error`."""
    yield scores
    for winner, loser in (ids, ids[::-1]):
        for others in (-error, 0.0, error):
            moved = scores + others
            moved[loser] = scores[loser] - error
            moved[winner] = scores[winner] + error
            yield moved


def check_cache(session: Session, honest: Target, tolerance: float) -> None:
    """Law 3: the cache equals one that never drafted, and holds all decided tokens but the root."""
    assert len(session.token_ids) == session.kv.length + 1
    _, expected = plain_states(honest, session.token_ids[:-1])
    committed = session.kv.committed()
    assert committed.shape == expected.shape
    error = float((committed - expected).abs().max())
    scale = max(1.0, float(expected.abs().max()))
    assert error <= tolerance * scale, f"the cache is off by {error:.2g} (values up to {scale:.2g})"


def check_sources(run: Run) -> None:
    """Check law 5 in the engine: every token names its source and depth, or neither."""
    for step in run.steps:
        assert len(step.token_ids) == len(step.pieces) == len(step.sources)
        for place, source in enumerate(step.sources):
            if source == GIVEN:
                assert step.step == 0
                continue
            is_bonus = place == len(step.sources) - 1 and source.head == 0
            assert is_bonus or source.head == place + 1
            assert (source == TARGET) == (source.head == 0)
    visible = b"".join(b"".join(step.pieces) for step in run.steps)
    assert visible[: run.steps[-1].num_visible_bytes].decode() == run.done.text
    assert tuple(t for step in run.steps for t in step.token_ids) == run.token_ids


def plainly(settings: GenerateSettings) -> GenerateSettings:
    """Return the settings without a drafter."""
    return replace(settings, drafter="none")


def _first_difference(plain: Run, drafted: Run) -> str:
    pairs = zip(plain.token_ids, drafted.token_ids, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), -1)
    return f"the texts part at token {at} of {len(plain.token_ids)}"
