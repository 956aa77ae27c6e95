"""What isn't only tensors is refused, before anything is opened."""

import io
import os
import pickle
import struct
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from medusa_core.errors import ConversionError
from medusa_core.hub.convert.pickles import inspect_pickle
from medusa_core.hub.convert.pickles_archive import ArchiveLimits
from tests.hub.pickled import (
    Runs,
    assert_same,
    head_tensors,
    leftovers,
    run,
    storage_pickle,
    write_archive,
)


def commands() -> list[tuple[str, bytes]]:
    """Pickles that run a command, by the instruction that reaches it."""
    nested = {"0.0.linear.weight": {"deeper": [(1, Runs(os.system, "true"))]}}
    stack = b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93\x8c\x04true\x85R."
    memo = b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x8c\x01xh\x00h\x01\x93\x8c\x04true\x85R."
    return [
        ("reduce", pickle.dumps({"a": Runs(os.system, "true")}, protocol=2)),
        ("nested", pickle.dumps(nested, protocol=2)),
        ("stack global", stack),
        ("stack global by memo", memo),
        ("inst", b"(S'true'\nios\nsystem\n."),
        ("plain global", b"cos\nsystem\n(S'true'\ntR."),
    ]


@pytest.mark.parametrize(("how", "data"), commands(), ids=[how for how, _ in commands()])
def test_a_pickle_that_runs_a_command_is_refused_by_its_name(
    tmp_path: Path, how: str, data: bytes
) -> None:
    path = write_archive(tmp_path / "medusa_lm_head.pt", data)
    with pytest.raises(ConversionError, match=r"would call (os|posix|nt)\.system") as caught:
        run(path)
    assert caught.value.data["name"] in ("os.system", "posix.system", "nt.system")
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}


@pytest.mark.parametrize(
    "name", ["builtins eval", "torch.serialization os.system", "torch load", "torch._utils _x"]
)
def test_any_name_that_is_not_on_the_list_is_refused(tmp_path: Path, name: str) -> None:
    module, attribute = name.split()
    data = b"\x80\x02c%s\n%s\n)R." % (module.encode(), attribute.encode())
    path = write_archive(tmp_path / "x.bin", data)
    with pytest.raises(
        ConversionError, match=f"would call {module}.{attribute}".replace(".", r"\.")
    ):
        inspect_pickle(path)


def test_instructions_that_torch_does_not_write_are_refused(tmp_path: Path) -> None:
    new_object = b"\x80\x02ccollections\nOrderedDict\n)\x81."
    with pytest.raises(ConversionError, match="NEWOBJ"):
        inspect_pickle(write_archive(tmp_path / "new.bin", new_object))
    extension = b"\x80\x02\x82\x01)R."
    with pytest.raises(ConversionError, match="EXT1"):
        inspect_pickle(write_archive(tmp_path / "extension.bin", extension))


def test_what_follows_the_end_of_a_pickle_is_refused(tmp_path: Path) -> None:
    two = b"\x80\x02}." + pickle.dumps(Runs(os.system, "true"), protocol=2)
    with pytest.raises(ConversionError, match="follows the end"):
        inspect_pickle(write_archive(tmp_path / "two.bin", two))


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
        inspect_pickle(write_archive(tmp_path / "huge.bin", data))


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
        inspect_pickle(path)  # nothing is wrong with what it calls
        with pytest.raises(ConversionError):
            run(path, tmp_path / "out")
        assert leftovers(tmp_path / "out") == set()
    # And the same pickle with a size that is true is taken.
    path = write_archive(tmp_path / "ok.bin", storage_pickle(4, (2, 2), (2, 1)), _0=b"\0" * 16)
    run(path, tmp_path / "out")
    assert_same(load_file(tmp_path / "out" / "model.safetensors"), {"w": torch.zeros(2, 2)})


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.bin"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", storage_pickle(1 << 22, (1 << 22,), (1,)))
        archive.writestr("archive/data/0", b"\0" * (1 << 24))
    assert path.stat().st_size < 1 << 16
    with pytest.raises(ConversionError, match="compressed"):
        inspect_pickle(path)


def test_members_that_promise_more_than_the_file_are_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "x.bin", b"\x80\x02}.", _0=b"\0" * 64)
    data = path.read_bytes()
    # In the table of contents, both sizes of the member data/0.
    entry = data.rindex(b"archive/data/0") - 46
    huge = struct.pack("<LL", 1 << 30, 1 << 30)
    path.write_bytes(data[: entry + 20] + huge + data[entry + 28 :])
    with pytest.raises(ConversionError, match="promises"):
        inspect_pickle(path)


def test_archives_that_two_readers_could_read_differently_are_refused(tmp_path: Path) -> None:
    good = write_archive(tmp_path / "x.bin", b"\x80\x02}.").read_bytes()
    inspect_pickle(tmp_path / "x.bin")
    foreign = {
        "something after the end": good + b"x",
        "something before the beginning": b"PK\x03\x04" + good,
        "two archives": good + good,
    }
    for what, data in foreign.items():
        path = tmp_path / f"{what}.bin"
        path.write_bytes(data)
        with pytest.raises(ConversionError):
            inspect_pickle(path)
    with pytest.raises(ConversionError, match="something follows it"):
        inspect_pickle(tmp_path / "something after the end.bin")
    with zipfile.ZipFile(tmp_path / "y.bin", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
        archive.writestr("archive/DATA.pkl", b"\x80\x02}.")
    with pytest.raises(ConversionError, match="one name"):
        inspect_pickle(tmp_path / "y.bin")
    with zipfile.ZipFile(tmp_path / "z.bin", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
        archive.writestr("archive/code/model.py", b"print()")
    with pytest.raises(ConversionError, match=r"code/model\.py"):
        inspect_pickle(tmp_path / "z.bin")


def test_archives_beyond_the_limits_are_refused(tmp_path: Path) -> None:
    members = {f"_{number}": b"" for number in range(20)}
    path = write_archive(tmp_path / "x.bin", b"\x80\x02}.", **members)
    with pytest.raises(ConversionError, match="23 members"):
        inspect_pickle(path, ArchiveLimits(most_members=10))
    with pytest.raises(ConversionError, match="4 bytes"):
        inspect_pickle(path, ArchiveLimits(most_pickle_bytes=3))


def test_a_truncated_archive_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save(head_tensors(), buffer)
    data = buffer.getvalue()
    path = tmp_path / "medusa_lm_head.pt"
    for length in [0, 1, 4, 30, *range(100, len(data), len(data) // 40), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(ConversionError):
            inspect_pickle(path)


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
            inspect_pickle(path)
        except ConversionError:
            refused += 1
        data[place] ^= 0x5A
    assert refused > len(data) // 4


def test_the_format_of_old_torch_is_refused_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "medusa_lm_head.pt"
    torch.save(head_tensors(), path, _use_new_zipfile_serialization=False)
    with pytest.raises(ConversionError, match=r"1\.6") as caught:
        run(path)
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
        run(tmp_path)


def test_a_checkpoint_with_more_than_tensors_is_refused(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "state": head_tensors()}, tmp_path / "medusa_lm_head.pt")
    with pytest.raises(ConversionError, match="no tensor"):
        run(tmp_path)
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}
