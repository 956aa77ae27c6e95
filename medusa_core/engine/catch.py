"""Failure isolation: an error in one sequence doesn't end the others."""

from __future__ import annotations

from typing import Generic, TypeVar

S = TypeVar("S")


class Catch(Generic[S]):
    """Context manager that records an error of some sequences instead of raising it."""

    __slots__ = ("_errors", "_sequences")

    def __init__(self, errors: dict[S, BaseException], *sequences: S) -> None:
        """Isolate some sequences.

        Args:
            errors: Receives any error, by sequence.
            sequences: The sequences that an error in the block fails.
        """
        self._errors, self._sequences = errors, sequences

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None:
            self._errors.update(dict.fromkeys(self._sequences, error))
        return True
