"""One answer under way: prefill in chunks, then decoding steps, one piece of work per call."""

from __future__ import annotations

import time
from dataclasses import replace

import torch
from torch import Tensor

from medusa_core.engine.admission import admit
from medusa_core.engine.answer import Answer, Kept
from medusa_core.engine.loop import Drafted, Step, Verified, draft, settle, verify
from medusa_core.engine.overflow import fit
from medusa_core.engine.recorder import Recorder
from medusa_core.engine.session import Session
from medusa_core.engine.transcript import Transcript
from medusa_core.errors import OutOfMemoryError, RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import (
    GIVEN,
    TARGET,
    ContextCut,
    Event,
    Generate,
    GenerateSettings,
    GenerationDone,
    LayersMoved,
    Progress,
    StepDone,
    StepTimes,
    StopReason,
    TokenSource,
)
from medusa_core.models.text.detokenizer import Detokenizer
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import (
    Proposal,
    Pruner,
    RowBudget,
    WalkContext,
)
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.grown import reader_of
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.rules.rule import (
    Numbers,
    RuleSpec,
    rule_registry,
    settled,
)
from medusa_core.speculation.rules.shaping import check_tokens
from medusa_core.speculation.tuning.baseline import Baseline
from medusa_core.speculation.tuning.costs import (
    ALONE,
    Sharers,
)
from medusa_core.speculation.tuning.learning import (
    Guesses,
    StepYield,
)
from medusa_core.speculation.tuning.tuner import Tuner

_MOST_SHARES = 16
_OPEN_ROOM = 512  # tokens that an answer without a limit asks room for at a time


