"""LICENCES.md: it is up to date, and no part is without a licence."""

import shutil
from email.message import Message
from pathlib import Path

import pytest

from installer.errors import SetupError
from installer.layout import Layout, this_repository
from installer.licences.command import write_licences
from installer.licences.document import known_parts, parts_of, row, shipped_parts
from installer.licences.installed import closure, distribution, name_of, part_of, pins

LAYOUT = this_repository()
WRITTEN = LAYOUT.licences.read_text(encoding="utf-8")
ANEW = "run python3 installer licences, and commit"


def test_every_shipped_part_has_its_row() -> None:
    for part in (*shipped_parts(LAYOUT.root), *parts_of("programs"), *parts_of("extras")):
        assert row(part) in WRITTEN, ANEW


def test_every_installed_package_has_its_row() -> None:
    section = WRITTEN.partition("## What is installed")[2].partition("## What extras")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    pinned, environment = pins(LAYOUT), LAYOUT.environment.site_packages
    assert {line.split(" | ")[0][2:] for line in rows} >= closure(LAYOUT), ANEW
    for line in rows:
        name, version = line.split(" | ")[0][2:], line.split(" | ")[1]
        assert version == pinned[name], ANEW
        found = distribution(name, environment)
        # What other systems need isn't here, and a build of torch may say more of itself.
        if found is not None and name != "torch":
            assert row(part_of(name, found.metadata, version)) == line, ANEW


def test_obligations_of_the_lgpl_are_stated() -> None:
    duties = WRITTEN.partition("## What some of them ask for")[2]
    for words in ("Lesser General Public", "replace them", "source is published", "NVIDIA"):
        assert words in duties


def test_every_extra_that_is_not_pinned_is_named() -> None:
    named = {part.name.split()[0] for part in parts_of("extras")}
    text = LAYOUT.pyproject.read_text(encoding="utf-8")
    for extra in ("peers", "cluster", "plots"):
        requirements = text.partition(f"\n{extra} = [")[2].partition("]")[0].split(",")
        names = {name_of(one.strip(' "\n')) for one in requirements if one.strip(' "\n')}
        assert names
        assert names <= named


def test_a_file_without_an_owner_is_refused(tmp_path: Path) -> None:
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "new.bin").write_bytes(b"?")
    with pytest.raises(SetupError, match=r"Nobody knows whose work this is: resources/new\.bin"):
        shipped_parts(tmp_path)


def test_a_licence_whose_text_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="isn't there: resources"):
        shipped_parts(tmp_path)


@pytest.mark.parametrize(
    ("field", "words", "licence"),
    [
        ("License-Expression", "MIT AND Zlib", "MIT AND Zlib"),
        ("License", "Apache 2.0 License", "Apache-2.0"),
        ("Classifier", "License :: OSI Approved :: MIT License", "MIT"),
    ],
)
def test_licences_are_read_from_package_metadata(field: str, words: str, licence: str) -> None:
    about = Message()
    about[field] = words
    about["Author-email"] = '"Ada L." <ada@example.org>, Bob <bob@example.org>'
    part = part_of("some-thing", about, "1.0")
    assert (part.licence, part.by) == (licence, "Ada L., Bob")
    assert part.text == known_parts()["published_at"] + licence.split()[0]
    about["License-File"] = "LICENSE.txt"
    assert part_of("some-thing", about, "1.0").text == "some_thing-1.0.dist-info: LICENSE.txt"


@pytest.mark.parametrize("words", ["", "see the file", "BSD License"])
def test_a_package_without_a_licence_is_refused(words: str) -> None:
    about = Message()
    about["License"] = words
    with pytest.raises(SetupError, match="names no licence") as caught:
        part_of("thing", about, "1.0")
    assert "parts.toml" in caught.value.mend


def test_a_package_that_is_not_installed_is_reported(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    (tmp_path / "installer").mkdir()
    for path in (LAYOUT.pyproject, LAYOUT.constraints):
        shutil.copy(path, tmp_path / path.relative_to(LAYOUT.root))
    shutil.copytree(LAYOUT.root / "resources", tmp_path / "resources", copy_function=_touch)
    with pytest.raises(SetupError, match=r"isn't in \.venv"):
        write_licences(layout)
    assert not layout.licences.exists()


def _touch(_: str, to: str) -> None:
    Path(to).touch()
