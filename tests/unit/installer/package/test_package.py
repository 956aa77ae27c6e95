"""What `python3 installer package` builds, and what is in it."""

import tarfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import medusa_core
from installer import cli
from installer.errors import SetupError
from installer.layout import program_version, this_repository
from installer.licences.installed import name_of
from installer.package.format import Format, Job, all_formats
from installer.package.wheel import build_archive
from installer.process import SystemCommands, run_checked
from tests.support.installer.fakes import FakeMachine

LAYOUT = this_repository()
RESOURCES = "medusa_core/_resources"
RECIPE = "resources/models/llama-pebble/recipe/"


@pytest.fixture(scope="module")
def builder() -> WheelBuilder:
    """Return the build backend's view of pyproject.toml."""
    return WheelBuilder(str(LAYOUT.root))


def test_the_wheel_holds_each_module_and_each_resource_and_nothing_else(
    builder: WheelBuilder,
) -> None:
    kept = _kept_files()
    modules = {name for name in kept if name.startswith(("app/", "medusa_core/"))}
    modules = {name for name in modules if name.endswith((".py", "/py.typed"))}
    resources = {
        name.replace("resources/", f"{RESOURCES}/", 1)
        for name in kept
        if name.startswith("resources/")
        and not name.startswith(RECIPE)
        and not name.endswith(".ts")
    }
    packed = {one.distribution_path for one in builder.recurse_included_files()}
    compiled = {name for name in packed if name.endswith(".qm")}
    documents = {
        f"{RESOURCES}/{name}"
        for name in kept
        if name.startswith("docs/") and name.endswith((".md", ".png"))
        if not name.startswith(("docs/decisions/", "docs/site/"))
    }
    written = {f"{RESOURCES}/{name}" for name in ("constraints.txt", "LICENCES.md")}
    assert packed == modules | resources | compiled | documents | written


def test_a_compiled_translation_is_packed(builder: WheelBuilder) -> None:
    assert builder.config.path_is_artifact("resources/translations/medusa_de.qm")


def test_the_wheel_names_its_programs_extras_licences_and_version(builder: WheelBuilder) -> None:
    about = builder.metadata.core
    assert builder.metadata.version == medusa_core.__version__ == program_version(LAYOUT)
    assert about.scripts == {"medusa": "medusa_core.__main__:main"}
    assert about.gui_scripts == {"medusa-chat": "app.__main__:open_window"}
    assert {"server", "cluster", "peers", "plots"} <= set(about.optional_dependencies)
    base = {name_of(line) for line in about.dependencies}
    assert "bitsandbytes" in base
    assert not {"starlette", "uvicorn", "ray", "matplotlib"} & base
    licences = {Path(name).name for name in about.license_files}
    assert {
        "LICENCES.md",
        "LICENSE-Inter.txt",
        "codebooks.LICENSE.txt",
        "ATTRIBUTION.md",
    } <= licences


def test_the_changelog_begins_with_this_version() -> None:
    text = (LAYOUT.root / "docs" / "changelog.md").read_text(encoding="utf-8")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[0].startswith(f"## {medusa_core.__version__} (")


def test_a_format_is_found_by_its_file() -> None:
    assert {"sdist", "wheel"} <= {one.name for one in all_formats()}
    assert all(isinstance(one, Format) and one.does for one in all_formats())


def test_without_a_format_the_message_lists_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["package", "--out", str(tmp_path)]) == 1
    assert "--sdist" in capsys.readouterr().err


def test_a_checkout_without_build_tools_downloads_the_pinned_ones(
    machine: FakeMachine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    machine.layout.translations.mkdir(parents=True)
    (machine.layout.translations / "medusa_de.ts").touch()
    with machine.layout.constraints.open("a", encoding="utf-8") as file:
        file.write("hatchling==1.33.0\npyside6-essentials==6.11.3\n")
    work = tmp_path_factory.mktemp("work")
    (work / "wheel").mkdir()
    (work / "wheel" / "a-1-py3-none-any.whl").write_bytes(b"a wheel")
    job = Job(machine.layout, machine, tmp_path_factory.mktemp("out"), work)
    built = build_archive(job, "wheel")
    assert built.read_bytes() == b"a wheel"
    fetched = [command.split()[-1] for command in machine.ran(" install ")]
    assert fetched == ["pyside6-essentials==6.11.3", "hatchling==1.33.0"]
    assert "lrelease -silent" in machine.ran("-qm")[0]


def test_a_translation_that_does_not_compile_fails_the_package(
    machine: FakeMachine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    machine.statuses = {"pyside6-lrelease": 1}
    machine.layout.translations.mkdir(parents=True)
    (machine.layout.translations / "medusa_de.ts").touch()
    machine.layout.program("pyside6-lrelease").parent.mkdir(parents=True)
    machine.layout.program("pyside6-lrelease").touch()
    folder = tmp_path_factory.mktemp("work")
    with pytest.raises(SetupError, match="medusa_de"):
        build_archive(Job(machine.layout, machine, folder, folder), "wheel")


@pytest.mark.slow
def test_the_same_files_give_the_same_bytes_and_the_sdist_gives_the_same_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    made = []
    for name in ("first", "second"):
        work = tmp_path / name
        work.mkdir()
        job = Job(LAYOUT, SystemCommands(LAYOUT.root), work, work)
        made.append([build_archive(job, target).read_bytes() for target in ("wheel", "sdist")])
    assert made[0] == made[1]
    unpacked = tmp_path / "unpacked"
    with tarfile.open(next((tmp_path / "first").glob("*.tar.gz"))) as sdist:
        sdist.extractall(unpacked, filter="data")
    (root,) = unpacked.iterdir()
    command = [str(LAYOUT.program("hatchling")), "build", "--target", "wheel"]
    run_checked(SystemCommands(root), [*command, "--directory", str(tmp_path / "third")])
    (again,) = (tmp_path / "third").iterdir()
    assert again.read_bytes() == made[0][0]


def _kept_files() -> list[str]:
    """Files of the program that git would keep."""
    folders = ("app", "medusa_core", "resources", "docs")
    paths = (path for folder in folders for path in (LAYOUT.root / folder).rglob("*"))
    names = (path.relative_to(LAYOUT.root).as_posix() for path in paths if path.is_file())
    return [name for name in names if "__pycache__" not in name and not name.endswith(".qm")]
