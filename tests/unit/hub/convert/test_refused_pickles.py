"""What isn't only tensors is refused: nothing of it runs, and nothing is written."""

import io
import os
import pickle
import struct
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from medusa_core.errors import ConversionError
from medusa_core.hub.convert.pickles import load_tensors
from tests.support.hub.pickled import (
    MOST_BYTES,
    Runs,
    assert_same,
    head_tensors,
    leftovers,
    run,
    storage_pickle,
    write_archive,
)


def commands(command: str) -> dict[str, bytes]:
    """Pickles that run a command, by the instruction that reaches it."""
    runs = Runs(os.system, command)
    nested = {"0.0.linear.weight": {"deeper": [(1, runs)]}}
    text = b"\x8c" + bytes([len(command)]) + command.encode()
    stack = b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93" + text + b"\x85R."
    memo = b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x8c\x01xh\x00h\x01\x93" + text + b"\x85R."
    return {
        "reduce": pickle.dumps({"a": runs}, protocol=2),
        "nested": pickle.dumps(nested, protocol=2),
        "stack global": stack,
        "stack global by memo": memo,
        "inst": b"(S'" + command.encode() + b"'\nios\nsystem\n.",
        "plain global": b"cos\nsystem\n(S'" + command.encode() + b"'\ntR.",
    }


@pytest.mark.filterwarnings("ignore:Detected pickle protocol 4")
@pytest.mark.parametrize("how", commands(""))
def test_a_pickle_that_runs_a_command_is_refused_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    data = commands("echo > ran")[how]
    path = write_archive(tmp_path / "medusa_lm_head.pt", data)
    with pytest.raises(ConversionError, match=r"would (call|do)") as caught:
        load_tensors(path, MOST_BYTES)
    assert "Don't open" in caught.value.hint
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}
    pickle.loads(data)  # noqa: S301 - that is what is shown
    assert leftovers(tmp_path) == {"medusa_lm_head.pt", "ran"}, "it is as hostile as it says"


def test_a_refusal_comes_out_of_the_process_that_opens_pickles(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "medusa_lm_head.pt", commands("true")["reduce"])
    with pytest.raises(ConversionError, match=r"would call \S+\.system") as caught:
        run(path)
    assert "Don't open" in caught.value.hint
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}


@pytest.mark.parametrize("call", [os.system, os.remove, eval, exec, __import__, open])
def test_what_a_pickle_would_call_is_named(tmp_path: Path, call: Callable[..., object]) -> None:
    path = write_archive(tmp_path / "x.bin", pickle.dumps(Runs(call, "x"), protocol=2))
    with pytest.raises(ConversionError, match=rf"would call \S*{call.__name__}"):
        load_tensors(path, MOST_BYTES)


@pytest.mark.parametrize(
    "name", ["builtins eval", "torch.serialization os.system", "torch load", "torch._utils _x"]
)
def test_any_name_that_is_not_on_the_list_is_refused(tmp_path: Path, name: str) -> None:
    module, attribute = name.split()
    data = b"\x80\x02c%s\n%s\n)R." % (module.encode(), attribute.encode())
    path = write_archive(tmp_path / "x.bin", data)
    with pytest.raises(ConversionError, match=f"would call .*{attribute}".replace(".s", r"\.s")):
        load_tensors(path, MOST_BYTES)


def test_instructions_that_torch_does_not_write_are_refused(tmp_path: Path) -> None:
    new_object = b"\x80\x02ccollections\nOrderedDict\n)\x81."
    with pytest.raises(ConversionError, match="no tensors"):
        load_tensors(write_archive(tmp_path / "new.bin", new_object), MOST_BYTES)
    extension = b"\x80\x02\x82\x01)R."
    with pytest.raises(ConversionError, match="would do more"):
        load_tensors(write_archive(tmp_path / "extension.bin", extension), MOST_BYTES)


def test_what_follows_the_end_of_a_pickle_never_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    two = b"\x80\x02}." + pickle.dumps(Runs(os.system, "echo > ran"), protocol=2)
    with pytest.raises(ConversionError, match="no tensors"):
        load_tensors(write_archive(tmp_path / "two.bin", two), MOST_BYTES)
    assert leftovers(tmp_path) == {"two.bin"}


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02X\xff\xff\xff\x7fabc.",  # a text of 2 GiB
        b"\x80\x04\x8d" + b"\xff" * 8 + b"abc.",  # one of 2^64 bytes
        b"\x80\x02\x8b\xff\xff\xff\x7f\x01.",  # a number of 2 GiB
        b"\x80\x02}",  # no end
        b"\x80\x02\xfe.",  # no instruction
        b"",
    ],
)
def test_a_pickle_that_promises_more_than_it_has_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ConversionError):
        load_tensors(write_archive(tmp_path / "huge.bin", data), MOST_BYTES)


@pytest.mark.skipif(sys.platform != "linux", reason="only there a process bounds its memory")
@pytest.mark.parametrize("kind", ["builtins bytearray", "torch FloatTensor"])
def test_memory_that_a_pickle_asks_for_is_bounded(tmp_path: Path, kind: str) -> None:
    call = b"c%s\n%s\n" % tuple(kind.encode().split())
    data = b"\x80\x02}X\x01\x00\x00\x00w" + call + b"\x8a\x05\0\0\0\0\x04\x85Rs."  # 16 GiB
    path = write_archive(tmp_path / "x.bin", data)
    with pytest.raises(ConversionError, match=r"unfold|memory"):
        run(path, tmp_path / "out")
    assert leftovers(tmp_path / "out") == set()


