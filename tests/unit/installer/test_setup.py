"""The set-up as a whole: first start, second start, and every way of being cut short."""

from collections.abc import Sequence

import pytest

from installer import setup
from installer.errors import CommandError, SetupError
from installer.setup import AUTO, Request, ensure_ready, is_ready
from installer.stamp import read_stamp
from tests.support.installer.fakes import FakeMachine, offline


def install(machine: FakeMachine, request: Request | None = None) -> list[str]:
    """Run the set-up; returns the commands that it needed."""
    machine.commands.clear()
    ensure_ready(machine.layout, machine, request or Request())
    return machine.commands


def test_first_start_installs_torch_before_what_depends_on_it(machine: FakeMachine) -> None:
    install(machine)
    torch = next(i for i, c in enumerate(machine.commands) if c.endswith(" torch==2.13.0"))
    rest = next(i for i, c in enumerate(machine.commands) if "PySide6-Essentials" in c)
    assert torch < rest
    assert is_ready(machine.layout, Request())


def test_modules_are_compiled_once_on_all_cores_before_one_is_loaded(machine: FakeMachine) -> None:
    machine.index_reachable = False
    commands = install(machine)
    (compiles,) = (i for i, c in enumerate(commands) if " compileall " in c)
    assert "-j 0" in commands[compiles]
    assert commands[compiles].endswith(str(machine.site_packages))
    assert next(i for i, c in enumerate(commands) if "import torch" in c) > compiles
    by_pip = [c for c in commands[:compiles] if "pip install" in c or " pip " in c]
    written = [c for c in by_pip if " install " in c and "uv" not in c]
    assert written
    assert all("--no-compile" in c for c in written)


def test_second_start_runs_no_command(machine: FakeMachine) -> None:
    install(machine)
    assert install(machine) == []


def test_pins_are_handed_to_every_installation(machine: FakeMachine) -> None:
    machine.index_reachable = False
    commands = [c for c in install(machine) if " install " in c and "uv==" not in c]
    assert len(commands) == 3  # the probe, torch, the rest
    assert all(str(machine.layout.constraints) in c for c in commands)


@pytest.mark.parametrize(
    "name", ["pyproject.toml", "installer/constraints.txt", ".venv/pyvenv.cfg"]
)
def test_a_change_of_what_it_was_made_from_installs_again(machine: FakeMachine, name: str) -> None:
    install(machine)
    with (machine.layout.root / name).open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    assert not is_ready(machine.layout, Request())
    install(machine)
    assert is_ready(machine.layout, Request())


def test_tests_tools_are_added_to_an_environment_for_running(machine: FakeMachine) -> None:
    install(machine)
    assert not is_ready(machine.layout, Request(with_tests=True))
    commands = install(machine, Request(with_tests=True))
    assert any("pytest>=9" in c for c in commands)
    assert not [c for c in commands if c.endswith(" torch==2.13.0")]
    assert install(machine, Request()) == []


def test_a_deleted_package_is_noticed_and_put_back(machine: FakeMachine) -> None:
    install(machine)
    record = next(machine.site_packages.glob("pyside6*/RECORD"))
    record.unlink()
    record.parent.rmdir()
    install(machine)
    assert next(machine.site_packages.glob("pyside6*/RECORD"))


def test_a_broken_environment_is_made_afresh(machine: FakeMachine) -> None:
    install(machine)
    machine.layout.python.unlink()
    old = machine.layout.venv / "old"
    old.touch()
    install(machine)
    assert is_ready(machine.layout, Request())
    assert not old.exists()


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_installation_cut_short_is_made_afresh(machine: FakeMachine, at: int) -> None:
    countdown = at

    def interrupt(command: Sequence[str]) -> None:
        nonlocal countdown
        if countdown == 0:
            raise KeyboardInterrupt
        countdown -= 1

    machine.before_install = interrupt
    with pytest.raises(KeyboardInterrupt):
        install(machine)
    assert not is_ready(machine.layout, Request())
    half_written = machine.site_packages / "half" / "package.py"
    half_written.parent.mkdir(parents=True)
    half_written.touch()

    machine.before_install = lambda command: None
    install(machine)
    assert is_ready(machine.layout, Request())
    assert not half_written.exists()


