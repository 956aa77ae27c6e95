"""A check, and its result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from medusa_core.i18n import tr
from medusa_core.system.installation import repair_command

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """Result of a check.

    Attributes:
        name: Subject of the check.
        ok: Whether it works.
        message: Facts, or what is wrong.
        hint: What to do about it; may be empty.
    """

    name: str
    ok: bool
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """A check that can be run.

    Attributes:
        name: Subject of the check.
        run: Runs it.
    """

    name: str
    run: Callable[[], Check]


def run_specs(specs: Iterable[CheckSpec]) -> tuple[Check, ...]:
    """Run all checks; one that raises becomes a failed check."""
    return tuple(_guarded(one) for one in specs)


def _guarded(spec: CheckSpec) -> Check:
    """Run a check; an exception becomes a failed check."""
    try:
        return spec.run()
    except Exception as error:
        log.info("the check %s failed", spec.name, exc_info=True)
        reason = tr("{0}: {1}", type(error).__name__, error)
        return Check(spec.name, False, tr("This can't be checked: {0}.", reason), install_again())


def install_again() -> str:
    """Return the hint for a missing or broken part of the program."""
    return tr("Install Medusa Chat again: {0}", repair_command())