class Generation:
    """An answer being decoded.

    Attributes:
        request: What was asked for.
        is_done: Nothing is left to do.
    """

    def __init__(
        self,
        request: Generate,
        target: Target,
        session: Session,
        tuner: Tuner,
        drafter: DrafterSpec | None = None,
        rule: RuleSpec | None = None,
    ) -> None:
        """Check the request and make room for it.

        Args:
            request: What is asked for.
            target: The loaded target.
            session: The conversation it belongs to.
            tuner: Chooses the tree where the settings leave it open, and learns from the answer.
            drafter: The drafter to use; None for the registered one that the settings name.
            rule: The rule to use; None for the registered one that the settings name.

        Raises:
            MedusaError: The request can't be served; the session is as it was.
        """
        self._started = time.perf_counter()
        admit(request.messages, request.settings)
        if rule is None:
            request = replace(request, settings=settled(request.settings))
        drafter = drafter or drafter_registry().get(request.settings.drafter)
        rule = rule or rule_registry().get(request.settings.rule)
        self.request = request
        self.is_done = False
        self._target = target
        self._session = session
        _check_shares(request.shares)
        context_tokens = target.config.context_tokens // request.shares
        fitted = fit(
            request.messages, request.keep_tokens, target, request.settings, context_tokens
        )
        self._cut = fitted.cut
        self._transcript = fitted.transcript
        self._read_ids = self._transcript.token_ids
        self._context = WalkContext(
            session.token_ids, len(self._transcript.prompt_ids), request.records
        )
        _check(request.settings, drafter, target)
        budget = tuner.budget(request.settings, len(self._read_ids))
        settings = replace(request.settings, tree_rows=budget.most)
        self._settings = (
            settings if rule.choice.draws else _without_repeat(settings, self._transcript)
        )
        tuned = tuner.target_for(request.settings)
        self._drafter = drafter.build(tuned, budget)
        self._plain = drafter_registry().get("none").build(target, RowBudget(1))
        self._drafts = drafter.drafts
        is_open = request.settings.tree_rows == 0 and drafter.drafts
        self._governor = tuner.governor(request.settings, len(self._read_ids)) if is_open else None
        self._num_rested = 0
        self._drafting = self._drafter
        self._drafted: Drafted | None = None
        self._step_started = 0.0
        self._is_shared = False
        self._tuner = tuner
        self._guesses: list[tuple[int, Guesses]] = []
        self._yields: list[StepYield] = []
        self._baseline = Baseline()
        self._rule = rule.build(self._settings)
        self._answer = _answer(self._settings, target, context_tokens - len(self._read_ids))
        self._given_pieces = self._answer.resume(self._transcript.given_ids)
        self._reader = reader_of(self._drafter)
        self._num_cached = self._prepare()
        self._first_token_s = 0.0
        self._prefill_s = 0.0
        self._decode_s = 0.0
        self._accept_lengths: list[int] = []
        self._tells_numbers = request.records and self._rule.has_numbers
        self._recorder = Recorder(target.tokenizer) if request.records else None

    def _prepare(self) -> int:
        self._most_tokens = len(self._read_ids) + self._answer.num_left
        self._make_room(len(self._read_ids))
        self._drafter.begin(self._read_ids)
        heard = None
        if self._reader is not None:
            heard = self._reader.resume(self._read_ids, self._session.memory)
        return self._session.reuse(self._read_ids, heard)

    @torch.inference_mode()
    def advance(self) -> tuple[Event, ...]:
        """Do one piece of work: a chunk of prefill, or one decoding step.

        Returns:
            The events it caused; the last one of an answer is `GenerationDone`.

        Raises:
            EngineError: The work failed; the session holds what was decided before.
        """
        if self.is_done:
            return ()
        if len(self._session.token_ids) < len(self._read_ids):
            told = self._prefill_chunk()
            return (*self._tell_cut(), *self._tell_moves(), *told)
        if self._lacks_room:
            try:
                self._make_room(len(self._session.token_ids))
            except OutOfMemoryError:  # other answers have it; this one ends as if that were all
                return self._end(StopReason.CONTEXT)
        if not self.is_decoding:
            return self._reread_chunk()
        placed = self.draft()
        (verified,) = verify(self._target.runner, [placed], [self.pruner], self.request.records)
        return self.conclude(verified)

    @property
    def is_reading(self) -> bool:
        """The next piece of work reads a chunk of the prompt, which may share its pass, too."""
        return not self.is_done and len(self._session.token_ids) < len(self._read_ids)

    @property
    def drafts(self) -> bool:
        """Whether its drafter ever guesses."""
        return self._drafts

    @property
    def is_decoding(self) -> bool:
        """The next piece of work is a decoding step, which may share its pass with others'."""
        session = self._session
        has_read = len(session.token_ids) >= len(self._read_ids)
        has_rows = session.kv.length >= len(session.token_ids) - 1
        return not self.is_done and has_read and has_rows and not self._lacks_room

    @torch.inference_mode()
    def draft(self, sharers: Sharers = ALONE) -> PlacedTree:
        """Begin a decoding step: the tree to be verified, and its cache.

        Args:
            sharers: Which answers decode a step in the pass, this one among them.
        """
        self._step_started = time.perf_counter()
        self._is_shared = sharers.num > 1
        session, governor = self._session, self._governor
        rests = governor is not None and not self._is_shared and not governor.drafts
        self._drafting = self._plain if rests else self._drafter
        # A path longer than the budget could not be kept: no rows for it near the end.
        most = min(self._settings.tree_rows, session.kv.capacity - session.kv.length)
        if self._is_shared:
            length = session.kv.length
            most = min(most, self._tuner.shared_rows(self.request.settings, length, sharers))
        self._drafted = draft(self._drafting, self._context, most)
        return PlacedTree(self._drafted.proposal.rows, session.kv)

    @property
    def pruner(self) -> Pruner | None:
        """Who drops nodes of what was drafted while it is verified, if anybody does."""
        return None if self._drafted is None else self._drafted.proposal.pruner

    def chunk(self, most: int) -> PlacedTree:
        """Begin to read the next tokens of the prompt: as a chain, with its cache.

        Args:
            most: How many.
        """
        self._step_started = time.perf_counter()
        kv = self._session.kv
        token_ids = tuple(self._read_ids[kv.length : kv.length + most])
        return PlacedTree(TokenTree(TreeShape.chain(len(token_ids)), token_ids), kv)

    @torch.inference_mode()
    def heed(self, states: Tensor) -> tuple[Event, ...]:
        """End what `chunk` began.

        Args:
            states: The target's, at the tokens of the chunk. [n, (1 + taps) · hidden]

        Returns:
            As `advance` does.
        """
        kv = self._session.kv
        place = kv.length
        kv.commit(range(len(states)))
        return (*self._tell_cut(), *self._take_read(place, states, self._step_started))

    def cancel(self) -> tuple[Event, ...]:
        """End the answer as it is; the last event is `GenerationDone`."""
        return self._end(StopReason.CANCELLED)

    def teach(self) -> None:
        """Let drafts learn from what was said, if the request wants that."""
        learned = self._target.learned
        if learned is not None and self.request.teaches:
            said = self._answer.token_ids[len(self._transcript.given_ids) :]
            learned.learn(self.request.session_id, self._read_ids, said)

    def _end(self, reason: StopReason) -> tuple[Event, ...]:
        self._answer.finish()
        return self._finish(reason)

    def _tell_moves(self) -> tuple[Event, ...]:
        """Where layers went since the last step, of those that lie with other machines."""
        ids = (self.request.session_id, self.request.request_id)
        return tuple(LayersMoved(*ids, move) for move in self._target.take_moves())

    def _tell_cut(self) -> tuple[Event, ...]:
        """Once, that the model doesn't read all of the conversation."""
        cut, self._cut = self._cut, None
        if cut is None:
            return ()
        ids = (self.request.session_id, self.request.request_id)
        limit = self._target.config.context_tokens // self.request.shares
        return (ContextCut(*ids, cut, len(self._transcript.prompt_ids), limit),)

    @property
    def _lacks_room(self) -> bool:
        """The cache of an answer without a limit must grow before the next step."""
        kv = self._session.kv
        return (
            kv.capacity <= self._most_tokens
            and kv.capacity - kv.length <= self._settings.tree_rows + 1
        )

    def _make_room(self, num_decided: int) -> None:
        """Ask for room for the answer; for one without a limit, for a part of it at a time."""
        room = self._most_tokens - num_decided
        if not self.request.settings.max_new_tokens:
            room = min(room, _OPEN_ROOM)
        rows, shares = self._settings.tree_rows, self.request.shares
        self._session.make_room(num_decided + room, rows, shares)

    def _reread_chunk(self) -> tuple[Event, ...]:
        """The cache had to go before there was a larger one: read what is decided again."""
        decided = self._session.token_ids[:-1]
        started = time.perf_counter()
        self._session.chunks.read(decided, self._session.kv, only_last=True)
        self._decode_s += time.perf_counter() - started
        return ()

    def _prefill_chunk(self) -> tuple[Event, ...]:
        started = time.perf_counter()
        session, prompt = self._session, self._read_ids
        place, reader = session.kv.length, self._reader
        states = session.chunks.read(prompt, session.kv, only_last=reader is None)
        return self._take_read(place, states, started)

    def _take_read(self, place: int, states: Tensor, started: float) -> tuple[Event, ...]:
        """The rows behind `place` are read; behind the last of them comes the first token."""
        session, prompt = self._session, self._read_ids
        if self._reader is not None:
            self._reader.read(place, *self._apart(states))
        session.token_ids.extend(prompt[len(session.token_ids) : session.kv.length])
        if len(session.token_ids) < len(prompt):
            self._prefill_s += time.perf_counter() - started
            return (self._progress(),)
        return self._first_token(states[-1:], started)

    def _apart(self, states: Tensor) -> tuple[Tensor, Tensor | None]:
        """The final part of states, and what they tell of deeper layers."""
        size = self._target.config.hidden_size
        return states[:, :size], states[:, size:] if states.shape[1] > size else None

    def _first_token(self, states: Tensor, started: float) -> tuple[Event, ...]:
        """Prefill's own token: the rule walks a tree that is nothing but its root."""
        tree = TokenTree(TreeShape.root_only(), (self._read_ids[-1],))
        logits = self._target.runner.logits(states)
        verified = time.perf_counter()
        acceptance = self._rule.walk(tree, logits, self._context)
        accepted = time.perf_counter()
        self._prefill_s += accepted - started
        self._first_token_s = accepted - self._started
        times = StepTimes(0.0, self._prefill_s - (accepted - verified), accepted - verified, 0.0)
        run = (acceptance.bonus_id,)
        step = Step(Proposal(tree, (TARGET,)), acceptance, run, logits, states, times)
        num_rows = len(self._read_ids) - self._num_cached
        numbers = self._numbers(step)
        return self._conclude(step, numbers, self._keep(step), num_rows, self._prefill_s)

    @torch.inference_mode()
    def conclude(self, verified: Verified) -> tuple[Event, ...]:
        """End a decoding step.

        Args:
            verified: What the target says of the tree of `draft`.

        Returns:
            As `advance` does.
        """
        session, drafted = self._session, self._drafted
        assert drafted is not None  # by `draft`
        place = len(session.token_ids)
        step = settle(drafted, verified, self._rule, session.kv, self._context)
        numbers = self._numbers(step)
        kept = self._keep(step)
        self._accept_lengths.append(len(kept.pieces))
        step_s = time.perf_counter() - self._step_started
        self._decode_s += step_s
        self._learn_of(step, kept, place, step_s)
        told = self._conclude(step, numbers, kept, step.proposal.num_rows, step_s)
        # telling takes time, too
        self._decode_s += time.perf_counter() - self._step_started - step_s
        return (*self._tell_moves(), *told)

    def _learn_of(self, step: Step, kept: Kept, place: int, step_s: float) -> None:
        """What the step says of guesses, and, where the pass was its own, of its time."""
        if step.proposal.guesses:
            self._guesses.append((place, step.proposal.guesses))
        if self._is_shared:
            return
        verified_s = step.times.verify_s + step.times.accept_s
        self._baseline.add(step.proposal.num_rows, place, verified_s, step_s)
        if self._governor is not None:
            self._num_rested += not self._governor.drafts
            self._governor.add(len(kept.pieces), step_s)
        drafted = self._drafted
        if self._drafting is self._drafter and drafted is not None:
            proposal, num_accepted = drafted.proposal, len(step.acceptance.nodes)
            levels = proposal.tree.shape.depths[-1]
            self._yields.append(
                StepYield(proposal.promised, num_accepted, proposal.num_rows, step_s, levels)
            )

    def _keep(self, step: Step) -> Kept:
        """Take the run into the answer and the session; what is cut leaves no rows behind."""
        session = self._session
        kept = self._answer.take(step.token_ids)
        session.token_ids.extend(step.token_ids[: len(kept.pieces)])
        if kept.stop_reason is None:
            chance = self._rule.chance(len(session.token_ids))
            states, deep = self._apart(step.states)
            rows = (0, *step.acceptance.nodes)
            observed = Observation(step.token_ids, states, rows, chance, deep, step.ridden)
            self._drafter.observe(observed)
        else:
            session.kv.truncate(len(session.token_ids) - 1)
            self._drafter.truncate(session.kv.length)
        return kept

    def _numbers(self, step: Step) -> tuple[Numbers, ...]:
        """What the rule decided by, for a trace, as long as the context is the rule's."""
        if not self._tells_numbers:
            return ()
        path = (0, *step.acceptance.nodes)
        return self._rule.numbers(step.logits, path, self._context, step.token_ids)

    def _conclude(
        self, step: Step, numbers: tuple[Numbers, ...], kept: Kept, num_rows: int, step_s: float
    ) -> tuple[Event, ...]:
        """What is told of a step."""
        num_kept = len(kept.pieces)
        token_ids, pieces = step.token_ids[:num_kept], kept.pieces
        sources = _sources(step)[:num_kept]
        if not self._accept_lengths:  # prefill also tells of what was given
            token_ids = (*self._transcript.given_ids, *token_ids)
            pieces = (*self._given_pieces, *pieces)
            sources = (*[GIVEN] * len(self._given_pieces), *sources)
        done = StepDone(
            self.request.session_id,
            self.request.request_id,
            len(self._accept_lengths),
            token_ids,
            pieces,
            sources,
            self._answer.num_visible_bytes,
            num_rows,
            step.proposal.sources,
            step.times,
            step_s,
            len(self._session.token_ids),
        )
        told: tuple[Event, ...] = (done,)
        if self._recorder is not None:
            told = (done, self._recorder.trace(done, step, numbers, num_kept))
        return told if kept.stop_reason is None else (*told, *self._finish(kept.stop_reason))

    def _finish(self, reason: StopReason) -> tuple[Event, ...]:
        self.is_done = True
        self._tuner.learn(self.request.settings, self._guesses, self._session.token_ids)
        self._tuner.judge(self.request.settings, len(self._read_ids), self._yields)
        done = GenerationDone(
            session_id=self.request.session_id,
            request_id=self.request.request_id,
            text=self._answer.text,
            token_ids=tuple(self._answer.token_ids),
            stop_reason=reason,
            num_prompt_tokens=len(self._transcript.prompt_ids),
            num_given_tokens=len(self._transcript.given_ids),
            num_cached_tokens=self._num_cached,
            num_steps=len(self._accept_lengths),
            accept_lengths=tuple(self._accept_lengths),
            time_to_first_token_s=self._first_token_s,
            prefill_s=self._prefill_s,
            decode_s=self._decode_s,
            num_rested=self._num_rested,
            settings=self._settings,
            plain_step_s=self._plain_step_s(),
        )
        return (done,)

    def _plain_step_s(self) -> float:
        """What a plain step takes in the middle of this answer; 0 where drafts weren't tried."""
        if not drafter_registry().get(self.request.settings.drafter).drafts:
            return 0.0
        length = len(self._read_ids) + len(self._answer.token_ids) // 2
        return self._baseline.plain_s(self._tuner.costs, length)

    def _progress(self) -> Progress:
        num_done, num_total = len(self._session.token_ids), len(self._read_ids)
        return Progress(
            self.request.session_id,
            self.request.request_id,
            "prefill",
            num_done / num_total,
            f"Reading {num_done:,} of {num_total:,} tokens",
            num_done,
            num_total,
        )


