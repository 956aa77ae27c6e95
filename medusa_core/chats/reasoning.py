"""Separate reasoning from the answer in any model's format, streamed or complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from medusa_core.chats.partial_match import partial_match_length
from medusa_core.messages import ReasoningFormat

NO_TOKEN_ID = -1
# Decoded UTF-8 never holds half a surrogate pair, so text can't be taken for a token.
_FIRST_SYMBOL = 0xD800


class Part(Enum):
    """The part of an answer to which a piece of text belongs."""

    REASONING = 0
    ANSWER = 1
    TAG = 2  # around them, and the space between; not shown


class AnswerSpan(NamedTuple):
    """A range of an answer's characters; the characters between two spans are tags.

    Attributes:
        start: Index of the first character.
        end: Index after the last character.
        is_reasoning: Whether the range is reasoning, else the answer itself.
    """

    start: int
    end: int
    is_reasoning: bool


AnswerSpans = tuple[AnswerSpan, ...]


class _State(Enum):
    """State of the parser."""

    LEAD = 0  # before the first tag
    MESSAGE = 1  # after a header, where reasoning may begin again
    REASONING = 2
    GAP = 3  # after the end of the reasoning
    SPACE = 4  # after a response tag
    ANSWER = 5


class ReasoningParser:
    """Splits a streamed answer into reasoning and answer; text that may become a tag is held back.

    Reasoning opens only at the beginning of an answer, and can't be reopened once it has ended,
    unless the format divides an answer into messages. Tags that are tokens of the vocabulary are
    recognised by their ids.

    Attributes:
        is_reasoning: Whether the next text is reasoning, by what has been read so far.
    """

    def __init__(self, tags: ReasoningFormat, begins_inside: bool) -> None:
        """Start at the beginning of an answer.

        Args:
            tags: The model's format.
            begins_inside: Whether the prompt ended with the start tag.
        """
        self._begins_inside = begins_inside
        names = sorted({name for _, name in tags.tokens}, key=len, reverse=True)
        symbols = {name: chr(_FIRST_SYMBOL + place) for place, name in enumerate(names)}
        self._symbols = {token_id: symbols[name] for token_id, name in tags.tokens}
        self._shown: dict[int, str] = {ord(symbol): "" for symbol in symbols.values()}

        def encoded(tag: str) -> str:
            """Replace the names of special tokens by their placeholder characters."""
            for name in names:
                tag = tag.replace(name, symbols[name])
            return tag

        self._start, self._end = encoded(tags.start), encoded(tags.end)
        self._header = encoded(tags.header)
        self._responses = tuple(map(encoded, tags.responses))
        ends = tuple(map(encoded, tags.response_ends))
        # Between messages, and after the answer. Spelled out, they count at its end alone.
        breaks = (self._end,) if self._header and self._end != tags.end else ()
        spelled = set(ends).intersection(tags.response_ends)
        self._breaks = tuple(tag for tag in (*breaks, *ends) if tag not in spelled)
        self._last_tags = tuple(spelled)
        self._state = _State.LEAD
        self._held = ""

    @property
    def is_reasoning(self) -> bool:
        """Whether the next text is reasoning."""
        is_inside = self._state is _State.LEAD and self._begins_inside
        return is_inside or self._state is _State.REASONING

    def push(
        self, text: str, token_id: int = NO_TOKEN_ID, *, is_reasoning: bool = False
    ) -> Iterator[tuple[str, Part]]:
        """Parse the next piece of the answer.

        Args:
            text: The piece's text. For a token that may be part of a tag: the text to show if it
                turns out not to be one.
            token_id: The piece's token, if it is one token.
            is_reasoning: Whether the piece is known to be reasoning, whatever its text.

        Yields:
            Text, never empty, with the part to which it belongs.
        """
        if is_reasoning:
            yield from self._release(len(self._held), Part.REASONING)
            self._state = _State.REASONING
            if text:
                yield text, Part.REASONING
            return
        symbol = self._symbols.get(token_id)
        if symbol is None:
            self._held += text
        else:
            self._shown[ord(symbol)] = text
            self._held += symbol
        yield from self._advance()

    def finish(self) -> Iterator[tuple[str, Part]]:
        """Parse the end of the answer.

        Yields:
            As `push`.
        """
        if self.is_reasoning:
            yield from self._release(len(self._held), Part.REASONING)
        if self._state in (_State.GAP, _State.SPACE):
            yield from self._release(self._num_spaces(), Part.TAG)
        text = self._held.rstrip()
        last = next((tag for tag in self._last_tags if text.endswith(tag)), "")
        if last and self._state is _State.ANSWER:
            yield from self._release(len(text) - len(last), Part.ANSWER)
            yield from self._release(len(self._held), Part.TAG)
        yield from self._release(len(self._held), Part.ANSWER)

    def _advance(self) -> Iterator[tuple[str, Part]]:
        """Assign as much of the held text to parts as is unambiguous."""
        before = None
        while self._held and before != (self._state, len(self._held)):
            before = self._state, len(self._held)
            match self._state:
                case _State.LEAD | _State.MESSAGE:
                    yield from self._parse_beginning()
                case _State.REASONING:
                    yield from self._parse_reasoning()
                case _State.GAP:
                    yield from self._parse_after_reasoning()
                case _State.SPACE:
                    yield from self._release(self._num_spaces(), Part.TAG)
                    self._state = _State.ANSWER if self._held else _State.SPACE
                case _State.ANSWER:
                    yield from self._emit_text()

    def _parse_beginning(self) -> Iterator[tuple[str, Part]]:
        """Parse the beginning of an answer, or of a message in it."""
        is_inside = self._begins_inside and self._state is _State.LEAD
        nexts = {self._start: _State.REASONING} if self._start else {}
        if not is_inside:
            nexts |= dict.fromkeys(self._responses, _State.SPACE)
        other = _State.REASONING if is_inside else _State.ANSWER
        yield from self._take_tag(nexts, other, hides_space=False)

    def _parse_after_reasoning(self) -> Iterator[tuple[str, Part]]:
        """Parse the text after the reasoning."""
        if self._header:
            nexts = {self._header: _State.MESSAGE}
        else:
            nexts = dict.fromkeys(self._responses, _State.SPACE)
        yield from self._take_tag(nexts, _State.ANSWER, hides_space=True)

    def _take_tag(
        self, nexts: dict[str, _State], otherwise: _State, hides_space: bool
    ) -> Iterator[tuple[str, Part]]:
        """Parse one of several tags, if there is one.

        Args:
            nexts: The tags, with the state after each.
            otherwise: The next state if there is no tag.
            hides_space: Whether white space is dropped if no tag follows it.
        """
        num_spaces = self._num_spaces()
        begin = self._held[num_spaces:]
        tag = max((tag for tag in nexts if begin.startswith(tag)), key=len, default="")
        if tag:
            yield from self._release(num_spaces + len(tag), Part.TAG)
            self._state = nexts[tag]
        elif begin and not any(tag.startswith(begin) for tag in nexts):
            yield from self._release(num_spaces if hides_space else 0, Part.TAG)
            self._state = otherwise

    def _parse_reasoning(self) -> Iterator[tuple[str, Part]]:
        """Release reasoning up to the end tag, except what may begin that."""
        end = self._held.find(self._end) if self._end else -1
        if end >= 0:
            yield from self._release(end, Part.REASONING)
            yield from self._release(len(self._end), Part.TAG)
            self._state = _State.GAP
        else:
            num_begun = partial_match_length(self._held, self._end)
            yield from self._release(len(self._held) - num_begun, Part.REASONING)

    def _emit_text(self) -> Iterator[tuple[str, Part]]:
        """Release the answer up to a tag, except what may begin one."""
        places = ((self._held.find(tag), tag) for tag in self._breaks)
        at, tag = min(((at, tag) for at, tag in places if at >= 0), default=(-1, ""))
        if at >= 0:
            yield from self._release(at, Part.ANSWER)
            yield from self._release(len(tag), Part.TAG)
            if tag == self._end:
                self._state = _State.GAP
            return
        num_begun = max((partial_match_length(self._held, tag) for tag in self._breaks), default=0)
        text = self._held.rstrip()
        for tag in self._last_tags:
            whole = len(self._held) - len(text) + len(tag) if text.endswith(tag) else 0
            num_begun = max(num_begun, whole, partial_match_length(self._held, tag))
        yield from self._release(len(self._held) - num_begun, Part.ANSWER)

    def _num_spaces(self) -> int:
        """Length of the white space at the beginning of the held text."""
        return len(self._held) - len(self._held.lstrip())

    def _release(self, length: int, part: Part) -> Iterator[tuple[str, Part]]:
        """Assign the first characters of the held text to a part."""
        taken, self._held = self._held[:length], self._held[length:]
        if text := taken.translate(self._shown):
            yield text, part


def answer_text(text: str, spans: Sequence[AnswerSpan]) -> str:
    """Return the answer without reasoning; empty if all of the text is reasoning."""
    return joined_spans(text, spans, is_reasoning=False)


def reasoning_text(text: str, spans: Sequence[AnswerSpan]) -> str:
    """Return the reasoning; empty if there is none."""
    return joined_spans(text, spans, is_reasoning=True)


def joined_spans(text: str, spans: Sequence[AnswerSpan], is_reasoning: bool) -> str:
    """Join all spans of a kind by blank lines."""
    parts = (text[one.start : one.end] for one in spans if one.is_reasoning is is_reasoning)
    return "\n\n".join(parts)
