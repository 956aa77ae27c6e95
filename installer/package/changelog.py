"""`docs/changelog.md` as other formats want it: its versions, their days and their lines."""

import datetime
import re
from dataclasses import dataclass
from xml.sax.saxutils import escape

from installer.layout import Layout

_HEADING = re.compile(r"^## (\S+) \((\d{4}-\d{2}-\d{2})\)$")


@dataclass(frozen=True, slots=True)
class Release:
    """A version.

    Attributes:
        version: its name.
        day: when it was made.
        lines: what a user notices, one line a change.
    """

    version: str
    day: datetime.date
    lines: tuple[str, ...]


def read_releases(layout: Layout) -> tuple[Release, ...]:
    """Return all versions, the newest first."""
    text = (layout.root / "docs" / "changelog.md").read_text(encoding="utf-8")
    releases: list[Release] = []
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            day = datetime.date.fromisoformat(heading[2])
            releases.append(Release(heading[1], day, ()))
        elif line.startswith("- ") and releases:
            last = releases[-1]
            releases[-1] = Release(last.version, last.day, (*last.lines, line[2:].strip()))
        elif line.startswith("  ") and releases and releases[-1].lines:  # goes on in the next line
            last = releases[-1]
            longer = f"{last.lines[-1]} {line.strip()}"
            releases[-1] = Release(last.version, last.day, (*last.lines[:-1], longer))
    return tuple(releases)


def seconds_of(release: Release) -> int:
    """Return noon of the release's day in seconds since 1970, the time of all packed files."""
    noon = datetime.time(12, tzinfo=datetime.UTC)
    return int(datetime.datetime.combine(release.day, noon).timestamp())


def appstream_releases(releases: tuple[Release, ...]) -> str:
    """Return the `<releases>` of an AppStream file."""
    written = []
    for one in releases:
        items = "".join(f"          <li>{escape(_plain(line))}</li>\n" for line in one.lines)
        changes = f"      <description>\n        <ul>\n{items}        </ul>\n      </description>\n"
        head = f'    <release version="{one.version}" date="{one.day}">\n'
        written.append(f"{head}{changes if items else ''}    </release>\n")
    return "  <releases>\n" + "".join(written) + "  </releases>\n"


def debian_changelog(releases: tuple[Release, ...], maintainer: str) -> str:
    """Return the content of `debian/changelog`."""
    entries = []
    for one in releases:
        lines = "\n".join(_wrapped(_plain(line)) for line in one.lines)
        day = datetime.datetime.fromtimestamp(seconds_of(one), datetime.UTC)
        # Names of days and months in English, whatever the locale.
        when = f"{_DAYS[day.weekday()]}, {day.day:02} {_MONTHS[day.month - 1]} {day.year}"
        entries.append(
            f"medusa-chat ({one.version}) unstable; urgency=medium\n\n{lines}\n\n"
            f" -- {maintainer}  {when} 12:00:00 +0000\n"
        )
    return "\n".join(entries)


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WIDTH = 78


def _plain(line: str) -> str:
    """Return a line without Markdown's code marks."""
    return line.replace("`", "")


def _wrapped(line: str) -> str:
    lines, current = [], "  *"
    for word in line.split():
        if len(current) + 1 + len(word) > _WIDTH:
            lines.append(current)
            current = "   "
        current += f" {word}"
    return "\n".join([*lines, current])
