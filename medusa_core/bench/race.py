"""Letting contestants answer the same prompts in turns."""

from __future__ import annotations

import gc
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from medusa_core.bench.contestant import Contestant, TurnResult
from medusa_core.errors import RequestError
from medusa_core.messages import ChatMessage, Role
from medusa_core.system.prompts import BenchPrompt

log = logging.getLogger(__name__)

OnRacePrompt = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RaceConversation:
    """One prompt led by one contestant.

    Attributes:
        prompt: What was asked.
        turns: One result per turn.
    """

    prompt: BenchPrompt
    turns: tuple[TurnResult, ...]

    @property
    def token_ids(self) -> tuple[tuple[int, ...], ...]:
        """Tokens of every answer."""
        return tuple(turn.token_ids for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over conversations.

    Attributes:
        num_steps: Decoding steps.
        num_tokens: Tokens that they gave.
        decode_s: Seconds that they took.
    """

    num_steps: int
    num_tokens: int
    decode_s: float

    @classmethod
    def of(cls, conversations: Iterable[RaceConversation]) -> Totals:
        """Add up."""
        turns = [turn for conversation in conversations for turn in conversation.turns]
        return cls(
            sum(len(turn.accept_lengths) for turn in turns),
            sum(sum(turn.accept_lengths) for turn in turns),
            sum(turn.decode_s for turn in turns),
        )

    @property
    def mean_acceptance_length(self) -> float:
        """Tokens per decoding step; 0 without one."""
        return self.num_tokens / self.num_steps if self.num_steps else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Tokens of decoding steps per second of them."""
        return self.num_tokens / self.decode_s if self.decode_s else 0.0


@dataclass(frozen=True, slots=True)
class RaceResult:
    """The answers of all contestants.

    Attributes:
        results: Per contestant one list per repeat, in the order of the prompts that fit.
        num_skipped: Prompts too long for the context.
    """

    results: Mapping[str, Sequence[Sequence[RaceConversation]]]
    num_skipped: int


def run_race(
    contestants: Mapping[str, Contestant],
    prompts: Sequence[BenchPrompt],
    repeats: int,
    on_prompt: OnRacePrompt,
) -> RaceResult:
    """Let all contestants answer all prompts, prompt by prompt, after one warm-up each.

    Args:
        contestants: By name; the first one's answers decide which prompts fit.
        prompts: What to ask.
        repeats: How often to ask everything.
        on_prompt: Called with how many prompts of how many are done.
    """
    fitting = _warm_up(contestants, prompts)
    with _memory_settled():
        return _race(contestants, fitting, repeats, on_prompt)


@contextmanager
def _memory_settled() -> Iterator[None]:
    """What is loaded stays: whose turn it is shouldn't pay for looking for garbage in it."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _race(
    contestants: Mapping[str, Contestant],
    prompts: Sequence[BenchPrompt],
    repeats: int,
    on_prompt: OnRacePrompt,
) -> RaceResult:
    results: dict[str, list[list[RaceConversation]]] = {name: [] for name in contestants}
    skipped: set[str] = set()
    for repeat in range(repeats):
        for per_repeat in results.values():
            per_repeat.append([])
        for done, prompt in enumerate(prompts):
            conversations = _ask_all(contestants, prompt, repeat)
            if conversations is None:
                skipped.add(prompt.prompt_id)
            else:
                for name, conversation in conversations.items():
                    results[name][-1].append(conversation)
            on_prompt(repeat * len(prompts) + done + 1, repeats * len(prompts))
    return RaceResult(results, len(skipped))


def _warm_up(
    contestants: Mapping[str, Contestant], prompts: Sequence[BenchPrompt]
) -> Sequence[BenchPrompt]:
    """Kernels are chosen and memory is taken at the first call: let that not be timed."""
    shortest = min(prompts, key=lambda prompt: len(prompt.turns[0]))
    _ask_all(contestants, BenchPrompt(shortest.prompt_id, shortest.category, shortest.turns[:1]), 0)
    return prompts


def _ask_all(
    contestants: Mapping[str, Contestant], prompt: BenchPrompt, repeat: int
) -> dict[str, RaceConversation] | None:
    """Every contestant's conversation, or None if one of its turns is too long for the context."""
    names = list(contestants)
    # Whoever comes behind another program finds its weights gone from the processor's cache; so who
    # comes behind whom is left to chance, which is the same in every race.
    random.Random(f"{prompt.prompt_id} {repeat}").shuffle(names)
    conversations = {}
    for name in names:
        turns = _lead(contestants[name], prompt)
        if turns is None:
            return None
        conversations[name] = RaceConversation(prompt, turns)
    return conversations


def _lead(contestant: Contestant, prompt: BenchPrompt) -> tuple[TurnResult, ...] | None:
    messages: list[ChatMessage] = []
    turns: list[TurnResult] = []
    with contestant.conversation():
        for text in prompt.turns:
            messages.append(ChatMessage(Role.USER, text))
            try:
                turn = contestant.answer(messages)
            except RequestError as error:
                log.info("skipped %s: %s", prompt.prompt_id, error.message)
                return None
            turns.append(turn)
            messages.append(ChatMessage(Role.ASSISTANT, turn.text, turn.token_ids))
    return tuple(turns)
