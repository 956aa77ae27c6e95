"""Every place that names the program's own licence names the same one."""

from __future__ import annotations

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from installer.layout import program_licence, program_licence_id, this_repository
from installer.package import deb
from installer.package.format import Job
from installer.process import SystemCommands
from medusa_core import LICENCE, LICENCE_ID
from medusa_core.system.components import component_licences

LAYOUT = this_repository()
ROOT = LAYOUT.root


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_installers_read_the_licence_of_the_program() -> None:
    assert (program_licence(LAYOUT), program_licence_id(LAYOUT)) == (LICENCE, LICENCE_ID)


def test_documents_and_the_about_dialog_name_the_licence() -> None:
    assert component_licences()["Medusa Chat"] == LICENCE
    sentence = LICENCE.removesuffix(".").lower()
    assert sentence in text_of("README.md").partition("## Licences")[2].lower()
    row = next(line for line in text_of("docs/compared.md").splitlines() if "**Licence**" in line)
    assert row.split(" | ")[1].lower() == sentence
    own = next(line for line in text_of("installer/LICENCES.md").splitlines() if "own code" in line)
    assert own.endswith(LICENCE)


def test_packages_carry_the_licence(tmp_path: Path) -> None:
    assert WheelBuilder(str(ROOT)).metadata.core.license_expression == LICENCE_ID
    job = Job(LAYOUT, SystemCommands(ROOT), tmp_path, tmp_path)
    releases = deb._releases(job)
    deb._write_debian(job, tmp_path / "debian", releases)
    deb._write_share(job, tmp_path / "share", releases)
    terms = (tmp_path / "debian" / "copyright").read_text(encoding="utf-8")
    assert f"License: {LICENCE_ID}\n {LICENCE}\n" in terms
    about = (tmp_path / "share" / f"{deb.APP_ID}.metainfo.xml").read_text(encoding="utf-8")
    assert f"<project_license>{LICENCE_ID}</project_license>" in about
