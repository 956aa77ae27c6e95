"""Rows of an embedding table are those of the whole matrix, wherever they are read from."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.models import token_table
from medusa_core.models.blocks import sizes
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.block_types import block_type
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.models.token_table import DenseTable, FileRows, StoredRows, StoredTable, TokenTable

NUM_ROWS, COLUMNS = 9, 256
CALLS = ([3], [4, 3, 3, 8], [0], [1, 2, 5, 6, 7], list(range(NUM_ROWS)), [8, 0])


def table_of(kind: str, dtype: torch.dtype, path: Path) -> tuple[TokenTable, Tensor]:
    """Write blocks to a file after some other bytes. Returns their table, and all its rows."""
    blocks = random_blocks(kind, NUM_ROWS, COLUMNS, seed=2)
    path.write_bytes(b"header" + blocks.numpy().tobytes() + b"others")
    decode = block_type(kind).dequantize
    stored = StoredRows(path, 6, NUM_ROWS, blocks.shape[1], decode)
    table = StoredTable(FileRows(stored), decode, (NUM_ROWS, COLUMNS), dtype)
    return table, decode(blocks, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("num_kept", [1, 4, 100])
def test_rows_of_a_file_have_the_bits_of_the_whole_matrix(
    dtype: torch.dtype, num_kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "_ROW_CACHE_BYTES", num_kept * COLUMNS * dtype.itemsize)
    for kind in BLOCK_SIZES:
        table, matrix = table_of(kind, dtype, tmp_path / kind)
        for token_ids in CALLS:
            vectors, indices = table.find(token_ids)
            assert torch.equal(vectors[list(indices)], matrix[token_ids]), (kind, token_ids)
            assert torch.equal(table.rows(torch.tensor(token_ids)), matrix[token_ids])
        assert torch.equal(table.matrix(), matrix)
        assert table.nbytes == min(num_kept, NUM_ROWS) * COLUMNS * dtype.itemsize


def test_rows_that_are_kept_are_not_read_again(tmp_path: Path) -> None:
    table, matrix = table_of("q4_k", torch.float32, tmp_path / "file")
    table.find([3, 4])
    (tmp_path / "file").write_bytes(b"")
    assert torch.equal(table.rows(torch.tensor([4, 3])), matrix[[4, 3]])
    for _ in range(2):  # a failure keeps nothing
        with pytest.raises(CheckpointError, match="overwritten"):
            table.find([3, 5])


def test_a_table_made_for_inference_is_read_outside_of_it(tmp_path: Path) -> None:
    with torch.inference_mode():
        table, matrix = table_of("q4_k", torch.float32, tmp_path / "file")
        assert torch.equal(table.rows(torch.tensor([4])), matrix[[4]])
    assert torch.equal(table.rows(torch.tensor([4, 3])), matrix[[4, 3]])


def test_a_file_that_is_overwritten_while_it_is_open_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    table, matrix = table_of("q4_k", torch.float32, path)
    raw = path.read_bytes()
    os.utime(path, ns=(1, 1))
    assert torch.equal(table.rows(torch.tensor([1])), matrix[[1]])
    path.unlink()  # as deleting or updating a model does
    path.write_bytes(b"new")
    assert torch.equal(table.rows(torch.tensor([2])), matrix[[2]])
    table, _ = table_of("q4_k", torch.float32, path)
    path.write_bytes(raw[:6] + bytes(len(raw) - 6))
    os.utime(path, ns=(2, 2))
    with pytest.raises(CheckpointError, match="overwritten"):
        table.find([3])


def test_windows_may_delete_a_file_that_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags: list[int] = []

    def create_file(path: str, _access: int, share_mode: int, *_: int) -> int:
        flags.append(share_mode)
        return os.open(path, os.O_RDONLY)

    winapi = SimpleNamespace(NULL=0, GENERIC_READ=1, OPEN_EXISTING=3, CreateFile=create_file)
    msvcrt = SimpleNamespace(open_osfhandle=lambda handle, _flags: handle)
    monkeypatch.setitem(sys.modules, "_winapi", winapi)
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    with monkeypatch.context() as patched:
        patched.setattr(token_table, "sys", SimpleNamespace(platform="win32"))
        table, matrix = table_of("q4_k", torch.float32, tmp_path / "file")
    assert torch.equal(table.rows(torch.tensor([2])), matrix[[2]])
    file_share_delete = 4
    assert flags[0] & file_share_delete


def test_tokens_beyond_the_table_are_refused(tmp_path: Path) -> None:
    table, _ = table_of("q8_0", torch.float32, tmp_path / "file")
    for token_id in (-1, NUM_ROWS):
        with pytest.raises(IndexError, match="no rows"):
            table.find([2, token_id])


def test_a_dense_table_is_read_where_it_is() -> None:
    matrix = torch.randn(5, 3)
    table = DenseTable(matrix)
    vectors, indices = table.find([4, 1])
    assert vectors.data_ptr() == table.matrix().data_ptr() == matrix.data_ptr()
    assert list(indices) == [4, 1]
    assert torch.equal(table.rows(torch.tensor([4, 1])), matrix[[4, 1]])
