"""Events of an answer's steps."""

from __future__ import annotations

from torch import Tensor

from medusa_core.engine.answer import AnswerBuffer
from medusa_core.engine.decoding import Decoding
from medusa_core.engine.prefill import Prefill
from medusa_core.engine.recorder import Recorder
from medusa_core.engine.sequence import Step
from medusa_core.engine.session import Session
from medusa_core.engine.transcript import Transcript
from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import (
    GIVEN,
    TARGET,
    ContextCut,
    Cut,
    Event,
    Generate,
    GenerateSettings,
    GenerationDone,
    LayersMoved,
    Progress,
    StepDone,
    StepLogprobs,
    StopReason,
    TokenLogprob,
)
from medusa_core.models.text.tokenizer import Tokenizer


class Report:
    """Makes the events of one answer."""

    def __init__(
        self,
        request: Generate,
        target: Target,
        session: Session,
        transcript: Transcript,
        cut: Cut | None,
        answer: AnswerBuffer,
        given_pieces: tuple[bytes, ...],
        settings: GenerateSettings,
    ) -> None:
        """Prepare to report; a cut of the conversation is the first event.

        Args:
            request: The request.
            target: The target.
            session: The session that the answer's tokens are appended to.
            transcript: The tokenized prompt.
            cut: Messages that were dropped from the prompt; None if all fit.
            answer: The answer's text so far.
            given_pieces: UTF-8 of the given tokens of a continued answer.
            settings: Resolved settings, which the final event repeats.
        """
        self._ids = request.ids
        self._target, self._session, self._answer = target, session, answer
        self._num_prompt_tokens = len(transcript.prompt_ids)
        self._given_ids = tuple(transcript.given_ids)
        self._given_pieces = given_pieces
        self._settings = settings
        self._num_logprobs = request.num_logprobs
        self._recorder = Recorder(target.tokenizer) if request.records else None
        self._opening: tuple[Event, ...] = ()
        if cut is not None:
            limit = target.config.context_tokens // request.shares
            self._opening = (ContextCut(*self._ids, cut, self._num_prompt_tokens, limit),)

    def opening(self) -> tuple[Event, ...]:
        """Events before a step's own: moved layers and, at first, the cut of the conversation."""
        opening, self._opening = self._opening, ()
        return (
            *opening,
            *(LayersMoved(*self._ids, move) for move in self._target.runner.take_moves()),
        )

    def progress(self, num_total: int) -> Progress:
        """The event of a prefilled chunk of a prompt of `num_total` tokens."""
        num_done = len(self._session.token_ids)
        text = tr("Reading {0:,} of {1:,} tokens", num_done, num_total)
        return Progress(*self._ids, "prefill", num_done / num_total, text, num_done, num_total)

    def step(self, step: Step, index: int, num_rows: int, step_s: float) -> tuple[Event, ...]:
        """Return the events of a step.

        Args:
            step: The step, after its tokens were appended to the answer.
            index: 0 for prefill, which also reports the given tokens.
            num_rows: Number of computed rows.
            step_s: Seconds of the whole step.
        """
        num_appended, proposal = step.num_appended, step.proposal
        token_ids, pieces = step.token_ids[:num_appended], step.kept.pieces
        accepted = map(proposal.sources.__getitem__, step.acceptance.nodes)
        sources = (*accepted, TARGET)[:num_appended]
        if index == 0:
            token_ids = (*self._given_ids, *token_ids)
            pieces = (*self._given_pieces, *pieces)
            sources = (*[GIVEN] * len(self._given_pieces), *sources)
        done = StepDone(
            *self._ids,
            index,
            token_ids,
            pieces,
            sources,
            self._answer.num_visible_bytes,
            num_rows,
            proposal.sources,
            step.times,
            step_s,
            len(self._session.token_ids),
        )
        events: list[Event] = [done]
        if self._num_logprobs >= 0:
            events.append(_logprobs(done, step, self._num_logprobs, self._target.tokenizer))
        if self._recorder is not None:
            events.append(self._recorder.trace(done, step))
        return tuple(events)

    def done(
        self, reason: StopReason, prefill: Prefill, decoding: Decoding, first_token_s: float
    ) -> GenerationDone:
        """The final event.

        Args:
            reason: Why the answer ended.
            prefill: Its prefill.
            decoding: Its decoding.
            first_token_s: Seconds to the first token.
        """
        tuning = decoding.tuning
        return GenerationDone(
            *self._ids,
            text=self._answer.text,
            token_ids=tuple(self._answer.token_ids),
            stop_reason=reason,
            num_prompt_tokens=self._num_prompt_tokens,
            num_given_tokens=len(self._given_ids),
            num_cached_tokens=prefill.num_cached,
            num_steps=len(decoding.accept_lengths),
            accept_lengths=tuple(decoding.accept_lengths),
            time_to_first_token_s=first_token_s,
            prefill_s=prefill.seconds,
            decode_s=decoding.seconds + prefill.reread_s,
            num_plain_steps=tuning.num_plain_steps,
            settings=self._settings,
            plain_step_s=tuning.plain_step_s(len(self._answer.token_ids)),
            num_reread_tokens=prefill.num_reread,
        )


def _logprobs(
    done: StepDone, step: Step, num_alternatives: int, tokenizer: Tokenizer
) -> StepLogprobs:
    """Log-probabilities of a step's tokens, before temperature, penalties and filters.

    Args:
        done: The step's event.
        step: The step.
        num_alternatives: Number of most likely tokens to return for each position.
        tokenizer: The target's tokenizer.
    """
    num_appended = step.num_appended
    nodes = list((0, *step.acceptance.nodes)[:num_appended])
    rows = step.logits[nodes].double().log_softmax(dim=-1)  # [num_appended, vocabulary]
    best = rows.topk(min(num_alternatives, rows.shape[1]), dim=-1)
    chosen, alternatives = [], []
    for place, token_id in enumerate(step.token_ids[:num_appended]):
        chosen.append(_token_logprob(token_id, rows[place, token_id], tokenizer))
        pairs = zip(best.indices[place].tolist(), best.values[place], strict=True)
        alternatives.append(tuple(_token_logprob(*pair, tokenizer) for pair in pairs))
    return StepLogprobs(*done[:3], tuple(chosen), tuple(alternatives))


def _token_logprob(token_id: int, logprob: Tensor, tokenizer: Tokenizer) -> TokenLogprob:
    """A token's text with its log-probability."""
    return TokenLogprob(token_id, tokenizer.bytes_of(token_id), float(logprob))
