"""The process that converts pickles: its death, its silence and its bounds."""

import os
import pickle
import sys
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file

from medusa_core.errors import Cancelled, ConversionError
from medusa_core.hub.convert.convert import (
    ConversionLimits,
    convert,
)
from medusa_core.hub.convert.convert_process import ConversionJob
from medusa_core.hub.convert.convert_source import find_source
from medusa_core.system.sandbox.process import Sandbox
from tests.support.hub.pickled import (
    LIMITS,
    Runs,
    head_tensors,
    leftovers,
    run,
    shards,
    write_archive,
)


def converters() -> list[psutil.Process]:
    """Return the running converter processes, without template processes of other tests."""
    children = psutil.Process().children()
    return [child for child in children if "convert_worker" in " ".join(child.cmdline())]


def test_a_killed_converter_leaves_nothing(tmp_path: Path) -> None:
    shards(tmp_path / "in")
    before = leftovers(tmp_path)

    def kill(written: int, total: int) -> None:
        if written:
            # The worker waits for a word now: something is written, and something is not.
            (worker,) = converters()
            assert any("out" in name for name in leftovers(tmp_path) - before)
            worker.kill()

    with pytest.raises(ConversionError, match="unexpectedly") as caught:
        convert(find_source(tmp_path / "in"), is_consented=True, limits=LIMITS, on_progress=kill)
    assert caught.value.data["code"] != 0
    assert leftovers(tmp_path) == before


def test_a_cancelled_conversion_leaves_nothing(tmp_path: Path) -> None:
    shards(tmp_path / "in")
    before = leftovers(tmp_path)
    progress: list[int] = []
    with pytest.raises(Cancelled):
        convert(
            find_source(tmp_path / "in"),
            is_consented=True,
            limits=LIMITS,
            on_progress=lambda written, total: progress.append(written),
            is_cancelled=lambda: bool(progress and progress[-1]),
        )
    assert leftovers(tmp_path) == before
    assert not converters()


def test_a_hanging_converter_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save(head_tensors(), tmp_path / "medusa_lm_head.pt")
    # Importing torch alone takes longer.
    with pytest.raises(ConversionError, match="done nothing"):
        convert(
            find_source(tmp_path),
            is_consented=True,
            limits=ConversionLimits(time_s=0.05, floor_bytes=0),
        )
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}


def test_the_worker_ends_when_its_parent_is_gone(tmp_path: Path) -> None:
    torch.save(head_tensors(), tmp_path / "medusa_lm_head.pt")
    (tmp_path / "staging").mkdir()
    job = ConversionJob(
        (str(tmp_path / "medusa_lm_head.pt"),),
        str(tmp_path / "staging"),
        False,
        (),
        "",
        1 << 32,
        1 << 30,
    )
    child = Sandbox("medusa_core.hub.convert.convert_worker")
    try:
        child.send(asdict(job))
        assert child._process.stdin is not None
        child._process.stdin.close()  # as the end of this program would
        assert child.wait(60) == 3
    finally:
        child.close()


def test_memory_of_the_worker_is_bounded(tmp_path: Path) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("only Linux bounds a process's address space")
    # Transposed, it must be copied to be written; there is no room for the copy.
    torch.save({"w": torch.zeros(8192, 4096).t()}, tmp_path / "pytorch_model.bin")
    tight = ConversionLimits(time_s=120, floor_bytes=0, memory_bytes=-2 * (128 << 20) + (32 << 20))
    with pytest.raises(ConversionError):
        convert(find_source(tmp_path), is_consented=True, limits=tight)
    assert leftovers(tmp_path) == {"pytorch_model.bin"}
    done = run(tmp_path)
    assert [path.name for path in done.files] == ["model.safetensors"]
    assert load_file(done.files[0])["w"].shape == (4096, 8192)


def test_a_refusal_is_reported_by_the_sandboxed_process(tmp_path: Path) -> None:
    path = write_archive(
        tmp_path / "medusa_lm_head.pt", pickle.dumps({"a": Runs(os.system, "true")}, protocol=2)
    )
    with pytest.raises(ConversionError, match=r"would call \S+\.system") as caught:
        run(path)
    assert "Don't open" in caught.value.hint
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}


@pytest.mark.skipif(sys.platform != "linux", reason="only there a process bounds its memory")
@pytest.mark.parametrize("kind", ["builtins bytearray", "torch FloatTensor"])
def test_memory_that_a_pickle_allocates_is_bounded(tmp_path: Path, kind: str) -> None:
    call = b"c%s\n%s\n" % tuple(kind.encode().split())
    data = b"\x80\x02}X\x01\x00\x00\x00w" + call + b"\x8a\x05\0\0\0\0\x04\x85Rs."  # 16 GiB
    path = write_archive(tmp_path / "x.bin", data)
    with pytest.raises(ConversionError, match=r"unfold|memory"):
        run(path, tmp_path / "out")
    assert leftovers(tmp_path / "out") == set()
