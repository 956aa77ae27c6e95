"""Tokens per step under a grammar: guesses masked by it, and the rule alone masked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from torch import Tensor

from medusa_core.engine.direct import events_of
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.loading.target import Target
from medusa_core.messages import (
    ChatMessage,
    Generate,
    GenerateSettings,
    GenerationDone,
    Role,
)
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.tree.step import Proposal, RowBudget
from medusa_core.speculation.drafters.drafter import Drafter, DrafterSpec
from medusa_core.speculation.drafters.grown import as_state_reader
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import SourceMemory, UsesTargetCache
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.system.prompts import BenchPrompt


@dataclass(frozen=True, slots=True)
class GrammarGain:
    """Tokens per step of a drafter under a grammar, with drafts masked and unmasked.

    Attributes:
        drafter: Its name.
        num_tokens: Tokens of decoding steps, the same both times.
        masked_steps: Steps that they took with the guesses masked.
        unmasked_steps: Steps with the rule alone masked.
        num_differing: Answers that differ between the two; 0 but for a rule that isn't exact.
    """

    drafter: str
    num_tokens: int
    masked_steps: int
    unmasked_steps: int
    num_differing: int

    @property
    def masked_tau(self) -> float:
        """Tokens per step with masked drafts."""
        return self.num_tokens / max(1, self.masked_steps)

    @property
    def unmasked_tau(self) -> float:
        """Tokens per step with the rule alone masked."""
        return self.num_tokens / max(1, self.unmasked_steps)


def measure_grammar_gain(
    target: Target,
    prompts: Sequence[BenchPrompt],
    settings: GenerateSettings,
    grammar: str,
    on_prompt: Callable[[int, int], None],
) -> GrammarGain:
    """Answer prompts under a grammar, each with masked and with unmasked drafts.

    Args:
        target: The loaded target.
        prompts: Their first turns are asked.
        settings: How to decode; they name the drafter.
        grammar: What all answers must match.
        on_prompt: Called with how many prompts of how many are done.

    Raises:
        MedusaError: A prompt can't be answered.
    """
    spec = drafter_registry().get(settings.drafter)
    unmasked = replace(spec, build=lambda target, budget: _build_unmasked(spec, target, budget))
    num_tokens = masked_steps = unmasked_steps = num_differing = 0
    for number, prompt in enumerate(prompts, start=1):
        done = _answer(target, prompt.turns[0], settings, grammar, spec)
        other = _answer(target, prompt.turns[0], settings, grammar, unmasked)
        masked_steps += done.num_steps
        unmasked_steps += other.num_steps
        num_tokens += sum(done.accept_lengths)
        num_differing += done.token_ids != other.token_ids
        on_prompt(number, len(prompts))
    return GrammarGain(spec.name, num_tokens, masked_steps, unmasked_steps, num_differing)


def grammar_gain_text(gain: GrammarGain) -> str:
    """The figures for people."""
    return (
        f"{gain.drafter}: {gain.masked_tau:.2f} tokens per step with masked guesses, "
        f"{gain.unmasked_tau:.2f} without ({gain.num_tokens} tokens, {gain.num_differing} answers "
        "differ)"
    )


def _answer(
    target: Target, prompt: str, settings: GenerateSettings, grammar: str, drafter: DrafterSpec
) -> GenerationDone:
    messages = (ChatMessage(Role.USER, prompt),)
    request = Generate("bench", "bench", messages, settings, grammar=grammar)
    with closing(Session(target)) as session:
        generation = start_generation(request, target, session, RowPolicy(target), drafter)
        *_, done = events_of(generation)
    assert isinstance(done, GenerationDone)  # the last event of an answer
    return done


def _build_unmasked(spec: DrafterSpec, target: Target, budget: RowBudget) -> Drafter:
    return _Unmasked(spec.build(target, budget))


class _Unmasked:
    """A drafter that doesn't know the grammar."""

    def __init__(self, drafter: Drafter) -> None:
        self._drafter, self._reader = drafter, as_state_reader(drafter)

    def begin(self, token_ids: Sequence[int]) -> None:
        self._drafter.begin(token_ids)

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        return len(token_ids) if self._reader is None else self._reader.resume(token_ids, memory)

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        if self._reader is not None:
            self._reader.read(place, states, deep)

    def attach_cache(self, kv: KvCache) -> None:
        if isinstance(self._drafter, UsesTargetCache):
            self._drafter.attach_cache(kv)

    def propose(self, root_id: int, max_rows: int, grammar: Grammar | None = None) -> Proposal:
        return self._drafter.propose(root_id, max_rows)

    def observe(self, observation: Observation) -> None:
        self._drafter.observe(observation)

    def truncate(self, length: int) -> None:
        self._drafter.truncate(length)
