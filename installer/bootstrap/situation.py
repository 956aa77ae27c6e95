"""What a start finds: a version that runs, none, a damaged one, a newer one, or one that fails."""

import enum
from dataclasses import dataclass

from installer.bootstrap.folders import ProgramData
from installer.bootstrap.program import Program
from installer.bootstrap.records import read_current
from installer.bootstrap.version import is_newer

FAILED_STARTS = 2


class Kind(enum.Enum):
    """Decision that is needed before a start."""

    READY = "start it"
    FIRST = "nothing is installed yet"
    DAMAGED = "what is installed isn't complete any more"
    NEWER = "the package brought a newer version"
    FAILING = "it failed to start, again and again"


@dataclass(frozen=True, slots=True)
class Situation:
    """Situation at a start.

    Attributes:
        kind: what is to be decided.
        shipped: the version that the package brought.
        current: the version that runs; None if there is none.
        before: the version that ran before and can be started; None if there is none.
    """

    kind: Kind
    shipped: str
    current: str | None
    before: str | None


def look(data: ProgramData, program: Program) -> Situation:
    """Determine the situation from a few small files.

    Raises:
        SetupError: the package is damaged.
    """
    record = read_current(data)
    shipped = program.version()
    version, before = record.version, record.before
    if before is not None and not data.environment(before).is_complete:
        before = None
    if version is None:
        return Situation(Kind.FIRST, shipped, None, None)
    if not data.environment(version).is_complete:
        return Situation(Kind.DAMAGED, shipped, version, before)
    if record.failed_starts >= FAILED_STARTS:
        return Situation(Kind.FAILING, shipped, version, before)
    if is_newer(shipped, version) and shipped != record.failed:
        return Situation(Kind.NEWER, shipped, version, before)
    return Situation(Kind.READY, shipped, version, before)


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of one situation.

    Attributes:
        title: the headline.
        explanation: a sentence or two.
        go: on the button that begins.
        leave: on the button that doesn't.
    """

    title: str
    explanation: str
    go: str
    leave: str


def texts_for(found: Situation) -> Texts:
    """Return the texts of a situation."""
    if found.kind is Kind.FIRST:
        return Texts(
            "Set up Medusa Chat",
            "Language models run on this computer. What they need is fetched once, for you alone; "
            "nothing else on this computer changes.",
            "Start",
            "Cancel",
        )
    if found.kind is Kind.NEWER:
        return Texts(
            f"Medusa Chat {found.shipped} is here",
            f"It is set up beside version {found.current}, which still runs if this fails. "
            "Conversations, models and settings stay as they are.",
            "Update",
            f"Use {found.current}",
        )
    if found.kind is Kind.FAILING and found.before is None:
        return Texts(
            f"Medusa Chat {found.current} failed to start twice",
            "A repair makes it afresh. Conversations, models and settings stay as they are.",
            "Repair",
            "Try again",
        )
    if found.kind is Kind.FAILING:
        return Texts(
            f"Medusa Chat {found.current} failed to start twice",
            f"Version {found.before} is still here. Conversations, models and settings stay as "
            "they are.",
            f"Use {found.before}",
            "Try again",
        )
    return Texts(
        "Medusa Chat needs a repair",
        f"Files of version {found.current} are missing. They are made afresh. Conversations, "
        "models and settings stay as they are.",
        "Repair",
        "Cancel",
    )
