"""The events of an answer become text, thoughts, calls of functions and figures."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from medusa_core.chats.reasoning import NO_TOKEN_ID, Part, ReasoningParser
from medusa_core.messages import (
    GIVEN,
    GenerationDone,
    ReasoningFormat,
    StepDone,
    StepLogprobs,
    StopReason,
    TokenLogprob,
)
from medusa_core.models.text.tool_calls.events import ContentDelta, ToolCallEvent
from medusa_core.models.text.tool_calls.parser import ToolCallParser
from medusa_core.server.chat import (
    AnswerDelta,
    AnswerEnd,
    Finish,
    ScoredToken,
    TextDelta,
)

_FINISHES = {
    StopReason.EOS: Finish.STOP,
    StopReason.STOP_STRING: Finish.STOP_STRING,
    StopReason.MAX_TOKENS: Finish.LENGTH,
    StopReason.CONTEXT: Finish.LENGTH,
    StopReason.REPETITION: Finish.LENGTH,
}
NO_MARKS: Mapping[int, str] = {}


class _Piece(NamedTuple):
    """A token whose text isn't shown yet.

    Attributes:
        text: Its bytes; of a mark, its name.
        token_id: The token.
        end: Where its text ends in the answer, in which marks have none.
        scored: It with its probability, where that is asked for.
    """

    text: bytes
    token_id: int
    end: int
    scored: ScoredToken | None


class AnswerReader:
    """Reads the events of one answer in their order."""

    def __init__(
        self,
        tags: ReasoningFormat,
        end_ids: frozenset[int],
        stop: tuple[str, ...],
        is_scored: bool,
        calls: ToolCallParser | None = None,
        marks: Mapping[int, str] = NO_MARKS,
    ) -> None:
        """Read an answer.

        Args:
            tags: How the model sets reasoning apart.
            end_ids: Tokens that end it, which are no part of its text.
            stop: The strings that may end it.
            is_scored: A `StepLogprobs` follows every step.
            calls: Finds calls of functions, where the answer may hold some.
            marks: Names of tokens without text that calls are known by.
        """
        self._tags = tags
        self._reasoning = ReasoningParser(tags, begins_inside=False)
        self._num_given_chars = 0  # of the given text, those that are still held back
        self._calls, self._marks = calls, marks
        self._waiting: tuple[ScoredToken, ...] = ()  # of text that may become a call
        self._end_ids, self._stop, self._is_scored = end_ids, stop, is_scored
        self._pieces: deque[_Piece] = deque()
        self._num_bytes = 0  # of all pieces so far
        self._num_shown = 0
        self._step: StepDone | None = None  # waits for its probabilities
        self._num_thought_tokens = 0
        self._num_drafted = self._num_drafts_accepted = 0

    def begin(self, begins_inside: bool) -> None:
        """Say whether the prompt opened the reasoning, before anything of the answer comes."""
        self._reasoning = ReasoningParser(self._tags, begins_inside)

    def step(self, step: StepDone) -> Iterator[AnswerDelta]:
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

    def logprobs(self, scores: StepLogprobs) -> Iterator[AnswerDelta]:
        """The probabilities of the last step's tokens.

        Yields:
            What may be shown now.
        """
        step, self._step = self._step, None
        if step is not None and step.step == scores.step:
            yield from self._read(step, scores)

    def finish(self, done: GenerationDone) -> Iterator[AnswerDelta | AnswerEnd]:
        """The answer is complete.

        Yields:
            What is left of its text, and its end.
        """
        if self._step is not None:
            yield from self._read(self._step, None)
        shown = done.text.encode()
        deltas = [*self._visible(len(shown))]
        rest, hidden = shown[self._num_shown :], b"".join(piece.text for piece in self._pieces)
        deltas += self._split(rest.decode("utf-8", "replace"), ())
        deltas += self._deltas(self._reasoning.finish())
        yield from self._with_calls(_joined(deltas))
        if self._calls is not None:
            yield from self._with_scores(self._calls.finish())
        yield self._end(done, hidden[len(rest) :])

    def _read(self, step: StepDone, scores: StepLogprobs | None) -> Iterator[AnswerDelta]:
        """Take a step's tokens; given ones are known to whoever asked."""
        num_given = sum(source == GIVEN for source in step.sources)
        given = sum(map(len, step.pieces[:num_given]))
        self._num_bytes += given
        self._num_shown += given
        for token_id, text in zip(step.token_ids[:num_given], step.pieces, strict=False):
            self._give(token_id, text.decode("utf-8", "replace"))
        scored = iter(()) if scores is None else _scored(scores)
        for token_id, text in zip(step.token_ids[num_given:], step.pieces[num_given:], strict=True):
            self._num_bytes += len(text)
            score = next(scored, None)
            is_end = token_id in self._end_ids
            text = text or self._marks.get(token_id, "").encode()
            shown = None if is_end else score
            self._pieces.append(_Piece(text, token_id, self._num_bytes, shown))
        yield from self._with_calls(_joined(self._visible(step.num_visible_bytes)))

    def _visible(self, num_bytes: int) -> Iterator[TextDelta]:
        """The tokens whose text may be shown."""
        while self._pieces and self._pieces[0].end <= num_bytes:
            piece = self._pieces.popleft()
            self._num_shown = piece.end
            tokens = () if piece.scored is None else (piece.scored,)
            text = piece.text.decode("utf-8", "replace")
            yield from self._split(text, tokens, piece.token_id)

    def _split(
        self, text: str, tokens: tuple[ScoredToken, ...], token_id: int = NO_TOKEN_ID
    ) -> Iterator[TextDelta]:
        deltas = self._deltas(self._reasoning.push(text, token_id))
        if self._reasoning.is_reasoning:
            self._num_thought_tokens += 1
        if deltas:
            deltas[-1] = deltas[-1]._replace(tokens=tokens)
        elif tokens:
            deltas = [TextDelta("", self._reasoning.is_reasoning, tokens)]
        return iter(deltas)

    def _give(self, token_id: int, text: str) -> None:
        """Take what is known to whoever asked: it decides whether reasoning goes on."""
        self._num_given_chars += len(text)
        self._deltas(self._reasoning.push(text, token_id))

    def _deltas(self, parts: Iterable[tuple[str, Part]]) -> list[TextDelta]:
        """What is to be sent of the text."""
        deltas = []
        for text, part in parts:
            new = text[self._num_given_chars :]
            self._num_given_chars = max(0, self._num_given_chars - len(text))
            if new and part is not Part.TAG:
                deltas.append(TextDelta(new, part is Part.REASONING))
        return deltas

    def _with_calls(self, deltas: Iterable[TextDelta]) -> Iterator[AnswerDelta]:
        """Calls apart from text."""
        for delta in deltas:
            if self._calls is None or delta.is_thought:
                yield delta
                continue
            self._waiting += delta.tokens
            yield from self._with_scores(self._calls.push(delta.text))

    def _with_scores(self, parts: Iterable[ToolCallEvent]) -> Iterator[AnswerDelta]:
        """Text takes the tokens that have waited; those of a call aren't shown."""
        for part in parts:
            if isinstance(part, ContentDelta):
                yield TextDelta(part.text, tokens=self._waiting)
            else:
                yield part
            self._waiting = ()

    def _end(self, done: GenerationDone, hidden: bytes) -> AnswerEnd:
        finish = _FINISHES[done.stop_reason]
        if finish is Finish.STOP and self._calls is not None and self._calls.num_calls:
            finish = Finish.TOOL_CALLS
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
