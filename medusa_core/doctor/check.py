"""The outcome of one check."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from medusa_core.system.installation import command_to_mend

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """What one check found.

    Attributes:
        name: What was looked at.
        ok: Whether it works.
        message: What there is, or what is wrong.
        hint: What to do about it; may be empty.
    """

    name: str
    ok: bool
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Examination:
    """Something to look at.

    Attributes:
        name: What.
        look: Looks, and says what there is.
    """

    name: str
    look: Callable[[], Check]


def examine(examinations: Iterable[Examination]) -> tuple[Check, ...]:
    """Make all checks; one that raises becomes a failed check."""
    return tuple(_guarded(one) for one in examinations)


def _guarded(one: Examination) -> Check:
    try:
        return one.look()
    except Exception as error:
        log.info("the check %s failed", one.name, exc_info=True)
        reason = f"{type(error).__name__}: {error}"
        return Check(one.name, False, f"This can't be checked: {reason}.", install_again())


def install_again() -> str:
    """The cure where a part of the program is missing or broken."""
    return f"Install Medusa Chat again: {command_to_mend()}"
