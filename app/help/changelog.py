"""The changelog: what a user notices of each version, written by hand. No Qt.

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
    """A version and what is new in it.

    Attributes:
        version: Its number.
        date: The day it came out, as year, month and day.
        changes: A sentence each, in Markdown.
    """

    version: str
    date: str
    changes: tuple[str, ...]


def own_releases() -> tuple[Release, ...]:
    """All versions of this program; none where the file is missing."""
    try:
        return read_changelog(changelog_file().read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        log.warning("what is new isn't known: %s", error)
        return ()


def read_changelog(text: str) -> tuple[Release, ...]:
    """All versions, in the order of the text, which begins with the newest."""
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
    """What came after a version, up to the one that runs.

    Args:
        releases: All of them.
        seen: The version whose news are known; empty for none before the current one.
        current: The version that runs.
    """
    least, most = number_of(seen), number_of(current)
    return tuple(
        one
        for one in releases
        if (least < number_of(one.version) <= most if seen else number_of(one.version) == most)
    )


def number_of(version: str) -> tuple[int, ...]:
    """A version as numbers that can be compared."""
    return tuple(map(int, re.findall(r"\d+", version)))
