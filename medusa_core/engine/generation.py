"""One answer in progress: prefill, then decoding, reported as events."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace

from medusa_core.engine.answer import AnswerBuffer
from medusa_core.engine.decoding import Decoding
from medusa_core.engine.prefill import Prefill
from medusa_core.engine.reporting import Report
from medusa_core.engine.sequence import Step
from medusa_core.engine.session import CacheReservation, Session
from medusa_core.engine.transcript import Transcript
from medusa_core.errors import GrammarError, OutOfMemoryError
from medusa_core.loading.target import Target
from medusa_core.messages import Event, Generate, StopReason
from medusa_core.models.text.grammar import Grammar

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Generation:
    """An answer in progress, whose steps a `Scheduler` runs; `start_generation` makes it.

    Attributes:
        request: The request.
        target: The target.
        session: The conversation, with its cached rows.
        transcript: The tokenized prompt.
        answer: The answer's tokens and text so far.
        reservation: Grows the cache with the answer.
        prefill: Prefills the prompt.
        decoding: Decodes the answer.
        report: Makes events.
        grammar: The answer's grammar until it is compiled; None afterwards, or without one.
        started: `time.perf_counter()` at the request's start.
        is_done: Whether the answer has ended.
    """

    request: Generate
    target: Target
    session: Session
    transcript: Transcript
    answer: AnswerBuffer
    reservation: CacheReservation
    prefill: Prefill
    decoding: Decoding
    report: Report
    grammar: Future[Grammar] | None
    started: float
    is_done: bool = field(default=False, init=False)
    _first_token_s: float | None = field(default=None, init=False)
    _ending: tuple[Event, ...] = field(default=(), init=False)

    @property
    def begins_inside(self) -> bool:
        """Whether the prompt ends with the start tag of the reasoning."""
        template = self.target.template
        is_chat = not template.continues_text
        return is_chat and self.transcript.opens_reasoning(template.reasoning)

    @property
    def is_prefilling(self) -> bool:
        """Whether the next step prefills; else it decodes."""
        return not self.is_done and not self.prefill.is_over

    @property
    def awaits_grammar(self) -> bool:
        """Whether it waits for its grammar, with all of the prompt but its last token prefilled."""
        num_left = len(self.prefill.prompt_ids) - self.prefill.kv.length
        return self._lacks_grammar and num_left <= 1

    @property
    def _lacks_grammar(self) -> bool:
        """Whether the grammar is still being compiled."""
        return self.grammar is not None and not self.grammar.done()

    def wait_for_grammar(self, timeout_s: float) -> None:
        """Wait until the grammar is compiled, if there is one."""
        if self.grammar is not None:
            wait((self.grammar,), timeout_s)

    def begin_chunk(self, max_tokens: int) -> int:
        """Prepare the next chunk of the prompt. Returns its number of tokens.

        Raises:
            GrammarError: The required grammar can't be used, or the given part of the answer
                violates it.
        """
        if self.grammar is not None and self.grammar.done():
            self._use_grammar(self.grammar)
            self.grammar = None
        return self.prefill.begin(max_tokens, decides=self.grammar is None)

    def _use_grammar(self, compiled: Future[Grammar]) -> None:
        """Decode by a grammar.

        Raises:
            GrammarError: It can't be used, and is required.
        """
        try:
            grammar = compiled.result()
            grammar.advance(self.transcript.given_ids)
        except GrammarError:
            if self.request.requires_grammar:
                raise
            log.info("an answer is decoded without its grammar, which can't be used")
        else:
            self.decoding.context = replace(self.decoding.context, grammar=grammar)

    def make_room(self) -> bool:
        """Grow the cache if the next step needs it; False if other answers hold the memory."""
        if not self.prefill.has_read or not self.reservation.is_exhausted:
            return True
        try:
            self.reservation.grow(len(self.session.token_ids))
        except OutOfMemoryError:
            return False
        return True

    def preempt(self) -> None:
        """Release the cache; decided tokens are prefilled again once there is room."""
        self.session.preempt()

    def end_without_room(self) -> None:
        """End the answer as if the context were full."""
        self._ending = self._stop(StopReason.CONTEXT)

    def events(self) -> tuple[Event, ...]:
        """The events of the last step; the last event of an answer is `GenerationDone`."""
        if self.is_done:
            return self._ending
        opening, step = self.report.opening(), self.decoding.take_step()
        if step is not None:
            return (*opening, *self._step_events(step))
        if self.prefill.has_read:  # prefill after a preemption isn't reported
            return opening
        return (*opening, self.report.progress(len(self.prefill.prompt_ids)))

    def cancel(self) -> tuple[Event, ...]:
        """End the answer as it is; the last event is `GenerationDone`."""
        return self._stop(StopReason.CANCELLED)

    def update_datastore(self) -> None:
        """Add the answer to the text in which drafts are looked up, if the request allows that."""
        learned = self.target.learned
        if learned is not None and self.request.updates_datastore:
            new_ids = self.answer.token_ids[len(self.transcript.given_ids) :]
            learned.learn(self.request.session_id, self.prefill.prompt_ids, new_ids)

    def _step_events(self, step: Step) -> tuple[Event, ...]:
        """The events of a step; the first step is prefill's, with the first token."""
        prefill, decoding = self.prefill, self.decoding
        is_first = self._first_token_s is None
        if is_first:
            step = prefill.finish(step)
            self._first_token_s = prefill.ended - self.started
            step_s, num_rows = prefill.seconds, len(prefill.prompt_ids) - prefill.num_cached
        else:
            step_s, num_rows = decoding.finish_step(step), step.proposal.num_rows
        started = time.perf_counter()
        events = self.report.step(step, len(decoding.accept_lengths), num_rows, step_s)
        if step.kept.stop_reason is not None:
            events = (*events, *self._end(step.kept.stop_reason))
        if not is_first:
            decoding.seconds += time.perf_counter() - started  # reporting is part of the step
        return events

    def _stop(self, reason: StopReason) -> tuple[Event, ...]:
        """End the answer although no token ends it."""
        self.answer.finish()
        return self._end(reason)

    def _end(self, reason: StopReason) -> tuple[Event, ...]:
        """End the answer and return its last event."""
        self.is_done = True
        if self.grammar is not None:
            self.grammar.cancel()
        self.decoding.tuning.finish(self.session.token_ids)
        first_token_s = self._first_token_s or 0.0
        return (self.report.done(reason, self.prefill, self.decoding, first_token_s),)
