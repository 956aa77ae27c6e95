"""One answer under way: prefill, then decoding; what they do is reported as events."""

from __future__ import annotations

import time
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial

from medusa_core.engine.admission import admit, admit_logprobs, admit_settings, admit_tools
from medusa_core.engine.answer import AnswerBuffer
from medusa_core.engine.answer_tuning import AnswerTuning
from medusa_core.engine.cache_room import CacheRoom
from medusa_core.engine.checkpoints import checkpoint_positions
from medusa_core.engine.decoding import Decoding
from medusa_core.engine.overflow import Fitted, fit, fit_prompt
from medusa_core.engine.prefill import Prefill
from medusa_core.engine.prefix_cache import PrefixCache
from medusa_core.engine.reporting import Report
from medusa_core.engine.sequence import Step
from medusa_core.engine.session import Session
from medusa_core.engine.transcript import Transcript
from medusa_core.errors import OutOfMemoryError, RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import Event, Generate, GenerateSettings, StopReason
from medusa_core.models.text.detokenizer import Detokenizer
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.tree.step import WalkContext
from medusa_core.speculation.drafters.drafter import DrafterSpec, TellsOffers
from medusa_core.speculation.drafters.grown import reader_of
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import RuleSpec, rule_registry, settled
from medusa_core.speculation.rules.shaping import check_tokens
from medusa_core.speculation.tuning.tuner import Tuner

_MOST_SHARES = 16


