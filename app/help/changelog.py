"""Parser of the changelog for users. No Qt.

Its form: `## VERSION (DATE)`, below it a line for each change that begins with `- `.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass

from medusa_core.api import changelog_file

log = logging.getLogger(__name__)

_HEAD = re.compile(r"## (\d+(?:\.\d+)*) \((\d{4}-\d{2}-\d{2})\)")
_CHANGE = "- "


@dataclass(frozen=True, slots=True)
class Release:
    """A version with its changes.

    Attributes:
        version: Its number.
        date: Release date, as year, month and day.
        changes: Sentences in Markdown.
    """

    version: str
    date: str
    changes: tuple[str, ...]


def own_releases() -> tuple[Release, ...]:
    """Return all releases of this program; none if the file is missing."""
    try:
        return read_changelog(changelog_file().read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        log.warning("what is new isn't known: %s", error)
        return ()


def read_changelog(text: str) -> tuple[Release, ...]:
    """Parse a changelog; returns the releases, the newest first."""
    found: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        if head := _HEAD.fullmatch(line.strip()):
            found.append((head[1], head[2], []))
        elif found and line.startswith(_CHANGE):
            found[-1][2].append(line.removeprefix(_CHANGE).strip())
        elif found and found[-1][2] and line.startswith("  "):  # goes on in the next line
            found[-1][2][-1] += f" {line.strip()}"
    return tuple(Release(version, date, tuple(changes)) for version, date, changes in found)


def released_since(releases: Iterable[Release], seen: str, current: str) -> tuple[Release, ...]:
    """Return the releases after a version, up to the current one.

    Args:
        releases: All releases.
        seen: Last version that the user has seen; empty to return only the current one.
        current: Version of this program.
    """
    least, most = number_of(seen), number_of(current)
    return tuple(
        one
        for one in releases
        if (least < number_of(one.version) <= most if seen else number_of(one.version) == most)
    )


def number_of(version: str) -> tuple[int, ...]:
    """Convert a version to numbers that can be compared."""
    return tuple(map(int, re.findall(r"\d+", version)))
