"""LICENCES.md: a table of every part, and what the licences ask for, in words."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from installer.errors import SetupError

_HEAD = """\
# Licences

Whose work is in Medusa Chat, and on which terms. `python3 installer licences` writes this file.

Medusa Chat's own code and documents: © the Medusa Chat authors. {licence}

"""
_DUTIES = Path(__file__).with_name("duties.md")  # what the licences ask for


@dataclass(frozen=True, slots=True)
class Part:
    """A row of LICENCES.md.

    Attributes:
        name: as people know it.
        licence: an SPDX expression, or words where there is none.
        by: who made it.
        text: where the licence's text lies: a path or an address.
        version: the one that is installed; empty for what has none.
    """

    name: str
    licence: str
    by: str
    text: str
    version: str = ""


def document(
    shipped: Iterable[Part],
    programs: Iterable[Part],
    installed: Iterable[Part],
    extras: Iterable[Part],
    licence: str,
) -> str:
    """Write the whole file.

    Args:
        shipped: what lies in the wheel; paths are those of a checkout.
        programs: what packages for a system carry or fetch beside it.
        installed: packages that the installation fetches.
        extras: what optional extras ask for.
        licence: sentence about the program's own terms.
    """
    return "".join(
        (
            _HEAD.format(licence=licence),
            _section(
                "What ships with it",
                "Paths are those of the source; an installation has `medusa_core/_resources` for "
                "`resources`.",
                shipped,
            ),
            _section("What packages for a system carry or fetch", "", programs),
            _section(
                "What is installed beside it",
                "Python packages that the installation fetches, unchanged. Their texts lie in the "
                "environment's `site-packages`.",
                installed,
            ),
            _section("What extras add", "Only where you ask for them.", extras),
            _DUTIES.read_text(encoding="utf-8"),
        )
    )


def row(part: Part) -> str:
    """Return a row of a table."""
    text = f"<{part.text}>" if part.text.startswith("https") else part.text
    return f"| {part.name} | {part.version} | {part.licence} | {part.by} | {text} |"


def _section(title: str, words: str, parts: Iterable[Part]) -> str:
    lines = [f"## {title}", "", *((words, "") if words else ())]
    lines += ["| part | version | licence | by | its text |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *map(row, parts)]) + "\n\n"


TABLE = Path(__file__).with_name("parts.toml")


def known_parts() -> dict[str, Any]:
    """Return the content of the table's file."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def parts_of(kind: str) -> tuple[Part, ...]:
    """Return the parts of a kind: `shipped`, `programs`, `extras` or `elsewhere`."""
    fields = ("name", "licence", "by", "text")
    return tuple(Part(*(each[field] for field in fields)) for each in known_parts()[kind])


def shipped_parts(root: Path) -> tuple[Part, ...]:
    """Return the parts of `resources`.

    Raises:
        SetupError: a file belongs to none of them, or a licence's text isn't where it should be.
    """
    patterns = [pattern for each in known_parts()["shipped"] for pattern in each["files"]]
    paths = (path for path in (root / "resources").rglob("*") if path.is_file())
    files = sorted(path.relative_to(root).as_posix() for path in paths)
    orphans = [file for file in files if not any(fnmatchcase(file, one) for one in patterns)]
    if orphans:
        raise SetupError(
            f"Nobody knows whose work this is: {', '.join(orphans[:5])}.",
            f"Add it to {TABLE.name}, with its licence.",
        )
    parts = parts_of("shipped")
    for part in parts:
        if part.text.startswith("resources/") and not (root / part.text).is_file():
            raise SetupError(f"The licence of {part.name} isn't there: {part.text}.")
    return parts
