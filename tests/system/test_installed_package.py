"""Where an installed package has its files, and where what runs it is imported from."""

import sys
from pathlib import Path

import pytest

from medusa_core.system import resources
from medusa_core.system.resources import import_places, models_dir, program_root, resources_dir


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install this program as a package."""
    folder = tmp_path / "medusa_core" / "_resources"
    folder.mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKED", folder)
    monkeypatch.delenv("MEDUSA_MODELS", raising=False)
    return folder


def test_an_installed_package_has_its_resources_inside(packed: Path) -> None:
    assert resources_dir() == packed


def test_a_checkout_has_its_resources_beside_its_packages() -> None:
    assert resources_dir() == program_root() / "resources"
    assert (resources_dir() / "catalog.json").is_file()


def test_an_installed_package_stores_the_first_model_among_the_users_data(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDUSA_HOME", str(tmp_path / "home"))
    assert models_dir() == tmp_path / "home" / "data" / "models"
    monkeypatch.setenv("MEDUSA_MODELS", str(tmp_path / "named"))
    assert models_dir() == tmp_path / "named"


def test_the_folders_of_an_installed_program_keep_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else packages would hide modules of the standard library."""
    monkeypatch.setattr(sys, "path", ["", "/lib/python", str(program_root())])
    assert import_places() == ["/lib/python", str(program_root())]
    monkeypatch.setattr(sys, "path", ["", "/lib/python"])
    assert import_places() == [str(program_root()), "/lib/python"]
