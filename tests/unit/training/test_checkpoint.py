"""Checkpoints that are damaged, half written, or of another run."""

import logging
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from medusa_core.errors import TrainingError
from medusa_core.training import checkpoint
from medusa_core.training.checkpoint import previous_of, read_checkpoint, restore, save
from medusa_core.training.loop import LoopOptions, train
from medusa_core.training.optimizer import Optimizers, adam_w, cosine_rate

Parts = tuple[nn.Module, Optimizers]


def parts(seed: int = 0, width: int = 6) -> Parts:
    torch.manual_seed(seed)
    module = nn.Linear(width, 3)
    return module, Optimizers([adam_w(module.parameters(), 0.01)], cosine_rate(40))


def trained(path: Path, num_steps: int, seed: int = 0) -> nn.Module:
    """Take some steps on something that depends on the step alone, with checkpoints after each."""
    module, optimizers = parts(seed)

    def loss_at(step: int) -> torch.Tensor:
        x = torch.randn(8, 6, generator=torch.Generator().manual_seed(step))
        return (module(x) - x[:, :3]).square().mean()

    train(module, optimizers, loss_at, LoopOptions(path, num_steps, 8))
    return module


def is_same(one: Any, other: Any) -> bool:
    """Whether two states are equal to the bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A checkpoint at step 2 with none before it."""
    path = tmp_path / "checkpoint.pt"
    trained(path, 2)
    assert not previous_of(path).exists()
    return path


def test_every_changed_byte_is_detected(written: Path) -> None:
    whole, state = written.read_bytes(), read_checkpoint(written)
    rng = random.Random(7)
    refused: list[TrainingError] = []
    for number in range(150):
        changed = bytearray(whole)
        for _ in range(rng.choice((1, 1, 8, 500))):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        written.write_bytes(changed)
        try:
            found = read_checkpoint(written)
        except TrainingError as error:
            refused.append(error)
        else:  # padding between records
            assert is_same(found, state), number
    assert len(refused) > 100
    assert all("Delete checkpoint.pt" in error.hint for error in refused)
    assert all(len(error.message) < 400 for error in refused)


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: b"",
        lambda whole: whole[:100],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-1],
        lambda whole: whole[1:],
        lambda whole: bytes(len(whole)),
        lambda whole: b"not a checkpoint",
        lambda whole: b"\x80\x04.",
        lambda whole: whole.replace(b"module", b"mobule"),
    ],
)
def test_structural_damage_says_what_to_do(written: Path, change: Callable[[bytes], bytes]) -> None:
    written.write_bytes(change(written.read_bytes()))
    with pytest.raises(TrainingError, match=r"checkpoint\.pt is damaged") as caught:
        restore(written, *parts())
    assert "training starts at its first step" in caught.value.hint


@pytest.mark.parametrize("content", [{"step": 3}, [1, 2], 5, {"step": 1, "module": {}}])
def test_files_other_than_checkpoints_are_refused(tmp_path: Path, content: object) -> None:
    path = tmp_path / "checkpoint.pt"
    torch.save(content, path)
    with pytest.raises(TrainingError, match="doesn't hold step, module, optimizers"):
        restore(path, *parts())


class Hostile:
    """Object whose unpickling would run a program."""

    def __reduce__(self) -> object:
        return os.mkdir, ("ran",)


@pytest.mark.parametrize(
    "step",
    [-1, 10**30, float("nan"), "3", None, True, [1], Hostile()],
    ids=lambda step: repr(step)[:9],
)
def test_a_checkpoint_with_an_invalid_step_is_refused(
    step: object, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(torch.load(written, weights_only=True) | {"step": step}, written)
    with pytest.raises(TrainingError, match="is damaged: it") as caught:
        restore(written, *parts())
    assert "weights_only" not in caught.value.message
    assert not (tmp_path / "ran").exists()


def test_a_checkpoint_of_another_run_is_refused(written: Path) -> None:
    with pytest.raises(TrainingError, match="belongs to another run"):
        restore(written, *parts(width=7))


@pytest.mark.parametrize("left", [b"", None])
def test_a_run_whose_newest_checkpoint_is_lost_ends_with_equal_weights(
    tmp_path: Path, left: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    straight = trained(tmp_path / "straight.pt", 9)
    path = tmp_path / "checkpoint.pt"
    trained(path, 3)
    trained(path, 6)
    assert read_checkpoint(previous_of(path))["step"] == 3
    if left is None:
        path.unlink()  # as between the two renames
    else:
        path.write_bytes(left)
    with caplog.at_level(logging.WARNING):
        resumed = trained(path, 9, seed=5)
    assert "goes on from the checkpoint before, at step 3" in caplog.text
    assert (f"{path} is damaged" in caplog.text) == (left is not None)
    assert is_same(resumed.state_dict(), straight.state_dict())
    assert read_checkpoint(path)["step"] == 9


def test_two_damaged_checkpoints_end_the_run_and_are_kept(written: Path) -> None:
    trained(written, 4)
    for path in (written, previous_of(written)):
        path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(TrainingError, match=r"checkpoint\.pt is damaged"):
        restore(written, *parts())
    assert written.exists()
    assert previous_of(written).exists()


def test_a_full_disk_keeps_the_earlier_checkpoint(written: Path) -> None:
    resource = pytest.importorskip("resource")
    before, kept = resource.getrlimit(resource.RLIMIT_FSIZE), sorted(written.parent.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))  # as if the disk had 20 bytes
    try:
        with pytest.raises(TrainingError, match=r"can't be written: .*") as caught:
            save(written, *parts(), 3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "Make room" in caught.value.hint
    assert sorted(written.parent.iterdir()) == kept
    assert read_checkpoint(written)["step"] == 2


def test_data_and_names_are_flushed_before_old_checkpoints_are_removed(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    real_sync, real_replace = os.fsync, Path.replace

    def sync(handle: int) -> None:
        events.append(f"sync {Path(f'/proc/self/fd/{handle}').readlink().suffix or 'folder'}")
        real_sync(handle)

    def replace(path: Path, target: Path) -> Path:
        events.append(f"{path.suffix} > {target.suffix}")
        return real_replace(path, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(checkpoint.Path, "replace", replace)
    save(written, *parts(), 3)
    assert events == ["sync .part", ".pt > .previous", ".part > .pt", "sync folder"]
