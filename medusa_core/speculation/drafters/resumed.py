"""A source's memory of one conversation: taken up by each answer, or made by the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from medusa_core.speculation.drafters.source import Remembered, SourceMemory, num_common


class TextMemory(Protocol):
    """What is kept of a text's tokens.

    Attributes:
        token_ids: Tokens that it knows, from the first on.
    """

    token_ids: list[int]

    def keep(self, length: int) -> None:
        """Forget tokens from `length` on."""

    def fork(self, num_tokens: int) -> Remembered:
        """As `Remembered` has it."""

    def close(self) -> None:
        """Give back what it holds."""


M = TypeVar("M", bound=TextMemory)


class Resumed(Generic[M]):
    """The memory that an answer goes on with."""

    def __init__(self, name: str, kind: type[M], make: Callable[[], M]) -> None:
        """Know nothing yet.

        Args:
            name: Of the source, by which a conversation knows its memory.
            kind: Of memory; one of another kind isn't taken up.
            make: Makes an empty one. May raise OutOfMemoryError.
        """
        self._name, self._kind, self._make = name, kind, make
        self._memory: M | None = None

    def begin(self) -> None:
        """Start an answer, which may resume."""
        self._memory = None

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        """Go on with what a conversation remembers.

        Args:
            token_ids: The prompt's, as the memory counts them.
            memory: Of the conversation; it keeps what is needed for the next answer.

        Returns:
            How many of them are known.
        """
        known = memory.get(self._name)
        if not isinstance(known, self._kind):
            known = memory[self._name] = self._make()
        same = num_common(known.token_ids, token_ids)
        known.keep(same)
        self._memory = known
        return same

    def get(self) -> M:
        """The memory; where nobody resumed, that of an answer of its own."""
        if self._memory is None:
            self._memory = self._make()
        return self._memory

    def keep(self, length: int) -> None:
        """Forget tokens from `length` on."""
        if self._memory is not None:
            self._memory.keep(length)
