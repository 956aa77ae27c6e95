"""Text as it streams: every token gets the bytes of the characters that it completes."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from medusa_core.models.text.tokenizer import Tokenizer


class Detokenizer:
    """Turns tokens into UTF-8 pieces; concatenated they equal the decoded text.

    Attributes:
        is_open: A character has begun that isn't complete.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._pieces = tokenizer.pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._strips = tokenizer.strips_space
        self.is_open = False

    def push(self, token_id: int) -> bytes:
        """Bytes that this token completes; empty while a character stays open."""
        piece = self._pieces[token_id]
        if self.is_open or not piece.isascii():  # else there is nothing to decode
            piece = self._decoder.decode(piece).encode()
            self.is_open = bool(self._decoder.getstate()[0])
        if self._strips and piece:
            self._strips = False
            piece = piece.removeprefix(b" ")
        return piece

    def push_all(self, token_ids: Sequence[int]) -> tuple[tuple[bytes, ...], bytes]:
        """As `push`, of each of some tokens; and all their bytes."""
        pieces = tuple(map(self._pieces.__getitem__, token_ids))
        text = b"".join(pieces)
        if self.is_open or self._strips or not text.isascii():
            pieces = tuple(map(self.push, token_ids))
            text = b"".join(pieces)
        return pieces, text

    def flush(self) -> bytes:
        """What an unfinished character leaves behind: U+FFFD, or nothing."""
        self.is_open = False
        return self._decoder.decode(b"", final=True).encode()
