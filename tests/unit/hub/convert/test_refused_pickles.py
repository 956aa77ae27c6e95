"""What isn't only tensors is refused: nothing of it runs, and nothing is written."""

import io
import os
import pickle
import re
import struct
import warnings
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from medusa_core.errors import ConversionError
from medusa_core.hub.convert.pickles import load_tensors
from tests.support.hub.pickled import (
    MAX_BYTES,
    Runs,
    assert_same,
    head_tensors,
    leftovers,
    run,
    storage_pickle,
    write_archive,
)

pytestmark = pytest.mark.usefixtures("converts_here")


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


def refuse(path: Path, words: str | None = None) -> ConversionError:
    """The error of a pickle that isn't opened."""
    with pytest.raises(ConversionError, match=words) as caught:
        load_tensors(path, MAX_BYTES)
    return caught.value


@pytest.mark.filterwarnings("ignore:Detected pickle protocol 4")
def test_a_pickle_that_runs_a_command_is_refused_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for how, data in commands("echo > ran").items():
        folder = tmp_path / how
        folder.mkdir()
        monkeypatch.chdir(folder)
        error = refuse(write_archive(folder / "medusa_lm_head.pt", data), r"would (call|do)")
        assert "Don't open" in error.hint
        assert leftovers(folder) == {"medusa_lm_head.pt"}, how
        pickle.loads(data)  # noqa: S301 - that is what is shown
        assert leftovers(folder) == {"medusa_lm_head.pt", "ran"}, "it is as hostile as it says"


def test_a_refusal_names_what_a_pickle_would_call(tmp_path: Path) -> None:
    calls = (os.system, os.remove, eval, exec, __import__, open)
    pickled = {call.__name__: pickle.dumps(Runs(call, "x"), protocol=2) for call in calls}
    for name in ("builtins eval", "torch.serialization os.system", "torch load", "torch._utils _x"):
        module, attribute = name.split()
        pickled[attribute] = b"\x80\x02c%s\n%s\n)R." % (module.encode(), attribute.encode())
    for attribute, data in pickled.items():
        refuse(write_archive(tmp_path / "x.bin", data), rf"would call .*{re.escape(attribute)}")


PICKLES = {
    "no tensors": (
        b"\x80\x02ccollections\nOrderedDict\n)\x81.",  # an instruction that torch doesn't write
        # What follows the end never runs.
        b"\x80\x02}." + pickle.dumps(Runs(os.system, "echo > ran"), protocol=2),
    ),
    "would do more": (b"\x80\x02\x82\x01)R.",),  # an extension
    "": (
        b"\x80\x02X\xff\xff\xff\x7fabc.",  # a text of 2 GiB
        b"\x80\x04\x8d" + b"\xff" * 8 + b"abc.",  # one of 2^64 bytes
        b"\x80\x02\x8b\xff\xff\xff\x7f\x01.",  # a number of 2 GiB
        *(b"\x80\x02}", b"\x80\x02\xfe.", b""),  # no end, no instruction
    ),
}


def test_a_pickle_that_torch_would_not_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, pickles in PICKLES.items():
        for data in pickles:
            refuse(write_archive(tmp_path / "x.bin", data), words or None)
    assert leftovers(tmp_path) == {"x.bin"}


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
        refuse(path)
    # And the same pickle with a size that is true is taken.
    path = write_archive(tmp_path / "ok.bin", storage_pickle(4, (2, 2), (2, 1)), _0=b"\0" * 16)
    assert_same(load_tensors(path, MAX_BYTES), {"w": torch.zeros(2, 2)})


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.bin"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", storage_pickle(1 << 22, (1 << 22,), (1,)))
        archive.writestr("archive/data/0", b"\0" * (1 << 24))
    assert path.stat().st_size < 1 << 16
    refuse(path, "compressed")


def test_archive_members_that_claim_more_than_the_file_are_refused(tmp_path: Path) -> None:
    data_pkl = storage_pickle(1 << 28, (1 << 28,), (1,))
    path = write_archive(tmp_path / "x.bin", data_pkl, _0=b"\0" * 64)
    data = path.read_bytes()
    # In the table of contents, both sizes of the member data/0.
    entry = data.rindex(b"archive/data/0") - 46
    huge = struct.pack("<LL", 1 << 30, 1 << 30)
    path.write_bytes(data[: entry + 20] + huge + data[entry + 28 :])
    refuse(path, "declares")


def test_ambiguous_archives_are_refused(tmp_path: Path) -> None:
    data_pkl = storage_pickle(4, (2, 2), (2, 1))
    good = write_archive(tmp_path / "x.bin", data_pkl, _0=b"\0" * 16).read_bytes()
    load_tensors(tmp_path / "x.bin", MAX_BYTES)
    foreign = {
        "something after the end": good + b"x",
        "something before the beginning": b"PK\x03\x04" + good,
        "two archives": good + good,
    }
    for what, data in foreign.items():
        path = tmp_path / f"{what}.bin"
        path.write_bytes(data)
        refuse(path, "something")
    for number, other in enumerate(("archive/DATA.pkl", "archive/data/0", "other/data.pkl")):
        path = write_archive(tmp_path / f"{number}.bin", data_pkl, _0=b"\0" * 16)
        with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
            warnings.simplefilter("ignore")  # of a name that comes twice
            archive.writestr(other, b"\x01" * 16)
        refuse(path, "two members")


def test_numbers_of_another_byte_order_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", storage_pickle(4, (2, 2), (2, 1)))
        archive.writestr("archive/byteorder", b"big")
        archive.writestr("archive/data/0", b"\0" * 16)
    refuse(path, "little-endian")


