"""Which build of torch is chosen, why, and what happens where its index is out of reach."""

import pytest

from installer.bootstrap.torch_source import chosen_torch
from installer.errors import SetupError
from installer.torch_choice import Gpu, GpuReport, TorchBuild, choose_torch, detect_gpus, parse_gpus
from tests.support.installer.fakes import FakeMachine

PASCAL = "6.1, 580.95.05, NVIDIA GeForce GTX 1080"
VOLTA = "7.0, 580.95.05, Tesla V100-SXM2-16GB"
TURING = "7.5, 580.95.05, NVIDIA GeForce RTX 2070"
ADA = "8.9, 580.95.05, NVIDIA GeForce RTX 4060"
ADA_OLD_DRIVER = "8.9, 550.163.01, NVIDIA GeForce RTX 4060"
BLACKWELL = "12.0, 580.95.05, NVIDIA GeForce RTX 5070"
MAXWELL = "5.2, 580.95.05, NVIDIA GeForce GTX 970"
ANCIENT_DRIVER = "6.1, 470.256.02, NVIDIA GeForce GTX 1080"


def test_the_build_of_torch_suits_the_gpus() -> None:
    cases: list[tuple[list[str], str, str]] = [
        ([], "cpu", "no NVIDIA GPU"),
        ([PASCAL], "cu126", "6.1"),
        ([VOLTA], "cu126", "7.0"),
        ([TURING], "cu130", "7.5"),
        ([ADA], "cu130", "8.9"),
        ([BLACKWELL], "cu130", "12.0"),
        ([ADA, PASCAL], "cu126", "GTX 1080"),
        ([ADA, MAXWELL], "cu130", "RTX 4060"),
        ([BLACKWELL, PASCAL], "cu130", "GTX 1080 (compute capability 6.1) stays unused"),
        ([MAXWELL], "cpu", "older than every CUDA build"),
        ([ADA_OLD_DRIVER], "cu126", "driver 550"),
        ([ANCIENT_DRIVER], "cpu", "Update the driver"),
    ]
    for rows, build, because in cases:
        choice = choose_torch("linux", GpuReport(parse_gpus("\n".join(rows))))
        assert (rows, choice.build) == (rows, build)
        assert because in choice.reason, rows


def test_on_macos_there_is_one_build() -> None:
    assert choose_torch("darwin", GpuReport(())).build is TorchBuild.PIP


def test_cuda_on_macos_is_refused(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(SetupError, match="no CUDA on macOS"):
        chosen_torch("cu130", machine)


def test_rows_of_nvidia_smi_are_parsed_and_others_skipped() -> None:
    text = f"{ADA}\r\nwarning: something\n[N/A], 580.95, Unknown\n{PASCAL}\n"
    assert parse_gpus(text) == (
        Gpu("NVIDIA GeForce RTX 4060", (8, 9), 580),
        Gpu("NVIDIA GeForce GTX 1080", (6, 1), 580),
    )


def test_a_failing_driver_is_named_in_the_reason(machine: FakeMachine) -> None:
    machine.nvidia_smi = "NVIDIA-SMI has failed because it couldn't communicate\n"
    choice = choose_torch("linux", detect_gpus(machine))
    assert choice.build is TorchBuild.CPU
    assert "couldn't communicate" in choice.reason
