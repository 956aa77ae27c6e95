"""The model of the first start: asked of the program once, and done without if it can't be had."""

import threading
from pathlib import Path

import pytest

from installer import cli, model_file
from installer.first_model import provide_first_model
from installer.lock import installation_lock
from installer.model_file import FILE, FOLDER
from installer.setup import Request
from medusa_core.__main__ import COMMANDS
from medusa_core.cli.pull import FIRST_MODEL
from medusa_core.hub import first_model
from medusa_core.system import resources
from tests.support.installer.fakes import FakeMachine, put_model

WINDOW = ["--platform", "offscreen"]


@pytest.fixture(autouse=True)
def no_folder_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEDUSA_MODELS", raising=False)


def fetch(machine: FakeMachine) -> list[str]:
    """Provide the model; returns the commands that took."""
    machine.commands.clear()
    provide_first_model(machine.layout, machine)
    return machine.commands


def test_the_program_in_the_environment_is_asked_for_it(machine: FakeMachine) -> None:
    assert fetch(machine) == [f"{machine.layout.python} -m medusa_core pull {FOLDER}"]


def test_what_is_there_is_not_asked_for_again(machine: FakeMachine) -> None:
    put_model(machine.layout.models)
    assert fetch(machine) == []


def test_a_file_of_another_size_is_asked_for_again(machine: FakeMachine) -> None:
    put_model(machine.layout.models, model_file.FILE_BYTES - 1)
    assert len(fetch(machine)) == 1


def test_a_folder_of_the_user_holds_for_both(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEDUSA_MODELS", str(tmp_path))
    put_model(tmp_path)
    assert fetch(machine) == []
    assert resources.first_model_file() == tmp_path / FOLDER / FILE


def test_who_waited_while_another_fetched_it_does_not(machine: FakeMachine) -> None:
    with installation_lock(machine.layout.lock):
        waiting = threading.Thread(target=provide_first_model, args=(machine.layout, machine))
        waiting.start()
        put_model(machine.layout.models)
    waiting.join()
    assert machine.commands == []


def test_where_it_cannot_be_had_that_is_said_and_the_window_opens(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.pull_status = 1
    assert cli.run_app(machine.layout, machine, Request(), WINDOW) == 0
    assert machine.ran("-m app")
    assert "Llama-Pebble takes its place; the next start tries again" in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_is_said_too(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.layout.lock.mkdir()
    assert fetch(machine) == []
    assert "cannot be written to" in capsys.readouterr().out


def test_an_interruption_of_it_is_one_of_all(machine: FakeMachine) -> None:
    machine.pull_status = 130
    with pytest.raises(KeyboardInterrupt):
        fetch(machine)


def test_no_model_asks_for_none(machine: FakeMachine) -> None:
    cli.run_app(machine.layout, machine, Request(with_model=False), WINDOW)
    assert not machine.ran("pull")
    assert not machine.layout.models.exists()


def test_the_installer_and_the_program_mean_the_same(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(machine.layout.venv))
    assert resources.models_dir() == machine.layout.models
    assert (FOLDER, FILE) == resources.FIRST_MODEL_FILE
    assert model_file.NAME == resources.FIRST_MODEL_NAME
    assert model_file.FILE_BYTES == first_model.FILE_BYTES
    assert model_file.PULL[:2] == ("-m", "medusa_core")
    assert model_file.PULL[2] in COMMANDS
    assert model_file.PULL[3:] == (FIRST_MODEL,)
