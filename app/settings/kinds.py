"""Types of setting values, which validate stored values. No Qt."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class SettingKind(Protocol[T]):
    """Type of a setting's value."""

    def read(self, raw: Any) -> T:
        """Parse a stored value.

        Raises:
            ValueError: The value is invalid.
            TypeError: The value has a wrong type.
            KeyError: A key is missing.
        """

    def write(self, value: T) -> Any:
        """Convert a value to JSON."""


@dataclass(frozen=True, slots=True)
class ToggleKind:
    """A boolean."""

    def read(self, raw: Any) -> bool:
        if not isinstance(raw, bool):
            raise TypeError(f"{raw!r} is neither true nor false")
        return raw

    def write(self, value: bool) -> Any:
        return value


@dataclass(frozen=True, slots=True)
class ChoiceKind:
    """One of several options.

    Attributes:
        options: Stored value and label of each option, in display order.
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
        least: Minimum.
        most: Maximum.
        step: Step size of the editor.
        suffix: Unit after the number.
        minimum_text: Text shown for the minimum; empty for the number.
        is_clamped: Whether numbers out of range are clamped; else they are invalid.
        scale: Factor of the displayed number, such as 100 for percent.
    """

    least: float
    most: float
    step: float
    suffix: str = ""
    minimum_text: str = ""
    is_clamped: bool = False
    scale: float = 1.0

    def read(self, raw: Any) -> float:
        number = float(raw)
        if self.is_clamped and math.isfinite(number):
            return min(self.most, max(self.least, number))
        if not self.least <= number <= self.most:
            raise ValueError(f"{raw!r} is out of range")
        return number

    def write(self, value: float) -> Any:
        return value


@dataclass(frozen=True, slots=True)
class TextKind:
    """A text that matches a pattern.

    Attributes:
        pattern: Regular expression for the whole text.
    """

    pattern: str = r"[^\0]{0,4096}"

    def read(self, raw: Any) -> str:
        if not isinstance(raw, str) or not re.fullmatch(self.pattern, raw):
            raise ValueError(f"{raw!r} isn't of this form")
        return raw

    def write(self, value: str) -> Any:
        return value


class FolderKind(TextKind):
    """A folder; empty for the default one."""


class FontKind(TextKind):
    """An installed font; empty for the bundled one."""


class DeviceKind(TextKind):
    """A torch device; empty selects the best one."""


@dataclass(frozen=True, slots=True)
class RecordKind(Generic[T]):
    """A structured value without an editor.

    Attributes:
        from_json: Parses the JSON value.
        as_json: Converts to a JSON value.
    """

    from_json: Callable[[Any], T]
    as_json: Callable[[T], Any]

    def read(self, raw: Any) -> T:
        return self.from_json(raw)

    def write(self, value: T) -> Any:
        return self.as_json(value)
