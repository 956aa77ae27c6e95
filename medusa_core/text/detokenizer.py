"""Text as it streams: every token gets the bytes of the characters that it completes."""

from __future__ import annotations

import codecs

from medusa_core.text.tokenizer import Tokenizer


class Detokenizer:
    """Turns tokens into UTF-8 pieces; concatenated they equal the decoded text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._strips = tokenizer.strips_space

    @property
    def is_open(self) -> bool:
        """Has a character begun that isn't complete?"""
        return bool(self._decoder.getstate()[0])

    def push(self, token_id: int) -> bytes:
        """Bytes that this token completes; empty while a character stays open."""
        piece = self._decoder.decode(self._tokenizer.bytes_of(token_id))
        if self._strips and piece:
            self._strips = False
            piece = piece.removeprefix(" ")
        return piece.encode()

    def flush(self) -> bytes:
        """What an unfinished character leaves behind: U+FFFD, or nothing."""
        return self._decoder.decode(b"", final=True).encode()
