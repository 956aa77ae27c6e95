"""A pickle's storages have the bytes that it declares, or it isn't converted."""

import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from medusa_core.errors import ConversionError
from medusa_core.hub.convert.pickles import load_tensors
from tests.support.hub.pickled import (
    MOST_BYTES,
    assert_same,
    leftovers,
    run,
    storage_pickle,
    write_archive,
)


@pytest.mark.parametrize("nbytes", [0, 4, 12, 15, 17, 32])
def test_a_storage_of_another_length_than_declared_is_refused(tmp_path: Path, nbytes: int) -> None:
    # Behind the storage lies enough for torch to map four numbers.
    data = storage_pickle(4, (4,), (1,))
    path = write_archive(tmp_path / "x.bin", data, _0=b"\x01" * nbytes, _1=b"\x02" * 64)
    assert torch.load(path, weights_only=True, mmap=True)["w"].shape == (4,), "torch doesn't ask"
    with pytest.raises(ConversionError, match=f"declares 16 bytes .* has {nbytes}"):
        load_tensors(path, MOST_BYTES)


def test_a_storage_that_misleads_leaves_nothing_written(tmp_path: Path) -> None:
    data = storage_pickle(4, (4,), (1,))
    path = write_archive(tmp_path / "x.bin", data, _0=b"\x01" * 12, _1=b"\x02" * 64)
    with pytest.raises(ConversionError, match="declares 16 bytes"):
        run(path, tmp_path / "out")
    assert leftovers(tmp_path / "out") == set()


def test_a_storage_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "x.bin", storage_pickle(4, (4,), (1,)), _1=b"\x02" * 64)
    with pytest.raises(ConversionError, match="has 0"):
        load_tensors(path, MOST_BYTES)


def test_one_storage_that_is_too_short_among_many_is_found(tmp_path: Path) -> None:
    first, second = storage_pickle(4, (4,), (1,)), storage_pickle(9, (9,), (1,))
    both = first.removesuffix(b".") + second.removeprefix(b"\x80\x02}")
    path = write_archive(tmp_path / "x.bin", both, _0=b"\x01" * 16)
    with pytest.raises(ConversionError, match="36 bytes"):
        load_tensors(path, MOST_BYTES)


STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
CPU = b"X\x03\x00\x00\x00cpu"
ZERO = b"X\x01\x00\x00\x000"


@pytest.mark.parametrize(
    "pickled",
    [
        b"\x80\x02}Q.",
        b"\x80\x02(X\x07\x00\x00\x00storageK\x01tQ.",
        b"\x80\x02" + STORAGE + ZERO + CPU + b"J\xff\xff\xff\xfftQ.",
        b"\x80\x02" + STORAGE + b"X\x04\x00\x00\x00../0" + CPU + b"K\x01tQ.",
        # The tuple is hidden behind another instruction.
        b"\x80\x02" + STORAGE + ZERO + CPU + b"K\x01tq\x00}h\x00Q.",
    ],
    ids=["no tuple", "too few", "negative", "a path", "by way of the memo"],
)
def test_a_storage_that_torch_would_not_declare_so_is_refused(
    tmp_path: Path, pickled: bytes
) -> None:
    path = write_archive(tmp_path / "x.bin", pickled, _0=b"\0" * 4)
    with pytest.raises(ConversionError):
        load_tensors(path, MOST_BYTES)


def test_memory_that_no_storage_fills_is_refused(tmp_path: Path) -> None:
    # A tensor of five numbers that the file doesn't hold: what happens to be in memory.
    data = b"\x80\x02}X\x01\x00\x00\x00wctorch\nFloatTensor\nK\x05\x85Rs."
    path = write_archive(tmp_path / "x.bin", data)
    assert torch.load(path, weights_only=True)["w"].shape == (5,), "torch makes it"
    with pytest.raises(ConversionError, match="without saved numbers"):
        load_tensors(path, MOST_BYTES)


def test_a_tensor_that_stands_for_its_negative_is_refused(tmp_path: Path) -> None:
    negative = torch.complex(torch.ones(3), torch.ones(3)).conj().imag
    assert negative.is_neg()
    torch.save({"w": negative}, tmp_path / "x.bin")
    with pytest.raises(ConversionError, match="kind"):
        load_tensors(tmp_path / "x.bin", MOST_BYTES)


def test_storages_are_found_by_name_in_an_archive_that_was_packed_anew(tmp_path: Path) -> None:
    tensors = {f"w{number}": torch.full((4,), float(number)) for number in range(12)}
    torch.save(tensors, tmp_path / "x.bin")
    with (
        zipfile.ZipFile(tmp_path / "x.bin") as old,
        zipfile.ZipFile(tmp_path / "y.bin", "w") as new,
    ):
        for name in sorted(old.namelist()):  # 10 before 2
            new.writestr(name, old.read(name))
    assert_same(load_tensors(tmp_path / "y.bin", MOST_BYTES), tensors)


def test_all_that_torch_saves_is_taken(tmp_path: Path) -> None:
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
