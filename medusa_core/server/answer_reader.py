"""Convert an answer's events to text, reasoning, tool calls and token counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from medusa_core.chats.reasoning import NO_TOKEN_ID, Part, ReasoningParser
from medusa_core.chats.tool_calls.events import ContentDelta, ToolCallEvent
from medusa_core.chats.tool_calls.parser import ToolCallParser
from medusa_core.messages import (
    GIVEN,
    GenerationDone,
    ReasoningFormat,
    StepDone,
    StepLogprobs,
    StopReason,
)
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
NO_MARKERS: Mapping[int, str] = {}


class _Piece(NamedTuple):
    """A token whose text isn't sent yet.

    Attributes:
        text: Bytes of the token; of a marker, its name.
        token_id: Id of the token.
        end: End of its bytes in the answer, where markers have none.
        scored: The token with its log probability, if requested.
    """

    text: bytes
    token_id: int
    end: int
    scored: ScoredToken | None


class AnswerReader:
    """Reads the events of one answer in order."""

    def __init__(
        self,
        tags: ReasoningFormat,
        end_ids: frozenset[int],
        stop: tuple[str, ...],
        is_scored: bool,
        calls: ToolCallParser | None = None,
        markers: Mapping[int, str] = NO_MARKERS,
    ) -> None:
        """Read an answer.

        Args:
            tags: Format of the model's reasoning.
            end_ids: EOS tokens, which have no text.
            stop: Stop strings.
            is_scored: Whether a `StepLogprobs` follows every step.
            calls: Parser of tool calls; None if the answer has none.
            markers: Special tokens of the call format: names by ids.
        """
        self._tags = tags
        self._reasoning = ReasoningParser(tags, begins_inside=False)
        self._num_given_chars = 0  # prefilled text that the parser holds back
        self._calls, self._markers = calls, markers
        self._waiting: tuple[ScoredToken, ...] = ()  # tokens of text that may become a call
        self._end_ids, self._stop, self._is_scored = end_ids, stop, is_scored
        self._pieces: deque[_Piece] = deque()
        self._num_bytes = 0  # bytes of all pieces so far
        self._num_shown = 0
        self._step: StepDone | None = None  # waits for its log probabilities
        self._num_reasoning_tokens = 0
        self._num_drafted = self._num_drafts_accepted = 0

    def begin(self, begins_inside: bool) -> None:
        """Note whether the prompt has opened the reasoning.

        Args:
            begins_inside: Whether the prompt ends with the start tag of reasoning.
        """
        self._reasoning = ReasoningParser(self._tags, begins_inside)

    def step(self, step: StepDone) -> Iterator[AnswerDelta]:
        """Convert the tokens of a step to text, reasoning and calls.

        Yields:
            Parts of the answer that are complete.
        """
        if step.step:
            self._num_drafted += len(step.node_sources) - 1
        self._num_drafts_accepted += sum(source.head > 0 for source in step.sources)
        if self._is_scored:
            self._step = step
            return
        yield from self._read(step, None)

    def logprobs(self, scores: StepLogprobs) -> Iterator[AnswerDelta]:
        """Read the log probabilities of the last step.

        Yields:
            Parts of the answer that are complete.
        """
        step, self._step = self._step, None
        if step is not None and step.step == scores.step:
            yield from self._read(step, scores)

    def finish(self, done: GenerationDone) -> Iterator[AnswerDelta | AnswerEnd]:
        """Read the end of the answer.

        Yields:
            The rest of the text, and the last part.
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
        """Read a step's tokens; those of a prefilled answer aren't sent back."""
        num_given = sum(source == GIVEN for source in step.sources)
        given = sum(map(len, step.pieces[:num_given]))
        self._num_bytes += given
        self._num_shown += given
        for token_id, text in zip(step.token_ids[:num_given], step.pieces, strict=False):
            self._skip(token_id, text.decode("utf-8", "replace"))
        scored = iter(()) if scores is None else _scored(scores)
        for token_id, text in zip(step.token_ids[num_given:], step.pieces[num_given:], strict=True):
            self._num_bytes += len(text)
            score = next(scored, None)
            is_end = token_id in self._end_ids
            text = text or self._markers.get(token_id, "").encode()
            shown = None if is_end else score
            self._pieces.append(_Piece(text, token_id, self._num_bytes, shown))
        yield from self._with_calls(_joined(self._visible(step.num_visible_bytes)))

    def _visible(self, num_bytes: int) -> Iterator[TextDelta]:
        """Yield the tokens whose text is complete."""
        while self._pieces and self._pieces[0].end <= num_bytes:
            piece = self._pieces.popleft()
            self._num_shown = piece.end
            tokens = () if piece.scored is None else (piece.scored,)
            text = piece.text.decode("utf-8", "replace")
            yield from self._split(text, tokens, piece.token_id)

    def _split(
        self, text: str, tokens: tuple[ScoredToken, ...], token_id: int = NO_TOKEN_ID
    ) -> Iterator[TextDelta]:
        """Split text into reasoning and answer, with its scored tokens on the last part."""
        deltas = self._deltas(self._reasoning.push(text, token_id))
        if self._reasoning.is_reasoning:
            self._num_reasoning_tokens += 1
        if deltas:
            deltas[-1] = deltas[-1]._replace(tokens=tokens)
        elif tokens:
            deltas = [TextDelta("", self._reasoning.is_reasoning, tokens)]
        return iter(deltas)

    def _skip(self, token_id: int, text: str) -> None:
        """Parse prefilled text without sending it: it may begin or end the reasoning."""
        self._num_given_chars += len(text)
        self._deltas(self._reasoning.push(text, token_id))

    def _deltas(self, parts: Iterable[tuple[str, Part]]) -> list[TextDelta]:
        """Convert parsed text to deltas, without tags and prefilled text."""
        deltas = []
        for text, part in parts:
            new = text[self._num_given_chars :]
            self._num_given_chars = max(0, self._num_given_chars - len(text))
            if new and part is not Part.TAG:
                deltas.append(TextDelta(new, part is Part.REASONING))
        return deltas

    def _with_calls(self, deltas: Iterable[TextDelta]) -> Iterator[AnswerDelta]:
        """Parse tool calls out of the text."""
        for delta in deltas:
            if self._calls is None or delta.is_reasoning:
                yield delta
                continue
            self._waiting += delta.tokens
            yield from self._with_scores(self._calls.push(delta.text))

    def _with_scores(self, parts: Iterable[ToolCallEvent]) -> Iterator[AnswerDelta]:
        """Add waiting tokens to text; tokens of a call aren't sent."""
        for part in parts:
            if isinstance(part, ContentDelta):
                yield TextDelta(part.text, tokens=self._waiting)
            else:
                yield part
            self._waiting = ()

    def _end(self, done: GenerationDone, hidden: bytes) -> AnswerEnd:
        """Make the end: finish reason, stop string, token counts."""
        finish = _FINISHES[done.stop_reason]
        if finish is Finish.STOP and self._calls is not None and self._calls.num_calls:
            finish = Finish.TOOL_CALLS
        stops = (stop for stop in self._stop if hidden.startswith(stop.encode()))
        return AnswerEnd(
            finish=finish,
            stop=next(stops, "") if finish is Finish.STOP_STRING else "",
            num_prompt_tokens=done.num_prompt_tokens + done.num_given_tokens,
            num_cached_tokens=done.num_cached_tokens,
            num_answer_tokens=len(done.token_ids) - done.num_given_tokens,
            num_reasoning_tokens=self._num_reasoning_tokens,
            num_drafted=self._num_drafted,
            num_drafts_accepted=self._num_drafts_accepted,
            done=done,
        )


def _scored(scores: StepLogprobs) -> Iterator[ScoredToken]:
    """Yield the tokens of a step with their alternatives."""
    for chosen, alternatives in zip(scores.chosen, scores.alternatives, strict=True):
        yield ScoredToken(chosen, tuple(sorted(alternatives, key=lambda token: -token.logprob)))


def _joined(deltas: Iterable[TextDelta]) -> Iterator[TextDelta]:
    """Join adjacent deltas of the same kind."""
    last: TextDelta | None = None
    for delta in deltas:
        if last is not None and last.is_reasoning == delta.is_reasoning:
            last = TextDelta(
                last.text + delta.text, last.is_reasoning, (*last.tokens, *delta.tokens)
            )
            continue
        if last is not None:
            yield last
        last = delta
    if last is not None:
        yield last
