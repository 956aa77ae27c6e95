"""uv's program comes out of the one package that is known by its hash."""

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from installer.errors import SetupError
from installer.layout import this_repository
from installer.uv_program import BUILDS, VERSION, UvBuild, take_program


def package(folder: Path, *members: str) -> tuple[Path, UvBuild]:
    """A package that holds these files, and what is known of it."""
    path = folder / "uv-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name in members:
            wheel.writestr(name, f"#!/bin/sh\necho {name}\n")
    return path, UvBuild("any", hashlib.sha256(path.read_bytes()).hexdigest())


def test_uv_is_extracted_and_executable(tmp_path: Path) -> None:
    wheel, build = package(tmp_path, "uv/__init__.py", "uv-1.data/scripts/uv", "uv-1.data/uvx")
    program = take_program(wheel, build, tmp_path / "new" / "bin")
    assert program == tmp_path / "new" / "bin" / "uv"
    assert "uv-1.data/scripts/uv" in program.read_text()
    assert os.access(program, os.X_OK)


def test_a_package_with_other_bytes_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    wheel, build = package(tmp_path, "uv-1.data/scripts/uv")
    wheel.write_bytes(wheel.read_bytes() + b"x")
    with pytest.raises(SetupError, match="other bytes"):
        take_program(wheel, build, tmp_path / "bin")
    assert not (tmp_path / "bin").exists()


def test_a_package_without_the_program_is_refused(tmp_path: Path) -> None:
    wheel, build = package(tmp_path, "uv/__init__.py")
    with pytest.raises(SetupError, match="holds no uv"):
        take_program(wheel, build, tmp_path / "bin")


def test_uv_has_the_pinned_version() -> None:
    assert f"uv=={VERSION}" in this_repository().constraints.read_text(encoding="utf-8").split()


def test_each_package_of_uv_has_its_own_hash() -> None:
    assert len({build.sha256 for build in BUILDS.values()}) == len(BUILDS) == 6
    assert all(len(build.sha256) == 64 for build in BUILDS.values())
