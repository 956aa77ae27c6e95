"""A batch whose cache and activations lie on a disk that fails, or whose program is killed."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.errors import TierError
from medusa_core.messages import Policy, Shares
from medusa_core.runtime.kv.offloaded.row_file import RowFile
from medusa_core.runtime.offload.activations import ActivationStore
from medusa_core.system.jobs.batch.row import read_rows
from tests.support.engine.batch_files import LINES, WORDS, rows_of, write
from tests.support.engine.batch_policies import ON_DISK, batch, policy_file, texts
from tests.support.models.targets import Folders

ALL_BELOW = Policy(ON_DISK, ON_DISK, ON_DISK, batch=2, num_batches=2, prompt_rows=32)
HALF_BELOW = Policy(Shares(), Shares(0.5, 0.0, 0.5), batch=2, num_batches=2, prompt_rows=32)


def counted(function: Callable[..., object], allowed: int) -> Callable[..., object]:
    """The function, which fails as a disk does once it was called so often."""
    num_calls = 0

    def call(*args: object, **more: object) -> object:
        nonlocal num_calls
        num_calls += 1
        if num_calls > allowed:
            raise TierError("The disk is full.", "Make room; the same command goes on.")
        return function(*args, **more)

    return call


def command(folders: Folders, tmp_path: Path, policy: Policy, *more: str) -> list[str]:
    prompts, tiers = write(tmp_path / "in.jsonl", LINES), str(tmp_path / "tiers")
    file = policy_file(tmp_path / "policy.json", policy)
    how = ("--drafter", "none", "--tier-disk", tiers, "--policy", file, *more)
    return batch(folders, prompts, tmp_path / "out.jsonl", *how)


@pytest.mark.expects_errors
@pytest.mark.usefixtures("known_rates")
@pytest.mark.parametrize(
    ("owner", "name", "allowed"),
    [
        (RowFile, "write", 40),
        pytest.param(RowFile, "read", 60, marks=pytest.mark.slow),
        pytest.param(ActivationStore, "put", 100, marks=pytest.mark.slow),
    ],
)
def test_a_disk_error_within_a_block_loses_no_answer(
    owner: type,
    name: str,
    allowed: int,
    folders: Folders,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = write(tmp_path / "whole.in", LINES)
    assert main(batch(folders, whole, tmp_path / "whole.jsonl")) == 0
    args = command(folders, tmp_path, ALL_BELOW)
    monkeypatch.setattr(owner, name, counted(getattr(owner, name), allowed))
    assert main(args) == 1
    assert "Make room" in capsys.readouterr().err
    done = rows_of(tmp_path / "out.jsonl")
    assert len(done) < len(LINES)
    assert not any(row["error"] for row in done.values())  # no line is to blame
    monkeypatch.undo()
    assert main(args) == 0
    assert texts(tmp_path / "out.jsonl") == texts(tmp_path / "whole.jsonl")
    assert {path.suffix for path in (tmp_path / "tiers").iterdir()} == {".layers"}


def test_a_killed_batch_leaves_no_files_and_can_be_resumed(
    folders: Folders, tmp_path: Path
) -> None:
    args = command(folders, tmp_path, HALF_BELOW, "--max-new-tokens", "100")
    process = subprocess.Popen([sys.executable, "-m", "medusa_core", *args])
    while not read_rows(tmp_path / "out.jsonl")[0]:
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert not list((tmp_path / "tiers").iterdir())
    before = read_rows(tmp_path / "out.jsonl")[0]
    assert main(args) == 0
    rows = rows_of(tmp_path / "out.jsonl")
    assert {*rows} == {*WORDS}
    assert [rows[row.id]["text"] for row in before] == [row.text for row in before]
