"""A pickle's storages have the bytes that it declares, or it isn't converted."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from medusa_core.errors import ConversionError
from medusa_core.hub.convert.pickles import inspect_pickle
from medusa_core.hub.convert.pickles_storages import check_storages
from tests.hub.pickled import assert_same, leftovers, run, storage_pickle, write_archive


@pytest.mark.parametrize("nbytes", [0, 4, 12, 15, 17, 32])
def test_a_storage_of_another_length_than_declared_is_refused(tmp_path: Path, nbytes: int) -> None:
    # Behind the storage lies enough for torch to map four numbers.
    data = storage_pickle(4, (4,), (1,))
    path = write_archive(tmp_path / "x.bin", data, _0=b"\x01" * nbytes, _1=b"\x02" * 64)
    inspect_pickle(path)
    with pytest.raises(ConversionError, match=f"declares 16 bytes .* has {nbytes}"):
        run(path, tmp_path / "out")
    assert leftovers(tmp_path / "out") == set()


def test_a_storage_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "x.bin", storage_pickle(4, (4,), (1,)), _1=b"\x02" * 64)
    with pytest.raises(ConversionError, match="has none"):
        check_storages(path)


def test_one_storage_that_is_too_short_among_many_is_found(tmp_path: Path) -> None:
    first, second = storage_pickle(4, (4,), (1,)), storage_pickle(9, (9,), (1,))
    both = first.removesuffix(b".") + second.removeprefix(b"\x80\x02}")
    path = write_archive(tmp_path / "x.bin", both, _0=b"\x01" * 16)
    with pytest.raises(ConversionError, match="36 bytes"):
        check_storages(path)


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
    with pytest.raises(ConversionError, match="as torch never does"):
        check_storages(path)


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
    check_storages(tmp_path / "x.bin")
    run(tmp_path / "x.bin", tmp_path / "out")
    assert_same(load_file(tmp_path / "out" / "model.safetensors"), tensors)