def test_a_truncated_archive_is_refused_at_any_length(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save(head_tensors(), buffer)
    data = buffer.getvalue()
    path = tmp_path / "medusa_lm_head.pt"
    for length in [0, 1, 4, 30, *range(100, len(data), len(data) // 40), len(data) - 1]:
        path.write_bytes(data[:length])
        refuse(path)


def test_a_flipped_byte_never_raises_another_error(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save({"w": torch.ones(3)}, buffer)
    data = bytearray(buffer.getvalue())
    path = tmp_path / "x.bin"
    refused = 0
    for place in range(0, len(data), 3):
        data[place] ^= 0x5A
        path.write_bytes(data)
        try:
            load_tensors(path, MAX_BYTES)
        except ConversionError:
            refused += 1
        data[place] ^= 0x5A
    assert refused > len(data) // 12


def test_the_legacy_torch_format_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "medusa_lm_head.pt"
    torch.save(head_tensors(), path, _use_new_zipfile_serialization=False)
    with pytest.raises(ConversionError, match=r"1\.6") as caught:
        load_tensors(path, MAX_BYTES)
    assert "weights_only=True" in caught.value.hint


def test_a_file_that_is_no_pickle_is_named(tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:"
    for data, what in (
        *((pointer, "pointer"), (b"<!doctype html>", "web page")),
        *((b"", "empty"), (b"\0" * 64, "unknown kind")),
    ):
        (tmp_path / "medusa_lm_head.pt").write_bytes(data)
        refuse(tmp_path / "medusa_lm_head.pt", what)


def test_a_checkpoint_with_more_than_tensors_is_refused(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "state": head_tensors()}, tmp_path / "medusa_lm_head.pt")
    refuse(tmp_path / "medusa_lm_head.pt", "no tensor")


# Storages have the bytes that the pickle declares.


def test_a_storage_whose_length_differs_from_the_declared_is_refused(tmp_path: Path) -> None:
    data = storage_pickle(4, (4,), (1,))
    for nbytes in (0, 4, 12, 15, 17, 32):
        # Behind the storage lies enough for torch to map four numbers.
        members = {"_0": b"\x01" * nbytes, "_1": b"\x02" * 64}
        path = write_archive(tmp_path / f"{nbytes}.bin", data, **members)
        assert torch.load(path, weights_only=True, mmap=True)["w"].shape == (4,), "torch maps it"
        refuse(path, f"declares 16 bytes .* has {nbytes}")
    refuse(write_archive(tmp_path / "x.bin", data, _1=b"\x02" * 64), "has 0")


def test_one_storage_that_is_too_short_among_many_is_detected(tmp_path: Path) -> None:
    first, second = storage_pickle(4, (4,), (1,)), storage_pickle(9, (9,), (1,))
    both = first.removesuffix(b".") + second.removeprefix(b"\x80\x02}")
    path = write_archive(tmp_path / "x.bin", both, _0=b"\x01" * 16)
    refuse(path, "36 bytes")


STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
CPU = b"X\x03\x00\x00\x00cpu"
ZERO = b"X\x01\x00\x00\x000"


def test_a_storage_declared_unlike_torch_does_is_refused(tmp_path: Path) -> None:
    for pickled in (
        b"}Q.",  # no tuple
        b"(X\x07\x00\x00\x00storageK\x01tQ.",  # too few
        STORAGE + ZERO + CPU + b"J\xff\xff\xff\xfftQ.",  # a negative length
        STORAGE + b"X\x04\x00\x00\x00../0" + CPU + b"K\x01tQ.",  # a path
        # The tuple is hidden behind another instruction.
        STORAGE + ZERO + CPU + b"K\x01tq\x00}h\x00Q.",
    ):
        refuse(write_archive(tmp_path / "x.bin", b"\x80\x02" + pickled, _0=b"\0" * 4))


def test_memory_without_a_storage_is_refused(tmp_path: Path) -> None:
    # A tensor of five numbers that the file doesn't hold: what happens to be in memory.
    data = b"\x80\x02}X\x01\x00\x00\x00wctorch\nFloatTensor\nK\x05\x85Rs."
    path = write_archive(tmp_path / "x.bin", data)
    assert torch.load(path, weights_only=True)["w"].shape == (5,), "torch makes it"
    refuse(path, "without saved numbers")


def test_a_tensor_with_the_negative_bit_is_refused(tmp_path: Path) -> None:
    negative = torch.complex(torch.ones(3), torch.ones(3)).conj().imag
    assert negative.is_neg()
    torch.save({"w": negative}, tmp_path / "x.bin")
    refuse(tmp_path / "x.bin", "kind")


def test_storages_are_found_by_name_in_a_repacked_archive(tmp_path: Path) -> None:
    tensors = {f"w{number}": torch.full((4,), float(number)) for number in range(12)}
    torch.save(tensors, tmp_path / "x.bin")
    with (
        zipfile.ZipFile(tmp_path / "x.bin") as old,
        zipfile.ZipFile(tmp_path / "y.bin", "w") as new,
    ):
        for name in sorted(old.namelist()):  # 10 before 2
            new.writestr(name, old.read(name))
    assert_same(load_tensors(tmp_path / "y.bin", MAX_BYTES), tensors)


def test_everything_that_torch_saves_is_accepted(tmp_path: Path) -> None:
    whole = torch.randn(6, 4)
    kinds = ("double", "float", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool")
    tensors = {kind: getattr(torch.ones(3), kind)() for kind in kinds} | {
        # Names that torch writes itself, views of one storage, and nothing.
        "cpu": whole[1:3],
        "storage": whole,
        "empty": torch.empty(0, 4),
    }
    torch.save(tensors, tmp_path / "x.bin")
    run(tmp_path / "x.bin", tmp_path / "out")
    assert_same(load_file(tmp_path / "out" / "model.safetensors"), tensors)
