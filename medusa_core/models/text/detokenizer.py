"""Incremental detokenization: every token yields the bytes of the characters it completes."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from medusa_core.models.text.tokenizer import Tokenizer


class Detokenizer:
    """Converts tokens to pieces of UTF-8 whose concatenation is the decoded text.

    Attributes:
        is_open: Whether the last character is incomplete.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._pieces = tokenizer.pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._strips = tokenizer.strips_space
        self.is_open = False

    def push(self, token_id: int) -> bytes:
        """Return the bytes of the characters that a token completes."""
        piece = self._pieces[token_id]
        if self.is_open or not piece.isascii():  # else there is nothing to decode
            piece = self._decoder.decode(piece).encode()
            self.is_open = bool(self._decoder.getstate()[0])
        if self._strips and piece:
            self._strips = False
            piece = piece.removeprefix(b" ")
        return piece

    def push_all(self, token_ids: Sequence[int]) -> tuple[tuple[bytes, ...], bytes]:
        """Push several tokens; return the bytes of each, and all bytes."""
        pieces = tuple(map(self._pieces.__getitem__, token_ids))
        text = b"".join(pieces)
        if self.is_open or self._strips or not text.isascii():
            pieces = tuple(map(self.push, token_ids))
            text = b"".join(pieces)
        return pieces, text

    def flush(self) -> bytes:
        """Return U+FFFD for an incomplete character; otherwise nothing."""
        self.is_open = False
        return self._decoder.decode(b"", final=True).encode()
