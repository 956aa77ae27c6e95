"""Read a GGUF file as a checkpoint with Hugging Face's names and row order."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.blocks.spec import EACH_EXPERT
from medusa_core.models.checkpoints.checkpoint import (
    BlockRows,
    Checkpoint,
    EachPiece,
    as_numbers,
    check_floating,
    missing_tensor,
    read_bytes,
)
from medusa_core.models.checkpoints.gguf_config import find_gguf_arch, halves_of_experts
from medusa_core.models.checkpoints.tiles import Tiles
from medusa_core.models.gguf_architecture import GgufArchitecture, num_layers
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.block_types import block_type
from medusa_core.models.token_table import Decode, StoredRows
from medusa_core.system.files.gguf import (
    Gguf,
    GgufTensor,
)
from medusa_core.system.files.safetensors_header import TensorEntry
from medusa_core.system.native.threads import for_ranges

_DTYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i32": torch.int32,
    "i64": torch.int64,
}
_ROTATED = {"q_proj": "attention.head_count", "k_proj": "attention.head_count_kv"}
_MULTIMODAL = ("v.", "a.", "mm.")  # prefixes of vision and audio tensors
_CONVOLUTIONS = (".conv.weight", ".conv1d.weight")  # matrices here, 3D tensors in safetensors
_LAYER = re.compile(r"model\.layers\.(\d{1,4})\.(.+)")
_MAX_EXPERTS = 1 << 10
_PAGE_BYTES = 4096
# Vectors of Mamba-2 layers that are stored as matrices.
_FLAT = (".A_log", ".D", ".dt_bias", ".mamba.norm.weight", ".mixer.norm.weight")
_NORMS = ("norm.weight", "norm_embedding.weight", "norm_hidden.weight")
_STATE_NORM = ".linear_attn.norm.weight"  # stored without the offset of the other norms
_READ_ELSEWHERE = frozenset(
    ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
)


class GgufCheckpoint(Checkpoint):
    """Reads the tensors of a GGUF file one at a time."""

    def __init__(
        self,
        gguf: Gguf,
        architecture: GgufArchitecture | None = None,
        tensors: Mapping[str, GgufTensor] | None = None,
    ) -> None:
        """Map names to the tensors of a file.

        Args:
            gguf: Parsed headers.
            architecture: Conventions of its architecture; None to look them up.
            tensors: Tensors by their names; None for Hugging Face's names.

        Raises:
            ModelError: The architecture isn't supported.
        """
        self._gguf = gguf
        self._architecture = architecture or find_gguf_arch(gguf).gguf
        self._tensors = dict(_named(gguf, self._architecture) if tensors is None else tensors)
        self._tiles = Tiles.of(gguf) if self._architecture.grouped_value_heads else None
        super().__init__({name: tensor.path for name, tensor in self._tensors.items()})

    @property
    def files(self) -> frozenset[Path]:
        """All shards of the GGUF file."""
        return frozenset(self._gguf.files)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape that the tensor has in Hugging Face's files."""
        return self._tensor(name).shape

    def dtype(self, name: str) -> str:
        """Return the name of a tensor's dtype or block type, in lower case."""
        kind = self._tensor(name).kind
        return kind if kind in BLOCK_SIZES else str(_DTYPES[kind]).removeprefix("torch.")

    def floats(self, name: str, dtype: torch.dtype | None) -> Tensor:
        """Dequantize a tensor, and undo llama.cpp's changes to norms and to `A_log`."""
        stored = self.raw(name)
        kind = self._tensor(name).kind
        is_norm = name.endswith((*_NORMS, ".A_log"))  # changed below, in float32
        wanted = torch.float32 if dtype is None or is_norm else dtype
        numbers = block_type(kind).dequantize(stored, wanted) if kind in BLOCK_SIZES else stored
        check_floating(name, numbers.dtype)
        if numbers.dim() == 1 and name.endswith(_NORMS) and not name.endswith(_STATE_NORM):
            numbers = numbers - self._architecture.norm_offset
        if name.endswith(".A_log"):  # stored as −exp(A_log)
            numbers = _logarithms(name, numbers)
        return numbers if dtype is None else numbers.to(dtype)

    def stored_rows(self, name: str, shape: tuple[int, int]) -> StoredRows:
        """Return the position of a matrix in its file, and how its rows are dequantized."""
        self._read.add(name)
        self.check_shape(name, shape)
        tensor = self._tensor(name)
        if tensor.kind in BLOCK_SIZES:
            decode: Decode = block_type(tensor.kind).dequantize
        else:
            dtype = _DTYPES[tensor.kind]
            check_floating(name, dtype)
            decode = partial(as_numbers, dtype)
        row_bytes = tensor.nbytes // shape[0]
        return StoredRows(tensor.path, tensor.start, shape[0], row_bytes, decode)

    def _raw(self, name: str, each_piece: EachPiece) -> Tensor:
        """Read a tensor in its own dtype; blocks as uint8 [rows, bytes of a row]."""
        self._read.add(name)
        tensor = self._tensor(name)
        entry = TensorEntry(tensor.kind, tensor.shape, tensor.start, tensor.nbytes)
        stored = read_bytes(tensor.path, entry, each_piece)
        if tensor.kind in BLOCK_SIZES:
            rows = stored.view(-1, BLOCK_SIZES[tensor.kind].row_bytes(tensor.shape[-1]))
        else:
            rows = stored.view(_DTYPES[tensor.kind]).view(tensor.shape)
        if self._tiles is not None:
            return self._tiles.reorder(name, rows, tensor.kind not in BLOCK_SIZES)
        return self._in_halves(name, rows)

    def block_rows(self, names: Sequence[str]) -> BlockRows | None:
        """Read block-quantized matrices of one type as they are stored; see `Checkpoint`."""
        tensors = [self._tensor(name) for name in names]
        if self._tiles is not None or any(tensor.kind not in BLOCK_SIZES for tensor in tensors):
            return None
        self._read.update(names)
        buffer = torch.empty(sum(tensor.nbytes for tensor in tensors), dtype=torch.uint8)
        order, end_byte, end_row = {}, 0, 0
        for name, tensor in zip(names, tensors, strict=True):
            _read_in_threads(tensor, buffer[end_byte : end_byte + tensor.nbytes])
            num_rows = math.prod(tensor.shape[:-1])
            order[name] = self._in_halves(name, torch.arange(end_row, end_row + num_rows))
            end_byte, end_row = end_byte + tensor.nbytes, end_row + num_rows
        return BlockRows(buffer.view(end_row, -1), order)

    def _in_halves(self, name: str, rows: Tensor) -> Tensor:
        """Return a tensor's rows, or their numbers, in Hugging Face's order.

        Raises:
            CheckpointError: They aren't those of whole heads.
        """
        heads_key = next((key for part, key in _ROTATED.items() if f".{part}." in name), "")
        if not heads_key or not self._architecture.interleaved_rope:
            return rows
        count = self._num_heads(heads_key)
        if count < 1 or len(rows) % (2 * count):
            raise CheckpointError(
                tr("{0} has {1} rows, which aren't those of {2} heads.", name, len(rows), count),
                "Download the file again.",
            )
        return _halves(rows, count)

    def _num_heads(self, key: str) -> int:
        """Return the number of heads of a layer with attention."""
        listed = self._gguf.numbers(f"{self._gguf.architecture}.{key}")
        found = self._gguf.of_model(key) or self._gguf.of_model("attention.head_count")
        count = max(listed, default=found)
        return count if isinstance(count, int) else 0

    def _tensor(self, name: str) -> GgufTensor:
        """Return the stored tensor with this Hugging Face name."""
        if name not in self._tensors:
            raise missing_tensor(name)
        return self._tensors[name]