def test_a_tensor_much_larger_than_its_file_is_refused(tmp_path: Path) -> None:
    wide = 1 << 20
    bombs = {
        "repeated": (4, (wide, wide), (0, 0)),
        "beyond": (4, (wide,), (1,)),
        "declared": (1 << 40, (1 << 40,), (1,)),
    }
    for name, (count, size, stride) in bombs.items():
        data = storage_pickle(count, size, stride)
        path = write_archive(tmp_path / f"{name}.bin", data, _0=b"\0" * 16)
        with pytest.raises(ConversionError):
            load_tensors(path, MOST_BYTES)
    # And the same pickle with a size that is true is taken.
    path = write_archive(tmp_path / "ok.bin", storage_pickle(4, (2, 2), (2, 1)), _0=b"\0" * 16)
    assert_same(load_tensors(path, MOST_BYTES), {"w": torch.zeros(2, 2)})


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.bin"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", storage_pickle(1 << 22, (1 << 22,), (1,)))
        archive.writestr("archive/data/0", b"\0" * (1 << 24))
    assert path.stat().st_size < 1 << 16
    with pytest.raises(ConversionError, match="compressed"):
        load_tensors(path, MOST_BYTES)


def test_members_that_promise_more_than_the_file_are_refused(tmp_path: Path) -> None:
    data_pkl = storage_pickle(1 << 28, (1 << 28,), (1,))
    path = write_archive(tmp_path / "x.bin", data_pkl, _0=b"\0" * 64)
    data = path.read_bytes()
    # In the table of contents, both sizes of the member data/0.
    entry = data.rindex(b"archive/data/0") - 46
    huge = struct.pack("<LL", 1 << 30, 1 << 30)
    path.write_bytes(data[: entry + 20] + huge + data[entry + 28 :])
    with pytest.raises(ConversionError, match="declares"):
        load_tensors(path, MOST_BYTES)


def test_archives_that_two_readers_could_read_differently_are_refused(tmp_path: Path) -> None:
    data_pkl = storage_pickle(4, (2, 2), (2, 1))
    good = write_archive(tmp_path / "x.bin", data_pkl, _0=b"\0" * 16).read_bytes()
    load_tensors(tmp_path / "x.bin", MOST_BYTES)
    foreign = {
        "something after the end": good + b"x",
        "something before the beginning": b"PK\x03\x04" + good,
        "two archives": good + good,
    }
    for what, data in foreign.items():
        path = tmp_path / f"{what}.bin"
        path.write_bytes(data)
        with pytest.raises(ConversionError, match="something"):
            load_tensors(path, MOST_BYTES)
    for number, other in enumerate(("archive/DATA.pkl", "archive/data/0", "other/data.pkl")):
        path = write_archive(tmp_path / f"{number}.bin", data_pkl, _0=b"\0" * 16)
        with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
            warnings.simplefilter("ignore")  # of a name that comes twice
            archive.writestr(other, b"\x01" * 16)
        with pytest.raises(ConversionError, match="two members"):
            load_tensors(path, MOST_BYTES)


def test_numbers_of_another_byte_order_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", storage_pickle(4, (2, 2), (2, 1)))
        archive.writestr("archive/byteorder", b"big")
        archive.writestr("archive/data/0", b"\0" * 16)
    with pytest.raises(ConversionError, match="little-endian"):
        load_tensors(path, MOST_BYTES)


def test_a_truncated_archive_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save(head_tensors(), buffer)
    data = buffer.getvalue()
    path = tmp_path / "medusa_lm_head.pt"
    for length in [0, 1, 4, 30, *range(100, len(data), len(data) // 40), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(ConversionError):
            load_tensors(path, MOST_BYTES)


def test_a_flipped_byte_never_escapes_as_another_error(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save({"w": torch.ones(3)}, buffer)
    data = bytearray(buffer.getvalue())
    path = tmp_path / "x.bin"
    refused = 0
    for place in range(len(data)):
        data[place] ^= 0x5A
        path.write_bytes(data)
        try:
            load_tensors(path, MOST_BYTES)
        except ConversionError:
            refused += 1
        data[place] ^= 0x5A
    assert refused > len(data) // 4


def test_the_format_of_old_torch_is_refused_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "medusa_lm_head.pt"
    torch.save(head_tensors(), path, _use_new_zipfile_serialization=False)
    with pytest.raises(ConversionError, match=r"1\.6") as caught:
        load_tensors(path, MOST_BYTES)
    assert "weights_only=True" in caught.value.hint


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:", "pointer"),
        (b"<!doctype html>", "web page"),
        (b"", "empty"),
        (b"\0" * 64, "unknown kind"),
    ],
)
def test_what_is_no_pickle_is_named(tmp_path: Path, data: bytes, what: str) -> None:
    (tmp_path / "medusa_lm_head.pt").write_bytes(data)
    with pytest.raises(ConversionError, match=what):
        load_tensors(tmp_path / "medusa_lm_head.pt", MOST_BYTES)


def test_a_checkpoint_with_more_than_tensors_is_refused(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "state": head_tensors()}, tmp_path / "medusa_lm_head.pt")
    with pytest.raises(ConversionError, match="no tensor"):
        run(tmp_path)
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}
