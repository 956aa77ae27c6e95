"""Declarations of generation settings, for the window's panel, presets, command line and tests.

A new sampling setting needs a field of `GenerateSettings`, its use in the rules, and a declaration
in `chats.settings`.
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
    """Group of a setting in the panel."""

    SAMPLING = "Sampling"
    LENGTH = "Length and stop"
    SPEED_UP = "Speed-up"


class When(Enum):
    """Condition under which a setting has an effect; the value explains why it has none."""

    ALWAYS = ""
    DRAWS = "Greedy always takes the likeliest token, so there is nothing to draw."
    NOT_EXACT = "Only Typical uses this: it accepts draft tokens that are merely likely."
    DRAFTS = "Plain decoding drafts nothing."
    LOOKS_AHEAD = "Only Lookahead uses this."

    @property
    def is_of_one_choice(self) -> bool:
        """Whether only one rule or drafter uses the setting; it is hidden with all others."""
        return self in (When.NOT_EXACT, When.LOOKS_AHEAD)

    def reason_ignored(self, rule: RuleChoice | None, drafter: DrafterChoice | None) -> str:
        """Return why a setting has no effect with a rule and a drafter; empty if it has one."""
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
    """Declaration of a numeric setting: label, range, default and help.

    Attributes:
        label: Label of the setting.
        group: Group in the panel.
        low: Smallest value.
        high: Largest value.
        step: Increment of the control.
        default: Default value; an int for integer settings.
        meaning: Effect in one sentence.
        drafting: Effect on drafting in one sentence.
        when: Condition under which it has an effect.
        off: Value without effect; None if there is none.
        off_text: Text for that value.
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
        """Whether the setting is an integer."""
        return isinstance(self.default, int)

    @property
    def decimals(self) -> int:
        """Digits after the decimal point."""
        return 0 if self.is_whole else max(0, -math.floor(math.log10(self.step)))

    def read(self, value: object) -> float:
        """Validate a value of a file.

        Raises:
            TypeError: The value is no number.
            ValueError: The value is out of range, or not an integer.
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
        """Help text of the command line."""
        off = "" if self.off is None else f"; {self.off:g}: {self.off_text}"
        return f"{self.meaning[0].lower()}{self.meaning[1:].rstrip('.')}{off}"


def declared(setting: Setting) -> Any:
    """Return a dataclass field with a setting's default and declaration."""
    return field(default=setting.default, metadata={_KEY: setting})


def declaration(metadata: Any) -> Setting | None:
    """Return the declaration in a field's metadata, or None."""
    found: Setting | None = metadata.get(_KEY)
    return found


ReadValue = Callable[[Any], Any]
