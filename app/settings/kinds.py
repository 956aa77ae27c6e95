"""Kinds of settings: what a stored value must look like. No Qt."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class SettingKind(Protocol[T]):
    """What a setting may be."""

    def read(self, raw: Any) -> T:
        """A stored value.

        Raises:
            ValueError: It makes no sense.
            TypeError: It is of another kind.
            KeyError: It lacks something.
        """

    def write(self, value: T) -> Any:
        """The value as JSON holds it."""


@dataclass(frozen=True, slots=True)
class ToggleKind:
    """Yes or no."""

    def read(self, raw: Any) -> bool:
        if not isinstance(raw, bool):
            raise TypeError(f"{raw!r} is neither true nor false")
        return raw

    def write(self, value: bool) -> Any:
        return value


@dataclass(frozen=True, slots=True)
class ChoiceKind:
    """One of a few words.

    Attributes:
        options: Stored word and its label, in the order of the list.
    """

    options: tuple[tuple[str, str], ...]

    def read(self, raw: Any) -> str:
        if raw not in [word for word, _ in self.options]:
            raise ValueError(f"{raw!r} is no choice")
        return str(raw)

    def write(self, value: str) -> Any:
        return value


@dataclass(frozen=True, slots=True)
class NumberKind:
    """A number in a range.

    Attributes:
        least: The smallest.
        most: The largest.
        step: From one to the next.
        suffix: Unit after the number.
        word_for_least: What the smallest is called; empty for itself.
        is_brought_back: A number outside becomes the nearest one inside, else it makes no sense.
        scale: What is shown for 1: 100 for percent.
    """

    least: float
    most: float
    step: float
    suffix: str = ""
    word_for_least: str = ""
    is_brought_back: bool = False
    scale: float = 1.0

    def read(self, raw: Any) -> float:
        number = float(raw)
        if self.is_brought_back and math.isfinite(number):
            return min(self.most, max(self.least, number))
        if not self.least <= number <= self.most:
            raise ValueError(f"{raw!r} is out of range")
        return number

    def write(self, value: float) -> Any:
        return value


@dataclass(frozen=True, slots=True)
class TextKind:
    """Words of a certain form.

    Attributes:
        pattern: The whole text matches this.
    """

    pattern: str = r"[^\0]{0,4096}"

    def read(self, raw: Any) -> str:
        if not isinstance(raw, str) or not re.fullmatch(self.pattern, raw):
            raise ValueError(f"{raw!r} isn't of this form")
        return raw

    def write(self, value: str) -> Any:
        return value


class FolderKind(TextKind):
    """A folder; empty for the usual one."""


class FontKind(TextKind):
    """A font that is installed; empty for the shipped one."""


class DeviceKind(TextKind):
    """A torch device; empty for the best there is."""


@dataclass(frozen=True, slots=True)
class RecordKind(Generic[T]):
    """Something with a form of its own, which no page shows.

    Attributes:
        from_json: Reads it.
        as_json: Writes it.
    """

    from_json: Callable[[Any], T]
    as_json: Callable[[T], Any]

    def read(self, raw: Any) -> T:
        return self.from_json(raw)

    def write(self, value: T) -> Any:
        return self.as_json(value)
