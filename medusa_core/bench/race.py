"""Let contestants answer the same prompts in turns."""

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
    """A prompt and a contestant's result of each turn."""

    prompt: BenchPrompt
    answers: tuple[TurnResult, ...]

    @property
    def token_ids(self) -> tuple[tuple[int, ...], ...]:
        """Tokens of every answer."""
        return tuple(answer.token_ids for answer in self.answers)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over conversations.

    Attributes:
        num_steps: Decoding steps.
        num_tokens: Tokens of these steps.
        decode_s: Seconds of these steps.
    """

    num_steps: int
    num_tokens: int
    decode_s: float

    @classmethod
    def of(cls, conversations: Iterable[RaceConversation]) -> Totals:
        """Sums over the answers of some conversations."""
        answers = [answer for conversation in conversations for answer in conversation.answers]
        return cls(
            sum(len(answer.accept_lengths) for answer in answers),
            sum(sum(answer.accept_lengths) for answer in answers),
            sum(answer.decode_s for answer in answers),
        )

    @property
    def mean_acceptance_length(self) -> float:
        """Tokens per decoding step; 0 without one."""
        return self.num_tokens / self.num_steps if self.num_steps else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second of decoding."""
        return self.num_tokens / self.decode_s if self.decode_s else 0.0


@dataclass(frozen=True, slots=True)
class RaceResult:
    """The answers of all contestants.

    Attributes:
        results: For each contestant one list per repeat, in the order of the prompts that fit.
        num_skipped: Prompts that are too long for the context.
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
        contestants: Contestants by name; a prompt that is too long for one is skipped for all.
        prompts: The prompts.
        repeats: Number of runs over all prompts.
        on_prompt: Called with the number of prompts that are done, and of all.
    """
    fitting = _warm_up(contestants, prompts)
    with _garbage_frozen():
        return _race(contestants, fitting, repeats, on_prompt)


@contextmanager
def _garbage_frozen() -> Iterator[None]:
    """Keep loaded models out of garbage collections, whose time a contestant would pay."""
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
    """Run all repeats over prompts that were warmed up."""
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
    """Ask the shortest prompt untimed: the first call chooses kernels and allocates memory."""
    shortest = min(prompts, key=lambda prompt: len(prompt.turns[0]))
    _ask_all(contestants, BenchPrompt(shortest.prompt_id, shortest.category, shortest.turns[:1]), 0)
    return prompts


def _ask_all(
    contestants: Mapping[str, Contestant], prompt: BenchPrompt, repeat: int
) -> dict[str, RaceConversation] | None:
    """Return each contestant's conversation, or None if a turn is too long for the context."""
    names = list(contestants)
    # A peer evicts the weights of the next contestant from the processor's cache, so the order is
    # random; the seed makes it the same in every race.
    random.Random(f"{prompt.prompt_id} {repeat}").shuffle(names)
    conversations = {}
    for name in names:
        answers = _converse(contestants[name], prompt)
        if answers is None:
            return None
        conversations[name] = RaceConversation(prompt, answers)
    return conversations


def _converse(contestant: Contestant, prompt: BenchPrompt) -> tuple[TurnResult, ...] | None:
    """Answer all turns of a prompt; None if one is too long for the context."""
    messages: list[ChatMessage] = []
    answers: list[TurnResult] = []
    with contestant.conversation():
        for text in prompt.turns:
            messages.append(ChatMessage(Role.USER, text))
            try:
                answer = contestant.answer(messages)
            except RequestError as error:
                log.info("skipped %s: %s", prompt.prompt_id, error.message)
                return None
            answers.append(answer)
            messages.append(ChatMessage(Role.ASSISTANT, answer.text, answer.token_ids))
    return tuple(answers)