class Generation:
    """An answer under way, which a `Scheduler` lets take its steps.

    Attributes:
        request: What was asked for.
        target: Answers.
        prefill: Reads the prompt.
        decoding: Decodes the answer.
        is_done: Nothing is left to do.
        started: When it was, as `time.perf_counter` tells it.
    """

    def __init__(
        self,
        request: Generate,
        target: Target,
        session: Session,
        tuner: Tuner,
        drafter: DrafterSpec | None = None,
        rule: RuleSpec | None = None,
        prefixes: PrefixCache | None = None,
    ) -> None:
        """Check the request and make room for it.

        Args:
            request: What is asked for.
            target: The loaded target.
            session: The conversation it belongs to.
            tuner: Chooses the tree where the settings leave it open, and learns from the answer.
            drafter: The drafter to use; None for the registered one that the settings name.
            rule: The rule to use; None for the registered one that the settings name.
            prefixes: Other conversations, of which one may have rows of the prompt; None for no
                others.

        Raises:
            MedusaError: The request can't be served; the session is as it was.
        """
        self.started = time.perf_counter()
        request, drafter, rule = _admit(request, drafter, rule)
        self.request, self.target = request, target
        self.is_done = False
        self._session = session
        limit = target.config.context_tokens // request.shares
        fitted = _fit(request, target, limit)
        self._transcript = transcript = fitted.transcript
        prompt_ids = transcript.token_ids
        _check(request.settings, drafter, target)
        budget = tuner.budget(request.settings, len(prompt_ids), drafter)
        settings = _settings(request.settings, budget.most, rule, transcript)
        drafting = drafter.build(tuner.target_for(request.settings), budget)
        its_rule = rule.build(settings)
        self._answer = answer = _answer(settings, target, limit - len(prompt_ids))
        longest = len(prompt_ids) + answer.num_left
        self._room = CacheRoom(session, longest, budget.most, request.shares)
        grow = partial(self._room.grow, len(prompt_ids))
        if prefixes is None:
            grow()
        else:
            prefixes.make_room(session, prompt_ids, grow, may_take=not request.is_background)
        self._report = Report(request, target, session, transcript, fitted.cut, answer, settings)
        if request.records and isinstance(drafting, TellsOffers):
            drafting.tell_offers()
        drafting.begin(prompt_ids)
        reader = reader_of(drafting)
        num_read = None if reader is None else reader.resume(prompt_ids, session.memory)
        num_cached = session.reuse(prompt_ids, num_read)
        grow()  # shared rows that aren't reused were part of the room
        context = WalkContext(session.token_ids, len(transcript.prompt_ids), request.records)
        tuning = AnswerTuning(tuner, request.settings, drafter, len(prompt_ids))
        self.decoding = Decoding(session, answer, context, drafting, its_rule, tuning, budget.most)
        checkpoints = _checkpoints(request, target, session, fitted)
        self.prefill = Prefill(prompt_ids, session, self.decoding, reader, num_cached, checkpoints)
        self._compiling = _compiling(request, target)
        self._first_token_s: float | None = None
        self._ending: tuple[Event, ...] = ()

    @property
    def begins_inside(self) -> bool:
        """Whether the prompt opened the reasoning, so that the answer begins within."""
        template = self.target.template
        is_chat = not template.continues_text
        return is_chat and self._transcript.opens_reasoning(template.reasoning)

    @property
    def is_reading(self) -> bool:
        """The next step reads; else it decodes."""
        return not self.is_done and not self.prefill.is_over

    @property
    def is_held(self) -> bool:
        """It waits for its grammar: the prompt is read but for its last token."""
        num_left = len(self.prefill.prompt_ids) - self.prefill.kv.length
        return self._lacks_grammar and num_left <= 1

    def wait_for_grammar(self, most_s: float) -> None:
        """Wait until the grammar is compiled, if there is one, or for so many seconds."""
        if self._compiling is not None:
            wait((self._compiling,), most_s)

    def begin_reading(self, most: int) -> int:
        """Begin to read the next chunk of the prompt: so many tokens at most. Returns how many.

        Raises:
            GrammarError: What the answer must match can't be used, or doesn't go with what is given
                of the answer.
        """
        if self._compiling is not None and self._compiling.done():
            grammar = self._compiling.result()
            grammar.advance(self._transcript.given_ids)
            self.decoding.context = replace(self.decoding.context, grammar=grammar)
            self._compiling = None
        return self.prefill.begin(most, decides=self._compiling is None)

    @property
    def _lacks_grammar(self) -> bool:
        return self._compiling is not None and not self._compiling.done()

    def make_room(self) -> bool:
        """Let the cache grow where the next step needs it; False where other answers have it."""
        if not self.prefill.has_read or not self._room.is_lacking:
            return True
        try:
            self._room.grow(len(self._session.token_ids))
        except OutOfMemoryError:
            return False
        return True

    def preempt(self) -> None:
        """Give the cache to other answers; what is decided is read again once there is room."""
        self._session.preempt()

    def end_for_want_of_room(self) -> None:
        """End the answer, as if the context were used up."""
        self._ending = self._stop(StopReason.CONTEXT)

    def events(self) -> tuple[Event, ...]:
        """What the last step brought; the last event of an answer is `GenerationDone`."""
        if self.is_done:
            return self._ending
        opening, step = self._report.opening(), self.decoding.take_step()
        if step is not None:
            return (*opening, *self._step_events(step))
        if self.prefill.has_read:  # what is read again is nothing new
            return opening
        return (*opening, self._report.progress(len(self.prefill.prompt_ids)))

    def cancel(self) -> tuple[Event, ...]:
        """End the answer as it is; the last event is `GenerationDone`."""
        return self._stop(StopReason.CANCELLED)

    def update_datastore(self) -> None:
        """Let drafts learn from the answer, if the request wants that."""
        learned = self.target.learned
        if learned is not None and self.request.updates_datastore:
            new_ids = self._answer.token_ids[len(self._transcript.given_ids) :]
            learned.learn(self.request.session_id, self.prefill.prompt_ids, new_ids)

    def _step_events(self, step: Step) -> tuple[Event, ...]:
        """Return the events of a step; the first step is prefill's, with the first token."""
        prefill, decoding = self.prefill, self.decoding
        is_first = self._first_token_s is None
        if is_first:
            step = prefill.finish(step)
            self._first_token_s = prefill.ended - self.started
            step_s, num_rows = prefill.seconds, len(prefill.prompt_ids) - prefill.num_cached
        else:
            step_s, num_rows = decoding.finish_step(step), step.proposal.num_rows
        started = time.perf_counter()
        events = self._report.step(step, len(decoding.accept_lengths), num_rows, step_s)
        if step.kept.stop_reason is not None:
            events = (*events, *self._end(step.kept.stop_reason))
        if not is_first:
            decoding.seconds += time.perf_counter() - started  # it belongs to the step
        return events

    def _stop(self, reason: StopReason) -> tuple[Event, ...]:
        """End the answer where no token of it does."""
        self._answer.finish()
        return self._end(reason)

    def _end(self, reason: StopReason) -> tuple[Event, ...]:
        self.is_done = True
        if self._compiling is not None:
            self._compiling.cancel()
        self.decoding.tuning.finish(self._session.token_ids)
        first_token_s = self._first_token_s or 0.0
        return (self._report.done(reason, self.prefill, self.decoding, first_token_s),)