def _sources(step: Step) -> tuple[TokenSource, ...]:
    accepted = map(step.proposal.sources.__getitem__, step.acceptance.nodes)
    return (*accepted, TARGET)


def _check(settings: GenerateSettings, drafter: DrafterSpec, target: Target) -> None:
    """See that an answer can be decoded so.

    Raises:
        RequestError: A number makes no sense, or nothing is registered under a name.
    """
    if not drafter.serves(target):
        raise RequestError(f"{target.name} can't use the drafter {drafter.name!r}.", drafter.hint)
    check_tokens(settings, target.config.vocab_size)


def _without_repeat(settings: GenerateSettings, transcript: Transcript) -> GenerateSettings:
    """Settings under which a reroll without chance can't choose the old token again."""
    if transcript.next_id is None:
        return settings
    again = (len(transcript.given_ids), transcript.next_id)
    return replace(settings, forbidden=(*settings.forbidden, again))


def _check_shares(shares: int) -> None:
    if not 1 <= shares <= _MOST_SHARES:
        raise RequestError(
            f"The context can't be shared by {shares} answers.", f"Choose 1 to {_MOST_SHARES}."
        )


def _answer(settings: GenerateSettings, target: Target, room: int) -> Answer:
    wanted = settings.max_new_tokens
    runs_out = not wanted or room < wanted
    return Answer(
        Detokenizer(target.tokenizer),
        target.eos_token_ids,
        settings.stop,
        room if runs_out else wanted,
        StopReason.CONTEXT if runs_out else StopReason.MAX_TOKENS,
    )