def _named(gguf: Gguf, architecture: GgufArchitecture) -> Iterator[tuple[str, GgufTensor]]:
    """Yield the text model's tensors by Hugging Face's names, with one entry per expert."""
    has_mtp_prefix = architecture.mtp_prefix and gguf.of_model("nextn_predict_layers")
    own_layers = num_layers(gguf) if has_mtp_prefix else 0
    for theirs, tensor in gguf.tensors.items():
        if theirs in _READ_ELSEWHERE or theirs.startswith(_MULTIMODAL):
            continue
        name = _mtp_name(architecture.hugging_face_name(theirs), own_layers)
        if EACH_EXPERT in name:
            yield from _of_experts(name, tensor)
        else:
            yield name, replace(tensor, shape=_shape(name, tensor.shape))


def _mtp_name(name: str, num_layers: int) -> str:
    """Return the name that an MTP layer's tensor has in Hugging Face's files: `mtp.…`.

    Args:
        name: Hugging Face's name.
        num_layers: Layers of the model itself, after which MTP layers follow; 0 without such.
    """
    found = _LAYER.fullmatch(name)
    if found is None or not num_layers or int(found[1]) < num_layers:
        return name
    rest = found[2]
    return rest if rest.startswith("mtp.") else f"mtp.layers.{int(found[1]) - num_layers}.{rest}"


