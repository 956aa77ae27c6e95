"""The text of one answer: its steps, decoded once and divided into reasoning and answer."""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Sequence

from medusa_core.chats.reasoning import (
    NO_TOKEN_ID,
    AnswerSpan,
    AnswerSpans,
    Part,
    ReasoningParser,
    joined_spans,
)
from medusa_core.chats.tool_calls.call_reader import CallForm, CallReader
from medusa_core.messages import (
    REASONING,
    THINK_TAGS,
    ReasoningFormat,
    StepDone,
    TokenSource,
    ToolCall,
)

log = logging.getLogger(__name__)

NO_TOKEN = -1


class AnswerText:
    """Tokens, text and parts of one answer while it streams and afterwards.

    Each step is decoded and parsed once, here. What shows, searches, saves or continues an answer
    reads from its text. Appending costs the same however long the answer is.

    Attributes:
        reasoning: Reasoning format of the model.
        begins_inside: Whether the prompt ended with the start tag of the reasoning.
        steps: Steps of the answer, in order.
        spans: Reasoning and answer so far. Spans are only appended, and only the last one grows.
        num_chars: Length of the visible text.
        num_accepted: Number of tokens that were drafted and accepted.
        is_finished: Whether the text is complete.
        revision: Number of times that the text was replaced; positions before are void then.
    """

    def __init__(
        self, reasoning: ReasoningFormat = THINK_TAGS, begins_inside: bool = False
    ) -> None:
        self._call_form: CallForm | None = None
        self.steps: list[StepDone] = []
        self.num_accepted = 0
        self.is_finished = False
        self.revision = 0
        self._read_steps: Callable[[], Sequence[StepDone]] | None = None
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._complete: str | None = None
        # One entry per token: its text, the ends of its characters and bytes, the end of its last
        # complete character in bytes, its id and source.
        self._pieces: list[str] = []
        self._ends: list[int] = []
        self._byte_ends: list[int] = []
        self._decoded_ends: list[int] = []
        self._token_ids: list[int] = []
        self._sources: list[TokenSource] = []
        # One entry per step: the number of tokens and the seconds up to its end.
        self._step_ends: list[int] = []
        self._seconds: list[float] = []
        self._num_visible_bytes = 0
        self._num_released = 0  # tokens whose text is visible
        self.num_chars = 0
        self.expect(reasoning, begins_inside)

    @classmethod
    def stored(
        cls,
        text: str,
        spans: AnswerSpans | None = None,
        read_steps: Callable[[], Sequence[StepDone]] = tuple,
        reasoning: ReasoningFormat = THINK_TAGS,
        begins_inside: bool = False,
    ) -> AnswerText:
        """Return the text of an answer of the history, whose steps are read when they are needed.

        Args:
            text: The whole text.
            spans: Its reasoning spans; None if unknown.
            read_steps: Reads the steps.
            reasoning: Reasoning format of the model.
            begins_inside: Whether the prompt ended with the start tag of the reasoning.
        """
        stored = cls(reasoning, begins_inside)
        stored._read_steps = read_steps
        if spans is None and reasoning.tokens:
            stored.load_steps()  # alone they have the ids of tags that are tokens
        if spans is None:
            stored.finish(text)
        else:
            stored.spans[:] = spans
            stored._end_with(text)
        return stored

    def expect(self, reasoning: ReasoningFormat, begins_inside: bool) -> None:
        """Set the model's reasoning format, before the first step."""
        self.reasoning, self.begins_inside = reasoning, begins_inside
        self._tag_ids = {token_id for token_id, _ in reasoning.tokens}
        self._begin_parts(reasoning)

    def expect_calls(self, form: CallForm | None) -> None:
        """Set how the model writes tool calls, before the first step; None for no calls."""
        self._call_form = form
        self._begin_parts(self.reasoning)

    def _begin_parts(self, reasoning: ReasoningFormat) -> None:
        self.spans: list[AnswerSpan] = []
        self._parser = ReasoningParser(reasoning, self.begins_inside)
        self._calls = None if self._call_form is None else CallReader(self._call_form)
        self._num_parsed = 0  # characters that are assigned to a part

    # Text -----------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The visible text with its reasoning and tags."""
        return self.slice(0, self.num_chars) if self._complete is None else self._complete

    def slice(self, start: int, end: int) -> str:
        """Return some characters of the text, in time that depends on their number alone."""
        if self._complete is not None:
            return self._complete[start:end]
        first, last = bisect_right(self._ends, start), bisect_left(self._ends, end)
        offset = self._ends[first - 1] if first else 0
        return "".join(self._pieces[first : last + 1])[start - offset : end - offset]

    @property
    def answer(self) -> str:
        """The answer without reasoning."""
        return joined_spans(self.text, self.spans, is_reasoning=False)

    @property
    def thought(self) -> str:
        """The reasoning."""
        return joined_spans(self.text, self.spans, is_reasoning=True)

    @property
    def is_reasoning(self) -> bool:
        """Whether the reasoning is still being written."""
        return not self.is_finished and self._parser.is_reasoning

    @property
    def reasoning_end(self) -> int:
        """End of the reasoning; 0 without any."""
        return max((span.end for span in self.spans if span.is_reasoning), default=0)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Tool calls, which no span contains; the last one may be incomplete before the end."""
        return () if self._calls is None else tuple(self._calls.calls)

    @property
    def has_unmarked_calls(self) -> bool:
        """Whether a call came without the markers of the model's format; False if unknown."""
        return self._calls is not None and self._calls.has_unmarked

    # Tokens ---------------------------------------------------------------------------------------

    @property
    def num_tokens(self) -> int:
        """Number of tokens so far, visible or not."""
        return len(self._ends)

    @property
    def is_remote(self) -> bool:
        """Whether another machine wrote it, whose tokens are unknown."""
        return bool(self.steps) and not self.steps[0].token_ids

    @property
    def visible_tokens(self) -> tuple[int, ...]:
        """Ids of the tokens of the visible text; none for a remote answer."""
        self.load_steps()
        num_tokens = bisect_right(self._byte_ends, self._num_visible_bytes)
        return () if self.is_remote else tuple(self._token_ids[:num_tokens])

    def owner(self, char: int) -> int:
        """Return the index of the token that completes a character; `NO_TOKEN` if there is none."""
        token = bisect_right(self._ends, char)
        return token if token < len(self._ends) else NO_TOKEN

    def source(self, token: int) -> TokenSource:
        """Return the source of a token."""
        return self._sources[token]

    def end(self, token: int) -> int:
        """Return the position after the last character that a token completes."""
        return self._ends[token]

    @property
    def reasoning_s(self) -> float:
        """Seconds of the steps that wrote the reasoning."""
        end = self.reasoning_end
        if not end or not self._seconds:
            return 0.0
        last = self.owner(end - 1)
        num_tokens = self.num_tokens if last == NO_TOKEN else last + 1
        return self._seconds[bisect_left(self._step_ends, num_tokens)]

    # Growth ---------------------------------------------------------------------------------------

    def append(self, *steps: StepDone) -> None:
        """Add the next steps."""
        for step in steps:
            self._add_tokens(step)
            self._release(step.num_visible_bytes)

    def load_steps(self) -> None:
        """Read the steps of a stored answer, if that wasn't done yet."""
        if self._read_steps is None:
            return
        steps, self._read_steps = self._read_steps(), None
        for step in steps:
            self._add_tokens(step)
        if steps:
            self._num_visible_bytes = steps[-1].num_visible_bytes
        if self._complete is not None:
            self._end_with(self._complete)

    def finish(self, text: str | None = None) -> None:
        """Complete the answer.

        Args:
            text: The whole text; None for the visible text of its steps.
        """
        if text is None:
            self._release_partial()
            text = self.text
        else:
            self._release(len(text.encode("utf-8", "surrogatepass")))
            if not text.startswith(shown := self.text):
                at = _num_common_chars(text, shown)
                log.warning("the final text departs from its steps at character %d", at)
                if self._call_form is not None:
                    self._call_form = self._call_form._replace(markers=())
                self._begin_parts(self.reasoning._replace(tokens=()))
                self.revision += 1
                shown = ""
            self._assign(self._parser.push(text[len(shown) :]))
        self._assign(self._parser.finish())
        if self._calls is not None:
            for start, end in self._calls.finish():
                self._add_span(start, end, is_reasoning=False)
        self._end_with(text)

    def _end_with(self, text: str) -> None:
        """Set the complete text; characters that the tokens don't agree on have no token."""
        self._complete, self.num_chars, self.is_finished = text, len(text), True
        decoded = "".join(self._pieces)
        if not decoded.startswith(text):
            num_common = _num_common_chars(decoded, text)
            self._ends = [min(end, num_common) for end in self._ends]

    def _add_tokens(self, step: StepDone) -> None:
        self.steps.append(step)
        unknown = (NO_TOKEN_ID,) * len(step.pieces)
        for piece, source in zip(step.pieces, step.sources, strict=True):
            text = self._decoder.decode(piece)
            self._pieces.append(text)
            self._ends.append(len(text) + (self._ends[-1] if self._ends else 0))
            self._byte_ends.append(len(piece) + (self._byte_ends[-1] if self._byte_ends else 0))
            num_pending = len(self._decoder.getstate()[0])
            self._decoded_ends.append(self._byte_ends[-1] - num_pending)
            self._sources.append(source)
            self.num_accepted += bool(source.proposers)
        self._token_ids.extend(step.token_ids or unknown)
        self._step_ends.append(self.num_tokens)
        self._seconds.append(step.step_s + (self._seconds[-1] if self._seconds else 0.0))

    def _release(self, num_visible_bytes: int) -> None:
        """Make the first bytes of the answer visible.

        Tokens of reasoning tags are shown whole, others up to the byte.
        """
        self._num_visible_bytes = max(self._num_visible_bytes, num_visible_bytes)
        while self._num_released < self.num_tokens:
            token = self._num_released
            if self._byte_ends[token] > self._num_visible_bytes:
                if self._token_ids[token] not in self._tag_ids:
                    self._release_partial()
                return
            self._num_released += 1
            self._show_until(self._ends[token], token, self._token_ids[token])

    def _release_partial(self) -> None:
        """Show the first bytes of a token whose rest may be the start of a stop string."""
        token = self._num_released
        if token == self.num_tokens:
            return
        start, num_chars = (
            (self._decoded_ends[token - 1], self._ends[token - 1]) if token else (0, 0)
        )
        visible = self._pieces[token].encode()[: max(0, self._num_visible_bytes - start)]
        num_chars += len(visible.decode("utf-8", "ignore"))
        if num_chars > self.num_chars:
            self._show_until(num_chars, token, NO_TOKEN_ID)

    def _show_until(self, end: int, token: int, token_id: int) -> None:
        """Extend the visible text to `end`; the new characters belong to `token`."""
        text = self.slice(self.num_chars, end)
        self.num_chars = end
        if not text and self._calls is not None:
            text = self._calls.symbol(token_id)
        is_reasoning = self._sources[token] == REASONING
        self._assign(self._parser.push(text, token_id, is_reasoning=is_reasoning))

    def _assign(self, parts: Iterable[tuple[str, Part]]) -> None:
        """Add parts to the spans, without the calls."""
        calls = self._calls
        for text, part in parts:
            start = self._num_parsed
            self._num_parsed += len(text) if calls is None else calls.num_chars(text)
            if part is Part.ANSWER and calls is not None:
                for place in calls.push(text, start):
                    self._add_span(*place, is_reasoning=False)
            elif part is not Part.TAG:
                self._add_span(start, self._num_parsed, is_reasoning=part is Part.REASONING)

    def _add_span(self, start: int, end: int, *, is_reasoning: bool) -> None:
        """Add a span; adjacent ones of a kind are merged."""
        last = self.spans[-1] if self.spans else None
        if last is not None and (last.end, last.is_reasoning) == (start, is_reasoning):
            self.spans[-1] = last._replace(end=end)
        elif start < end:
            self.spans.append(AnswerSpan(start, end, is_reasoning))


