"""Damage is found by the records of packages, and only damage."""

import base64
import hashlib
from pathlib import Path

from installer.bootstrap.files import changed_packages

BASE64 = base64.urlsafe_b64encode(hashlib.sha256(b"x").digest()).rstrip(b"=").decode()
HEX = hashlib.sha256(b"x").hexdigest()


def put(environment: Path, rows: str) -> Path:
    """A package with a module `a_b.py` of one byte and a record."""
    libraries = environment / "lib" / "python3.11" / "site-packages"
    about = libraries / "A_b-1.0.dist-info"
    about.mkdir(parents=True)
    (libraries / "a_b.py").write_bytes(b"x")
    (about / "RECORD").write_text(rows + "A_b-1.0.dist-info/RECORD,,\n", encoding="utf-8")
    return libraries / "a_b.py"


def changed(folder: Path, rows: str, content: bytes | None = b"x") -> list[str]:
    """Packages found changed where a module has this content."""
    module = put(folder, rows)
    module.unlink()
    if content is not None:
        module.write_bytes(content)
    return changed_packages(folder)


def test_files_that_match_their_record_are_not_damaged(tmp_path: Path) -> None:
    compiled = "__pycache__/a_b.cpython-311.pyc,sha256=of_another_path,9\n"
    for number, digest in enumerate((f"sha256={BASE64}", f"sha256={HEX}", "")):
        assert changed(tmp_path / str(number), f"a_b.py,{digest},1\n{compiled}") == []


def test_a_changed_or_missing_file_and_an_unreadable_record_are_damage(
    tmp_path: Path,
) -> None:
    row = f"a_b.py,sha256={BASE64},1\n"
    wrong = [(row, content) for content in (b"y", b"", None)]
    wrong += [(rows, b"x") for rows in ("a_b.py,md99=x,1\n", 'a_b.py,"\n')]
    for number, (rows, content) in enumerate(wrong):
        assert changed(tmp_path / str(number), rows, content) == ["a-b"], (rows, content)
