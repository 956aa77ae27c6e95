"""The programs that the set-up leaves in the environment."""

import os
import subprocess
import sys
import tomllib

import pytest

from installer import launchers
from installer.launchers import provide_launchers
from installer.layout import Layout, this_repository
from tests.support.installer.fakes import FakeMachine


@pytest.fixture
def checkout(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """Make a checkout with its own package, in an environment of this Python."""
    layout = machine.layout
    monkeypatch.setattr(launchers, "PROGRAMS", {"hello": "hello.__main__:main"})
    package = layout.root / "hello"
    package.mkdir()
    code = "import sys\ndef main():\n    print(sys.path[0], *sys.argv[1:])\n    return 3\n"
    (package / "__main__.py").write_text(code, encoding="utf-8")
    layout.python.parent.mkdir(parents=True)
    layout.python.symlink_to(sys.executable)
    return layout


def test_launchers_are_the_programs_declared_by_this_project() -> None:
    project = tomllib.loads(this_repository().pyproject.read_text(encoding="utf-8"))["project"]
    assert {**project["scripts"], **project["gui-scripts"]} == launchers.PROGRAMS


@pytest.mark.skipif(os.name == "nt", reason="there it is a .cmd")
def test_a_program_runs_its_checkout_from_any_folder_and_through_a_link(
    checkout: Layout, tmp_path_factory: pytest.TempPathFactory
) -> None:
    provide_launchers(checkout)
    elsewhere = tmp_path_factory.mktemp("some where")
    link = elsewhere / "hi"
    link.symlink_to(checkout.program("hello"))
    done = subprocess.run(
        [link, "a b", "$c"], cwd=elsewhere, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{checkout.root} a b $c\n"
    assert done.returncode == 3


def test_a_second_start_writes_nothing_and_a_moved_checkout_rewrites_everything(
    checkout: Layout,
) -> None:
    provide_launchers(checkout)
    (program,) = checkout.python.parent.glob("hello*")
    before = program.stat().st_mtime_ns, program.stat().st_ino
    provide_launchers(checkout)
    assert (program.stat().st_mtime_ns, program.stat().st_ino) == before
    text = program.read_text(encoding="utf-8")
    program.write_text(text.replace(str(checkout.root), "/old"), encoding="utf-8")
    provide_launchers(checkout)
    assert program.read_text(encoding="utf-8") == text


def test_a_launcher_that_cant_be_written_is_reported(
    checkout: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.program("hello").mkdir()
    provide_launchers(checkout)
    assert "hello could not be written" in capsys.readouterr().out
