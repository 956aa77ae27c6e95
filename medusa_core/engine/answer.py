"""The growing text of one answer, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from medusa_core.chats.repetition import CHECK_EVERY, is_repetitive
from medusa_core.messages import StopReason
from medusa_core.models.text.detokenizer import Detokenizer


class AppendedRun(NamedTuple):
    """The kept part of a run of tokens.

    Attributes:
        pieces: UTF-8 that each kept token completes; one for each kept token.
        stop_reason: Why the answer ends here; None if it continues.
    """

    pieces: tuple[bytes, ...]
    stop_reason: StopReason | None


class AnswerBuffer:
    """Collects tokens until EOS, a stop string, repetition or the token limit ends the answer.

    Attributes:
        token_ids: Tokens so far, EOS included.
        num_visible_bytes: Bytes of the text that may be shown; a possible start of a stop string is
            held back.
    """

    def __init__(
        self,
        detokenizer: Detokenizer,
        eos_token_ids: frozenset[int],
        stop: Sequence[str],
        max_tokens: int,
        limit_reason: StopReason,
        stops_on_repetition: bool = False,
    ) -> None:
        self._detokenizer = detokenizer
        self._eos = eos_token_ids
        self._stop = tuple(text.encode() for text in stop if text)
        self._max_tokens = max_tokens
        self._limit_reason = limit_reason
        self._stops_on_repetition = stops_on_repetition
        self._num_given = 0
        self._text = bytearray()
        self.token_ids: list[int] = []
        self.num_visible_bytes = 0

    @property
    def text(self) -> str:
        """The text that may be shown."""
        return self._text[: self.num_visible_bytes].decode("utf-8", "replace")

    @property
    def num_left(self) -> int:
        """Number of tokens left to the limit."""
        return self._max_tokens - len(self.token_ids)

    def resume(self, token_ids: Sequence[int]) -> tuple[bytes, ...]:
        """Begin with given tokens, which don't end the answer or count towards the limit.

        Returns:
            UTF-8 that each of them completes.
        """
        pieces, text = self._detokenizer.push_all(token_ids)
        self._text += text
        self.token_ids.extend(token_ids)
        self._max_tokens += len(token_ids)
        self._num_given = len(self.token_ids)
        self.num_visible_bytes = len(self._text) - self._num_held_back()
        return pieces

    def append(self, token_ids: Sequence[int]) -> AppendedRun:
        """Append a run of tokens, up to one that ends the answer."""
        length = len(self.token_ids) + len(token_ids)
        may_end = length >= self._max_tokens or self._stop or not self._eos.isdisjoint(token_ids)
        if not may_end and not self._crosses_check(len(self.token_ids), length):
            return self._append_all(token_ids)
        pieces: list[bytes] = []
        reason = None
        for token_id in token_ids:
            piece, reason = self._append_one(token_id)
            pieces.append(piece)
            if reason is not None:
                break
        if reason is None:
            self.num_visible_bytes = len(self._text) - self._num_held_back()
        return AppendedRun(tuple(pieces), reason)

    def _append_all(self, token_ids: Sequence[int]) -> AppendedRun:
        """Append a run that can't end the answer."""
        pieces, text = self._detokenizer.push_all(token_ids)
        self.token_ids.extend(token_ids)
        self._text += text
        self.num_visible_bytes = len(self._text)
        return AppendedRun(pieces, None)

    def finish(self) -> None:
        """End the answer here, so that nothing is held back."""
        self.num_visible_bytes = len(self._text)

    def _append_one(self, token_id: int) -> tuple[bytes, StopReason | None]:
        """Append a token. Returns the UTF-8 that it completes, and why the answer ends."""
        self.token_ids.append(token_id)
        ends = token_id in self._eos
        is_last = ends or self.num_left <= 0
        piece = self._detokenizer.push(token_id)
        if is_last:
            piece += self._detokenizer.flush()
        before = len(self._text)
        self._text += piece
        cut = self._find_stop(before)
        if cut is not None:
            self.num_visible_bytes = cut
            return piece, StopReason.STOP_STRING
        if is_last:
            self.finish()
            return piece, StopReason.EOS if ends else self._limit_reason
        length = len(self.token_ids)
        if self._crosses_check(length - 1, length) and is_repetitive(
            self.token_ids[self._num_given :]
        ):
            self.finish()
            return piece, StopReason.REPETITION
        return piece, None

    def _crosses_check(self, before: int, after: int) -> bool:
        """Whether a check for repetition is due between two lengths of the answer.

        Checks are due at fixed lengths, so that an answer ends at the same token however many
        tokens a step yields.
        """
        return self._stops_on_repetition and after // CHECK_EVERY > before // CHECK_EVERY

    def _find_stop(self, before: int) -> int | None:
        """Start of the earliest stop string that ends after `before`."""
        hits = (self._text.find(stop, max(0, before - len(stop) + 1)) for stop in self._stop)
        return min((start for start in hits if start >= 0), default=None)

    def _num_held_back(self) -> int:
        """Length of the longest suffix of the text that begins a stop string."""
        longest = 0
        for stop in self._stop:
            for length in range(min(len(stop) - 1, len(self._text)), longest, -1):
                if self._text.endswith(stop[:length]):
                    longest = length
                    break
        return longest
