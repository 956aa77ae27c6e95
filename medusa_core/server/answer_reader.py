"""The events of an answer become text, thoughts and figures."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from medusa_core.messages import (
    GIVEN,
    GenerationDone,
    StepDone,
    StepLogprobs,
    StopReason,
    TokenLogprob,
)
from medusa_core.server.chat import AnswerEnd, Finish, ScoredToken, TextDelta
from medusa_core.server.thought_splitter import ThoughtSplitter

_FINISHES = {
    StopReason.EOS: Finish.STOP,
    StopReason.STOP_STRING: Finish.STOP_STRING,
    StopReason.MAX_TOKENS: Finish.LENGTH,
    StopReason.CONTEXT: Finish.LENGTH,
}


class _Piece(NamedTuple):
    """A token whose text isn't shown yet.

    Attributes:
        text: Its bytes.
        end: Where they end in the answer.
        scored: It with its probability, where that is asked for.
    """

    text: bytes
    end: int
    scored: ScoredToken | None


class AnswerReader:
    """Reads the events of one answer in their order."""

    def __init__(
        self, begins_inside: bool, end_ids: frozenset[int], stop: tuple[str, ...], is_scored: bool
    ) -> None:
        """Read an answer.

        Args:
            begins_inside: It begins within a thought.
            end_ids: Tokens that end it, which are no part of its text.
            stop: The strings that may end it.
            is_scored: A `StepLogprobs` follows every step.
        """
        self._splitter = ThoughtSplitter(begins_inside)
        self._end_ids, self._stop, self._is_scored = end_ids, stop, is_scored
        self._pieces: deque[_Piece] = deque()
        self._num_bytes = 0  # of all pieces so far
        self._num_shown = 0
        self._step: StepDone | None = None  # waits for its probabilities
        self._num_thought_tokens = 0
        self._num_drafted = self._num_drafts_accepted = 0

    def step(self, step: StepDone) -> Iterator[TextDelta]:
        """A step is done.

        Yields:
            What may be shown now.
        """
        if step.step:
            self._num_drafted += len(step.node_sources) - 1
        self._num_drafts_accepted += sum(source.head > 0 for source in step.sources)
        if self._is_scored:
            self._step = step
            return
        yield from self._read(step, None)

    def logprobs(self, scores: StepLogprobs) -> Iterator[TextDelta]:
        """The probabilities of the last step's tokens.

        Yields:
            What may be shown now.
        """
        step, self._step = self._step, None
        if step is not None and step.step == scores.step:
            yield from self._read(step, scores)

    def finish(self, done: GenerationDone) -> Iterator[TextDelta | AnswerEnd]:
        """The answer is complete.

        Yields:
            What is left of its text, and its end.
        """
        if self._step is not None:
            yield from self._read(self._step, None)
        hidden = b"".join(piece.text for piece in self._pieces)
        shown = done.text.encode()
        rest = shown[self._num_shown :]
        scored = [piece.scored for piece in self._pieces if piece.end <= len(shown)]
        tokens = tuple(one for one in scored if one is not None)
        deltas = [*self._split(rest.decode("utf-8", "replace"), tokens)]
        deltas += [TextDelta(text, is_thought) for text, is_thought in self._splitter.finish()]
        yield from _joined(deltas)
        yield self._end(done, hidden[len(rest) :])

    def _read(self, step: StepDone, scores: StepLogprobs | None) -> Iterator[TextDelta]:
        """Take a step's tokens; given ones are known to whoever asked."""
        num_given = sum(source == GIVEN for source in step.sources)
        given = sum(map(len, step.pieces[:num_given]))
        self._num_bytes += given
        self._num_shown += given
        scored = iter(()) if scores is None else _scored(scores)
        for token_id, text in zip(step.token_ids[num_given:], step.pieces[num_given:], strict=True):
            self._num_bytes += len(text)
            score = next(scored, None)
            is_end = token_id in self._end_ids
            self._pieces.append(_Piece(text, self._num_bytes, None if is_end else score))
        yield from _joined(self._visible(step.num_visible_bytes))

    def _visible(self, num_bytes: int) -> Iterator[TextDelta]:
        """The tokens whose text may be shown."""
        while self._pieces and self._pieces[0].end <= num_bytes:
            piece = self._pieces.popleft()
            self._num_shown = piece.end
            tokens = () if piece.scored is None else (piece.scored,)
            yield from self._split(piece.text.decode("utf-8", "replace"), tokens)

    def _split(self, text: str, tokens: tuple[ScoredToken, ...]) -> Iterator[TextDelta]:
        deltas = [TextDelta(*part) for part in self._splitter.push(text)]
        if self._splitter.is_thinking:
            self._num_thought_tokens += 1
        if deltas:
            deltas[-1] = deltas[-1]._replace(tokens=tokens)
        elif tokens:
            deltas = [TextDelta("", self._splitter.is_thinking, tokens)]
        return iter(deltas)

    def _end(self, done: GenerationDone, hidden: bytes) -> AnswerEnd:
        finish = _FINISHES[done.stop_reason]
        stops = (one for one in self._stop if hidden.startswith(one.encode()))
        return AnswerEnd(
            finish=finish,
            stop=next(stops, "") if finish is Finish.STOP_STRING else "",
            num_prompt_tokens=done.num_prompt_tokens + done.num_given_tokens,
            num_cached_tokens=done.num_cached_tokens,
            num_answer_tokens=len(done.token_ids) - done.num_given_tokens,
            num_thought_tokens=self._num_thought_tokens,
            num_drafted=self._num_drafted,
            num_drafts_accepted=self._num_drafts_accepted,
            done=done,
        )


def _scored(scores: StepLogprobs) -> Iterator[ScoredToken]:
    for chosen, alternatives in zip(scores.chosen, scores.alternatives, strict=True):
        yield ScoredToken(chosen, tuple(_best_first(alternatives)))


def _best_first(alternatives: Iterable[TokenLogprob]) -> list[TokenLogprob]:
    return sorted(alternatives, key=lambda one: -one.logprob)


def _joined(deltas: Iterable[TextDelta]) -> Iterator[TextDelta]:
    """Neighbours of one kind as one."""
    last: TextDelta | None = None
    for delta in deltas:
        if last is not None and last.is_thought == delta.is_thought:
            last = TextDelta(last.text + delta.text, last.is_thought, (*last.tokens, *delta.tokens))
            continue
        if last is not None:
            yield last
        last = delta
    if last is not None:
        yield last
