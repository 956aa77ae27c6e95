"""What a setting of an answer is: one declaration, from which all that shows or keeps it is made.

The window's panel, the presets' file, the command line's help and the tests read it. A new sampling
setting is a field of `GenerateSettings`, what a rule does with it, and its declaration in
`chats.settings`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from medusa_core.messages import DrafterChoice, RuleChoice

_KEY = "setting"


class SettingGroup(Enum):
    """Where a setting stands in the panel."""

    SAMPLING = "Sampling"
    LENGTH = "Length and stop"
    SPEED_UP = "Speed-up"


class When(Enum):
    """When a setting does anything; the value is what to say where it doesn't."""

    ALWAYS = ""
    DRAWS = "Greedy always takes the likeliest token, so there is nothing to draw."
    NOT_EXACT = "Only Typical uses this: it accepts guesses that are merely likely."
    DRAFTS = "Plain decoding guesses nothing."
    LOOKS_AHEAD = "Only Lookahead uses this."

    @property
    def is_of_one_choice(self) -> bool:
        """Whether a single rule or drafter has the setting: beside others nobody looks for it."""
        return self in (When.NOT_EXACT, When.LOOKS_AHEAD)

    def lack(self, rule: RuleChoice | None, drafter: DrafterChoice | None) -> str:
        """Why a setting does nothing under these; empty if it does something."""
        applies = (
            self is When.ALWAYS
            or (self is When.DRAWS and (rule is None or rule.draws))
            or (self is When.NOT_EXACT and (rule is None or not rule.is_exact))
            or (self is When.DRAFTS and (drafter is None or drafter.drafts))
            or (self is When.LOOKS_AHEAD and (drafter is None or drafter.looks_ahead))
        )
        return "" if applies else self.value


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that is a number.

    Attributes:
        label: What it is called.
        group: Where it stands.
        low: Smallest value.
        high: Largest value.
        step: From one value to the next.
        default: What it is without a choice; whole numbers have a whole one.
        meaning: What it does, in one sentence.
        drafting: What it does to drafting, in one sentence.
        when: When it does anything.
        off: The value at which it does nothing; None where there is none.
        off_text: What to show for that value.
    """

    label: str
    group: SettingGroup
    low: float
    high: float
    step: float
    default: float
    meaning: str
    drafting: str
    when: When = When.ALWAYS
    off: float | None = None
    off_text: str = "off"

    @property
    def is_whole(self) -> bool:
        """Whether it counts something."""
        return isinstance(self.default, int)

    @property
    def decimals(self) -> int:
        """Digits behind the point."""
        return 0 if self.is_whole else max(0, -math.floor(math.log10(self.step)))

    def read(self, value: object) -> float:
        """A value from a file.

        Raises:
            TypeError: It is no number.
            ValueError: It is out of range, or no whole number.
        """
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{self.label} is {value!r}, which is no number")
        if not self.low <= value <= self.high:
            raise ValueError(f"{self.label} is {value!r}, not {self.low:g} to {self.high:g}")
        if not self.is_whole:
            return float(value)
        if value != int(value):
            raise ValueError(f"{self.label} is {value!r}, which is no whole number")
        return int(value)

    @property
    def help(self) -> str:
        """For the command line."""
        off = "" if self.off is None else f"; {self.off:g}: {self.off_text}"
        return f"{self.meaning[0].lower()}{self.meaning[1:].rstrip('.')}{off}"


def declared(setting: Setting) -> Any:
    """A dataclass field with a setting's default and its declaration."""
    return field(default=setting.default, metadata={_KEY: setting})


def declaration(metadata: Any) -> Setting | None:
    """The declaration in a field's metadata, or None."""
    found: Setting | None = metadata.get(_KEY)
    return found


ReadValue = Callable[[Any], Any]