def check_settings(settings: GenerateSettings, target: Target) -> None:
    """See that answers can be decoded so, whatever their prompts are.

    Raises:
        RequestError: A setting is out of range, nothing is registered under a name, or the drafter
            doesn't serve the target.
    """
    admit_settings(settings)
    rule_registry().get(settings.rule)
    _check(settings, drafter_registry().get(settings.drafter), target)


def _admit(
    request: Generate, drafter: DrafterSpec | None, rule: RuleSpec | None
) -> tuple[Generate, DrafterSpec, RuleSpec]:
    """Check a request, and find what its settings name.

    Raises:
        RequestError: A setting is out of range, or nothing is registered under a name.
    """
    admit(request.messages, request.settings)
    admit_tools(request.tools)
    admit_logprobs(request.num_logprobs)
    if not 1 <= request.shares <= _MOST_SHARES:
        raise RequestError(
            f"The context can't be shared by {request.shares} answers.",
            f"Choose 1 to {_MOST_SHARES}.",
        )
    if rule is None:
        request = replace(request, settings=settled(request.settings))
    drafter = drafter or drafter_registry().get(request.settings.drafter)
    return request, drafter, rule or rule_registry().get(request.settings.rule)


def _fit(request: Generate, target: Target, limit: int) -> Fitted:
    """What the target is to read, of at most so many tokens.

    Raises:
        MedusaError: It can't be read.
    """
    if request.prompt_ids:
        return fit_prompt(request.prompt_ids, target, limit)
    keep, settings = request.keep_tokens, request.settings
    return fit(request.messages, keep, target, settings, limit, request.tools)


def _checkpoints(
    request: Generate, target: Target, session: Session, fitted: Fitted
) -> tuple[int, ...]:
    """Where states are saved while the prompt is read; nowhere without states."""
    states = session.kv.states
    if states is None:
        return ()
    return checkpoint_positions(
        fitted.transcript.token_ids,
        fitted.messages,
        target,
        request.settings.thinks,
        request.tools,
        states.max_checkpoints - 1,
    )


def _compiling(request: Generate, target: Target) -> Future[Grammar] | None:
    """What the answer must match, which is compiled while the prompt is read."""
    return target.grammars.compile(request.grammar) if request.grammar else None


def _check(settings: GenerateSettings, drafter: DrafterSpec, target: Target) -> None:
    """See that an answer can be decoded so.

    Raises:
        RequestError: The drafter doesn't serve the target, or a token is none of it.
    """
    if not drafter.can_draft(target):
        raise RequestError(
            f"{target.name} can't use the drafter {drafter.name!r}.", drafter.hint_for(target)
        )
    check_tokens(settings, target.config.vocab_size)


def _settings(
    requested: GenerateSettings, tree_rows: int, rule: RuleSpec, transcript: Transcript
) -> GenerateSettings:
    """Those of an answer: a reroll without chance can't choose the old token again."""
    settings = replace(requested, tree_rows=tree_rows)
    if rule.choice.draws or transcript.next_id is None:
        return settings
    again = (len(transcript.given_ids), transcript.next_id)
    return replace(settings, forbidden=(*settings.forbidden, again))


def _answer(settings: GenerateSettings, target: Target, room: int) -> AnswerBuffer:
    wanted = settings.max_new_tokens
    runs_out = not wanted or room < wanted
    return AnswerBuffer(
        Detokenizer(target.tokenizer),
        target.eos_token_ids,
        settings.stop,
        room if runs_out else wanted,
        StopReason.CONTEXT if runs_out else StopReason.MAX_TOKENS,
        settings.stop_on_repetition,
    )
