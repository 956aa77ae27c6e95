"""What lies in `resources`, in packages and in extras, and whose it is: `parts.toml`."""

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from installer.errors import SetupError
from installer.licences.part import Part

TABLE = Path(__file__).with_name("parts.toml")


def known_parts() -> dict[str, Any]:
    """The table as it stands in its file."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def parts_of(kind: str) -> tuple[Part, ...]:
    """Those of a kind: `shipped`, `programs` or `extras`."""
    fields = ("name", "licence", "by", "text")
    return tuple(Part(*(each[field] for field in fields)) for each in known_parts()[kind])


def shipped_parts(root: Path) -> tuple[Part, ...]:
    """The parts of `resources`.

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
