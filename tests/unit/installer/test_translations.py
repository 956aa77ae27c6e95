"""Translations are compiled where they are older than their source, before anything starts."""

import os
from pathlib import Path

import pytest

from installer import cli
from installer.checkout import Request
from installer.translations import compile_translations
from tests.support.installer.fakes import FakeMachine


@pytest.fixture
def german(machine: FakeMachine) -> Path:
    """A translation source with an old modification time."""
    path = machine.layout.translations / "medusa_de.ts"
    path.parent.mkdir(parents=True)
    path.write_text("<TS/>", encoding="utf-8")
    os.utime(path, (1_000_000, 1_000_000))
    return path


def compiled(machine: FakeMachine) -> list[str]:
    """Compile the translations and return the commands that ran."""
    machine.commands.clear()
    compile_translations(machine.layout, machine, machine.layout.program("pyside6-lrelease"))
    return machine.commands


def test_translations_are_compiled_once_and_again_after_a_change(
    machine: FakeMachine, german: Path
) -> None:
    (command,) = compiled(machine)
    assert Path(command.split()[0]) == machine.layout.program("pyside6-lrelease")
    assert german.with_suffix(".qm").read_text(encoding="utf-8") == "compiled"
    assert compiled(machine) == []
    os.utime(german)
    german.with_suffix(".qm").touch()
    os.utime(german.with_suffix(".qm"), (1_000_000, 1_000_000))
    assert len(compiled(machine)) == 1


def test_a_failed_compilation_is_reported_and_keeps_the_previous_file(
    machine: FakeMachine, german: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = german.with_suffix(".qm")
    old.write_text("old", encoding="utf-8")
    os.utime(old, (900_000, 900_000))
    machine.statuses = {"pyside6-lrelease": 1}
    compiled(machine)
    assert old.read_text(encoding="utf-8") == "old"
    assert sorted(german.parent.iterdir()) == [old, german]
    assert "medusa_de.ts could not be compiled: pyside6-lrelease is done" in capsys.readouterr().out


def test_on_a_read_only_disk_the_application_starts_untranslated(
    machine: FakeMachine,
    german: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "replace", refuse)
    monkeypatch.setattr(cli, "ensure_ready", lambda *_: None)
    monkeypatch.setattr(cli, "check_system_packages", lambda *_: None)
    request = Request(with_model=False)
    assert cli.run_app(machine.layout, machine.at, request, ["--platform", "offscreen"]) == 0
    assert "medusa_de.qm could not be written: read-only" in capsys.readouterr().out
    assert len(machine.ran("-m app")) == 1


def test_the_test_run_has_compiled_translations(
    machine: FakeMachine, german: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "ensure_ready", lambda *_: None)
    monkeypatch.setattr(cli, "check_system_packages", lambda *_: None)
    cli.run_tests(machine.layout, machine.at, Request(with_model=False), [])
    tools = [Path(command.split()[0]).name for command in machine.commands]
    assert tools[0] == "pyside6-lrelease"
    assert "pytest" in tools
