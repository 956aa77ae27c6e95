"""What a start finds: a version that runs, none, a damaged one, a newer one, or one that fails."""

import enum
from dataclasses import dataclass

from installer.bootstrap.current import read_current
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.program import Program
from installer.bootstrap.version import is_newer

FAILED_STARTS = 2


class Kind(enum.Enum):
    """What is to be decided before a start."""

    READY = "start it"
    FIRST = "nothing is installed yet"
    DAMAGED = "what is installed isn't complete any more"
    NEWER = "the package brought a newer version"
    FAILING = "it failed to start, again and again"


@dataclass(frozen=True, slots=True)
class Situation:
    """What a start finds.

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
    """Find out what holds, from a few small files.

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
