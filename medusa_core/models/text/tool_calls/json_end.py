"""Where a JSON object that comes in pieces ends."""

from __future__ import annotations

import re

_NOTABLE = re.compile(r'[{}\[\]"\\]')


class JsonEnd:
    """Counts brackets outside of strings."""

    def __init__(self, depth: int = 0) -> None:
        """Begin.

        Args:
            depth: Brackets that are open already.
        """
        self._depth = depth
        self._in_string = False
        self._escaped_at = -1  # a character that a backslash makes part of its string

    def find(self, text: str) -> int:
        """Take more of the text.

        Returns:
            The place behind the last bracket; −1 while it hasn't come.
        """
        for found in _NOTABLE.finditer(text):
            place, character = found.start(), found.group()
            if place == self._escaped_at:
                continue
            if self._in_string:
                if character == "\\":
                    self._escaped_at = place + 1
                elif character == '"':
                    self._in_string = False
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    return place + 1
        self._escaped_at -= len(text)
        return -1