def test_a_stamp_cut_short_counts_as_none(machine: FakeMachine) -> None:
    install(machine)
    whole = machine.layout.stamp.read_text(encoding="utf-8")
    machine.layout.stamp.write_text(whole[: len(whole) // 2], encoding="utf-8")
    assert read_stamp(machine.layout) is None
    install(machine)
    assert is_ready(machine.layout, Request())


def test_without_network_it_says_so_and_keeps_what_is_there(machine: FakeMachine) -> None:
    install(machine)
    kept = machine.layout.venv / "kept"
    kept.touch()
    machine.before_install = offline
    with pytest.raises(SetupError) as caught:
        install(machine, Request(with_tests=True))
    assert "could not be reached" in caught.value.message
    assert "pip config list" in caught.value.mend
    assert kept.exists()
    assert is_ready(machine.layout, Request())


def test_a_disk_that_fills_up_meanwhile_is_named(machine: FakeMachine) -> None:
    def fill(command: Sequence[str]) -> None:
        raise CommandError(command, 1, ["OSError: [Errno 28] No space left on device"])

    machine.before_install = fill
    with pytest.raises(SetupError, match="disk became full"):
        install(machine)


def test_a_full_disk_stops_it_before_anything_is_made(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise SetupError("too little room")

    monkeypatch.setattr(setup, "check_space", refuse)
    with pytest.raises(SetupError, match="too little room"):
        install(machine)
    assert not machine.layout.venv.exists()


def test_a_torch_that_does_not_load_is_not_stamped(machine: FakeMachine) -> None:
    machine.loads_torch = False
    with pytest.raises(SetupError, match="libgomp") as caught:
        install(machine)
    assert "--torch cpu" in caught.value.mend
    assert read_stamp(machine.layout) is None


def test_a_foreign_directory_in_its_place_is_left_alone(machine: FakeMachine) -> None:
    diary = machine.layout.venv / "diary.txt"
    diary.parent.mkdir()
    diary.touch()
    with pytest.raises(SetupError, match="in the way"):
        install(machine)
    assert diary.exists()


def test_override_of_torch_survives_an_update(machine: FakeMachine) -> None:
    install(machine, Request(torch="cu126"))
    with machine.layout.constraints.open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert not machine.ran("nvidia-smi")
    install(machine)
    assert not machine.ran("nvidia-smi")
    stamp = read_stamp(machine.layout)
    assert stamp is not None
    assert stamp.torch_requested == "cu126"


def test_auto_looks_at_the_gpus_again(machine: FakeMachine) -> None:
    install(machine)
    machine.nvidia_smi = "8.9, 580.95.05, NVIDIA GeForce RTX 4060\n"
    assert install(machine) == []
    install(machine, Request(torch=AUTO))
    assert next(machine.site_packages.glob("torch-2.13.0+cu130.dist-info"))


def test_an_override_replaces_the_build_that_is_there(machine: FakeMachine) -> None:
    install(machine)
    install(machine, Request(torch="cu126"))
    assert [p.name for p in machine.site_packages.glob("torch-*")] == [
        "torch-2.13.0+cu126.dist-info"
    ]
    assert install(machine, Request(torch="cu126")) == []


@pytest.mark.parametrize(
    ("output", "words", "intact"),
    [
        (["ERROR: No matching distribution found for torch==2.13.0"], "does not exist", True),
        (["getaddrinfo failed"], "could not be reached", True),
        (["something else"], "something else", False),
    ],
)
def test_failures_of_pip_become_sentences(output: list[str], words: str, intact: bool) -> None:
    trouble = setup.explain(CommandError(["pip", "install"], 1, output))
    assert words in trouble.message
    assert trouble.intact is intact