class PartText:
    """The reasoning of an answer, or the answer without it, as a view of an `AnswerText`.

    Positions are those of the whole text; characters of other parts are replaced by newlines.
    """

    def __init__(self, whole: AnswerText, *, is_reasoning: bool) -> None:
        self._whole = whole
        self._is_reasoning = is_reasoning

    @property
    def spans(self) -> list[AnswerSpan]:
        """Spans of this part."""
        return [span for span in self._whole.spans if span.is_reasoning is self._is_reasoning]

    @property
    def start(self) -> int:
        """Position of the first character; 0 if there is none."""
        return next((span.start for span in self.spans), 0)

    @property
    def text(self) -> str:
        """The part without the others, its spans joined by blank lines."""
        return joined_spans(self._whole.text, self._whole.spans, self._is_reasoning)

    def __len__(self) -> int:
        """Position after the last character."""
        return max((span.end for span in self.spans), default=0)

    def __getitem__(self, place: slice) -> str:
        start, end, _ = place.indices(len(self))
        pieces = []
        for span in self.spans:
            first, last = max(start, span.start), min(end, span.end)
            if first < last:
                pieces += ["\n" * (first - start), self._whole.slice(first, last)]
                start = last
        return "".join(pieces) + "\n" * max(0, end - start)


def _num_common_chars(left: str, right: str) -> int:
    """Length of the common beginning of two texts."""
    for i, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return i
    return min(len(left), len(right))


def find_spans(
    steps: Iterable[StepDone],
    text: str,
    tags: ReasoningFormat = THINK_TAGS,
    begins_inside: bool = False,
) -> AnswerSpans:
    """Find the spans of an answer that has ended.

    Args:
        steps: The answer's steps; steps may be missing.
        text: The whole text of the answer.
        tags: The model's format.
        begins_inside: Whether the prompt ended with the start tag.
    """
    answer = AnswerText(tags, begins_inside)
    answer.append(*steps)
    answer.finish(text)
    return tuple(answer.spans)


def text_spans(text: str) -> AnswerSpans:
    """Find the spans of a text without token ids or format, by `<think>` tags."""
    return find_spans((), text)
