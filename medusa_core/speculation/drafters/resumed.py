"""A source's state of one conversation: created by the first answer, resumed by later ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from medusa_core.speculation.drafters.source import Remembered, SourceMemory, num_common


class TextMemory(Protocol):
    """State of a text's tokens.

    Attributes:
        token_ids: The text's first tokens, of which it has a state.
    """

    token_ids: list[int]

    def keep(self, length: int) -> None:
        """Drop the tokens from `length` on."""

    def fork(self, num_tokens: int) -> Remembered:
        """See `Remembered`."""

    def close(self) -> None:
        """Release its memory."""


M = TypeVar("M", bound=TextMemory)


class Resumed(Generic[M]):
    """The state that an answer continues from."""

    def __init__(self, name: str, kind: type[M], make: Callable[[], M]) -> None:
        """Start without state.

        Args:
            name: Name of the source, the key of its state in a conversation.
            kind: Class of the state; one of another class is replaced.
            make: Makes an empty state. May raise OutOfMemoryError.
        """
        self._name, self._kind, self._make = name, kind, make
        self._memory: M | None = None

    def begin(self) -> None:
        """Start an answer, which may call `resume`."""
        self._memory = None

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        """Continue from a conversation's state.

        Args:
            token_ids: The prompt's tokens, as the state counts them.
            memory: The conversation's states by source; updated for the next answer.

        Returns:
            Length of the prefix of which there is a state.
        """
        known = memory.get(self._name)
        if not isinstance(known, self._kind):
            known = memory[self._name] = self._make()
        same = num_common(known.token_ids, token_ids)
        known.keep(same)
        self._memory = known
        return same

    def get(self) -> M:
        """The state; without `resume`, a new one."""
        if self._memory is None:
            self._memory = self._make()
        return self._memory

    def keep(self, length: int) -> None:
        """Drop the tokens from `length` on."""
        if self._memory is not None:
            self._memory.keep(length)
