"""LICENCES.md: a table of every part, and what the licences ask for, in words."""

from collections.abc import Iterable
from pathlib import Path

from installer.licences.part import Part

_HEAD = """\
# Licences

Whose work is in Medusa Chat, and on which terms. `python3 installer licences` writes this file.

Medusa Chat's own code and documents: © the Medusa Chat authors. {licence}

"""
_DUTIES = Path(__file__).with_name("duties.md")  # what the licences ask for


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
    """A line of a table."""
    text = f"<{part.text}>" if part.text.startswith("https") else part.text
    return f"| {part.name} | {part.version} | {part.licence} | {part.by} | {text} |"


def _section(title: str, words: str, parts: Iterable[Part]) -> str:
    lines = [f"## {title}", "", *((words, "") if words else ())]
    lines += ["| part | version | licence | by | its text |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *map(row, parts)]) + "\n\n"
