"""Damage is found by the records of packages, and only damage."""

import base64
import hashlib
from pathlib import Path

import pytest

from installer.bootstrap.record import changed_packages

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


@pytest.mark.parametrize("digest", [f"sha256={BASE64}", f"sha256={HEX}", ""])
def test_files_as_recorded_are_no_damage(tmp_path: Path, digest: str) -> None:
    compiled = "__pycache__/a_b.cpython-311.pyc,sha256=of_another_path,9\n"
    put(tmp_path, f"a_b.py,{digest},1\n{compiled}")
    assert changed_packages(tmp_path) == []


@pytest.mark.parametrize("content", [b"y", b"", None])
def test_a_changed_or_missing_file_is_damage(tmp_path: Path, content: bytes | None) -> None:
    module = put(tmp_path, f"a_b.py,sha256={BASE64},1\n")
    module.unlink()
    if content is not None:
        module.write_bytes(content)
    assert changed_packages(tmp_path) == ["a-b"]


@pytest.mark.parametrize("rows", ["a_b.py,md99=x,1\n", 'a_b.py,"\n'])
def test_a_record_that_cannot_be_read_is_damage(tmp_path: Path, rows: str) -> None:
    put(tmp_path, rows)
    assert changed_packages(tmp_path) == ["a-b"]
