"""Are installed files still those of their packages? By the RECORD of each package.

Source: the specification "Recording installed projects" of the Python packaging authority.
"""

import base64
import csv
import hashlib
import re
from pathlib import Path

BLOCK_BYTES = 1 << 20


def changed_packages(environment: Path) -> list[str]:
    """Return the packages of which a file is missing or differs from its record.

    Args:
        environment: its folder.
    """
    libraries = environment / "Lib" / "site-packages"
    folders = [libraries] if libraries.is_dir() else environment.glob("lib/python3.*/site-packages")
    records = [record for folder in folders for record in sorted(folder.glob("*.dist-info/RECORD"))]
    return [_name_of(record) for record in records if not _is_as_recorded(record)]


def _name_of(record: Path) -> str:
    name = record.parent.name.removesuffix(".dist-info").partition("-")[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_as_recorded(record: Path) -> bool:
    folder = record.parent.parent
    try:
        with record.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if len(row) == len(("path", "hash", "size"))]
        return bool(rows) and all(_is_same(folder / path, digest) for path, digest, _ in rows)
    except (OSError, ValueError, csv.Error):
        return False


def _is_same(path: Path, digest: str) -> bool:
    kind, _, value = digest.partition("=")
    # The record itself has no hash; what Python compiles changes with where it lies.
    if not value or path.suffix == ".pyc":
        return True
    found = hashlib.new(kind)
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            found.update(block)
    # The specification wants base64; packages with hexadecimal digits are about, too.
    return value in (
        base64.urlsafe_b64encode(found.digest()).rstrip(b"=").decode(),
        found.hexdigest(),
    )
