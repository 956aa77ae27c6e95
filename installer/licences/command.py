"""`python3 installer licences`: writes LICENCES.md from the pinned packages and what ships."""

from pathlib import Path

from installer.console import say
from installer.layout import Layout, program_licence
from installer.licences.document import document, parts_of, shipped_parts
from installer.licences.installed import installed_parts


def licences_of(layout: Layout) -> str:
    """Return the text of LICENCES.md.

    Raises:
        SetupError: a part names no licence, or isn't there.
    """
    return document(
        shipped_parts(layout.root),
        parts_of("programs"),
        installed_parts(layout),
        parts_of("extras"),
        program_licence(layout),
    )


def write_licences(layout: Layout) -> Path:
    """Write the file.

    Raises:
        SetupError: a part names no licence, or isn't there.
    """
    layout.licences.write_text(licences_of(layout), encoding="utf-8")
    say(f"Wrote {layout.shown(layout.licences)}.")
    return layout.licences
