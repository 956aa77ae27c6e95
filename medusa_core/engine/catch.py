"""Work of many, in which who fails leaves, and the others go on."""

from __future__ import annotations

from typing import Generic, TypeVar

S = TypeVar("S")


class Catch(Generic[S]):
    """A block of work of one or more, whose error doesn't end the others' work."""

    __slots__ = ("_errors", "_sequences")

    def __init__(self, errors: dict[S, BaseException], *sequences: S) -> None:
        """Note whose work it is.

        Args:
            errors: Takes the error, whatever it is: who runs the step decides what it means.
            sequences: Who fails by it.
        """
        self._errors, self._sequences = errors, sequences

    def __enter__(self) -> None:
        """Begin the work."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None:
            self._errors.update(dict.fromkeys(self._sequences, error))
        return True