def _of_experts(name: str, tensor: GgufTensor) -> Iterator[tuple[str, GgufTensor]]:
    """Split a tensor with all experts of a layer into one per expert; gate rows precede up rows."""
    count, *shape = tensor.shape
    halves = halves_of_experts(name)
    if not shape or count > _MAX_EXPERTS or shape[0] % len(halves):
        raise CheckpointError(
            tr("{0} has shape {1}, which isn't one for each expert.", name, list(tensor.shape)),
            "Download the file again.",
        )
    rows, nbytes = shape[0] // len(halves), tensor.nbytes // (count * len(halves))
    places = product(range(count), halves)
    for number, (expert, half) in enumerate(places):
        start = tensor.start + number * nbytes
        one = GgufTensor(tensor.path, tensor.kind, (rows, *shape[1:]), start, nbytes)
        yield half.replace(EACH_EXPERT, str(expert)), one


def _shape(name: str, stored: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that a stored tensor has in Hugging Face's files."""
    if name.endswith(_FLAT):
        return (math.prod(stored),)
    if name.endswith(_CONVOLUTIONS) and len(stored) == 2:
        return (stored[0], 1, stored[1])
    if name.endswith(".shared_expert_gate.weight"):
        return (1, math.prod(stored))
    return stored


def _read_in_threads(tensor: GgufTensor, to: Tensor) -> None:
    """Read the bytes of a tensor into memory of its size, on several threads if it is large.

    Raises:
        CheckpointError: The file has become shorter, or can't be read.
    """

    def read(first: int, count: int) -> None:
        """Read a range of bytes."""
        entry = TensorEntry(tensor.kind, (count,), tensor.start + first, count)
        read_bytes(tensor.path, entry, lambda _: None, to[first : first + count])

    for_ranges(read, tensor.nbytes, tensor.nbytes, _PAGE_BYTES)


def _logarithms(name: str, rates: Tensor) -> Tensor:
    """Recover `A_log` from the stored −exp(A_log).

    Raises:
        CheckpointError: A rate isn't negative.
    """
    if not bool((rates < 0).all()):
        raise CheckpointError(
            tr("{0} is damaged: a state that grows without end.", name), "Download the file again."
        )
    return rates.neg().log()


def _halves(rows: Tensor, num_heads: int) -> Tensor:
    """Convert rows from interleaved RoPE to Hugging Face's order. [heads · head_dim, …]"""
    pairs = rows.view(num_heads, -1, 2, *rows.shape[1:])
    return pairs.transpose(1, 2).reshape(rows.shape)
