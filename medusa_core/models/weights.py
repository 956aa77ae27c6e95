"""Read a target's layers from a checkpoint, each quantized as it is read.

Only one layer at a time is unquantized, so that memory never holds more than the quantized model
and one layer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from medusa_core.errors import AdapterError, CheckpointError, OutOfMemoryError
from medusa_core.i18n import tr
from medusa_core.models.blocks.sizes import EMBEDDING
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter import Adapter
from medusa_core.models.lora.adapter_shape import is_quantized, is_unmerged
from medusa_core.models.precision import DTYPES, Precision
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.choice import PartFormats, dense_format_of
from medusa_core.models.quant.format import QuantSpec
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.row_order import gather_rows
from medusa_core.models.stored import StoredSpec, stored_as
from medusa_core.models.token_table import DenseTable, FileRows, StoredTable, TokenTable

Keep = Callable[[str, Tensor], None]
AfterPart = Callable[[int], None]


class Weights(Protocol):
    """Source of a target's layers, on their device."""

    @property
    def num_parameters(self) -> int:
        """Number of parameters read so far."""

    @property
    def nbytes(self) -> int:
        """Bytes of everything read so far."""

    def vector(self, name: str, size: int) -> Tensor:
        """Read the weight of a norm, in the compute dtype. [size]"""

    def named(self, name: str, *shape: int) -> Tensor:
        """Read a tensor by its full name, in the compute dtype."""

    def token_table(self, name: str, rows: int, columns: int) -> TokenTable:
        """Open an embedding table where the formats keep it."""

    def linear(self, part: LinearSpec) -> QuantLinear:
        """Read a linear layer of a block."""

    def lm_head(self, part: LinearSpec, embedding: TokenTable) -> QuantLinear:
        """Read the LM head, which may share the token embedding."""


class WeightReader(ABC):
    """Base class of readers: linear layers, LM head and totals.

    Attributes:
        num_parameters: Number of parameters read so far.
        nbytes: Bytes of everything read so far.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        config: ModelConfig,
        precision: Precision,
        formats: PartFormats,
        after_part: AfterPart | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            checkpoint: The model's checkpoint.
            config: Configuration of the target.
            precision: Compute dtype and device.
            formats: Weight formats of all parts.
            after_part: Called after each part with its bytes in memory.
        """
        self._checkpoint = checkpoint
        self._config = config
        self._precision = precision
        self._formats = formats
        self._after_part = after_part
        self.num_parameters = 0
        self.nbytes = 0

    def token_table(self, name: str, rows: int, columns: int) -> TokenTable:
        """Open an embedding table on disk, in main memory or on the device."""
        table = read_table(self._checkpoint, name, (rows, columns), self._formats, self._precision)
        self._count(table.nbytes, rows * columns)
        return table

    def linear(self, part: LinearSpec) -> QuantLinear:
        """Read a linear layer of a block in the chosen weight format."""
        # Files that keep their blocks keep their unquantized layers, too.
        formats = self._formats
        return self._layer(part, formats.dense if formats.keeps_blocks else formats.linears)

    def lm_head(self, part: LinearSpec, embedding: TokenTable) -> QuantLinear:
        """Read the LM head, or share the memory of a tied token embedding."""
        if self._formats.shares_embedding(self._config.tie_embeddings):
            return make_linear(embedding.matrix())
        num_parameters = self.num_parameters
        layer = self._layer(part, self._formats.lm_head)
        if self._config.tie_embeddings:
            self.num_parameters = num_parameters  # they were counted as the embedding's
        return layer

    def _layer(self, part: LinearSpec, wanted: QuantSpec) -> QuantLinear:
        """Read, build and count a linear layer."""
        try:
            spec, tensors, bias = self._quantized(part, wanted)
            tensors = {key: tensor.to(self._precision.device) for key, tensor in tensors.items()}
            layer = self._built(part, spec, tensors, bias)
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise no_memory(part.name) from error
        self._count(layer.nbytes, part.rows * part.columns + (0 if bias is None else part.rows))
        return layer

    @abstractmethod
    def _quantized(
        self, part: LinearSpec, wanted: QuantSpec
    ) -> tuple[QuantSpec, dict[str, Tensor], Tensor | None]:
        """Read a linear layer: its weight format, its tensors in that, and its bias."""

    def _built(
        self, part: LinearSpec, spec: QuantSpec, tensors: dict[str, Tensor], bias: Tensor | None
    ) -> QuantLinear:
        """Make the layer of quantized tensors."""
        return spec.build(tensors, part.rows, bias, self._precision.compute)

    def _count(self, nbytes: int, num_parameters: int) -> None:
        """Add a loaded part to the totals, and report progress."""
        self.nbytes += nbytes
        self.num_parameters += num_parameters
        if self._after_part is not None:
            self._after_part(nbytes)


class CheckpointWeights(WeightReader):
    """Reads a checkpoint and quantizes its layers."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        config: ModelConfig,
        precision: Precision,
        formats: PartFormats,
        keep: Keep | None = None,
        after_part: AfterPart | None = None,
        adapter: Adapter | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            checkpoint: As in `WeightReader`.
            config: As in `WeightReader`.
            precision: As in `WeightReader`.
            formats: As in `WeightReader`.
            keep: Called with name and value of every tensor that the cache of quantized models
                needs.
            after_part: As in `WeightReader`.
            adapter: A LoRA, or None.
        """
        super().__init__(checkpoint, config, precision, formats, after_part)
        self._adapter = adapter
        self._keep = keep or (lambda *_: None)

    def vector(self, name: str, size: int) -> Tensor:
        """Read a norm's weight."""
        return self._counted(self._tensor(f"{name}.weight", (size,)), name)

    def named(self, name: str, *shape: int) -> Tensor:
        """Read an unquantized tensor."""
        return self._counted(self._tensor(name, shape), name)

    def token_table(self, name: str, rows: int, columns: int) -> TokenTable:
        """Open an embedding table, and pass token embeddings in memory to the cache writer."""
        table = super().token_table(name, rows, columns)
        if name == EMBEDDING and not self._formats.embedding_on_disk:
            self._keep(name, table.matrix())
        return table

    def lm_head(self, part: LinearSpec, embedding: TokenTable) -> QuantLinear:
        """Read the LM head; a missing tensor raises before the others are read."""
        is_shared = self._formats.shares_embedding(self._config.tie_embeddings)
        if not is_shared and f"{part.pieces[0].name}.weight" not in self._checkpoint.names:
            raise CheckpointError(
                "The weights lack the tensor lm_head.weight.", "Download the model again."
            )
        return super().lm_head(part, embedding)

    def _built(
        self, part: LinearSpec, spec: QuantSpec, tensors: dict[str, Tensor], bias: Tensor | None
    ) -> QuantLinear:
        """Make the layer, with an unmerged LoRA if its weights are quantized in the files."""
        layer = super()._built(part, spec, tensors, bias)
        if self._adapter is None or not self._is_unmerged(part):
            return layer
        return self._adapter.add_to(part, layer, self._precision)

    def _quantized(
        self, part: LinearSpec, wanted: QuantSpec
    ) -> tuple[QuantSpec, dict[str, Tensor], Tensor | None]:
        """Read a linear layer as its stored format defines, or quantize it."""
        heads, stored = self._config.head_rows, stored_as(self._checkpoint, part)
        if stored is not None:
            self._check_mergeable(part)
            spec, tensors = self._stored(stored, part, wanted)
        else:
            spec = self._formats.fitting_linear(part, wanted)
            weight = gather_rows(part.pieces, heads, lambda one: self._matrix(one, part.columns))
            tensors = spec.quantize(weight.to(self._precision.device))
        for key, tensor in tensors.items():
            self._keep(f"{part.name}/{spec.name}/{key}", tensor)
        if not part.has_bias:
            return spec, tensors, None
        bias = gather_rows(
            part.pieces, heads, lambda one: self._tensor(f"{one.name}.bias", (one.tensor_rows,))
        )
        self._keep(f"{part.name}/{spec.name}/bias", bias)
        return spec, tensors, bias

    def _stored(
        self, stored: StoredSpec, part: LinearSpec, wanted: QuantSpec
    ) -> tuple[QuantSpec, dict[str, Tensor]]:
        """Read a layer that is quantized in its files.

        If it is quantized anew, a LoRA is merged into its numbers before.
        """
        formats, adapter = self._formats, self._adapter
        if adapter is None or not adapter.shape.changes(part) or self._is_unmerged(part):
            return stored.read(self._checkpoint, part, self._config, formats)
        wide = torch.promote_types(self._precision.compute, torch.float32)
        dense = dense_format_of(str(wide).removeprefix("torch."))
        as_numbers = replace(
            formats, linears=dense, lm_head=dense, compute=dense.compute[0], device="cpu"
        )
        _, tensors = stored.read(self._checkpoint, part, self._config, as_numbers)
        merged = adapter.merged_into(part, tensors["weight"], self._precision.compute)
        spec = formats.fitting_linear(part, wanted)
        return spec, spec.quantize(merged.to(self._precision.device))

    def _is_unmerged(self, part: LinearSpec) -> bool:
        """Whether the LoRA is added to a layer's outputs."""
        return is_unmerged(self._config, part, self._formats.keeps_blocks)

    def _matrix(self, piece: TensorRows, columns: int) -> Tensor:
        """Read the tensor of a piece, with the LoRA merged into it."""
        name, shape = f"{piece.name}.weight", (piece.tensor_rows, columns)
        compute, adapter = self._precision.compute, self._adapter
        unmerged = self._is_unmerged(LinearSpec("", (piece,), columns))
        if adapter is None or piece.name not in adapter.shape.pairs or unmerged:
            return self._checkpoint.tensor(name, shape, compute)
        wide = torch.promote_types(compute, torch.float32)
        return adapter.merged(piece.name, self._checkpoint.tensor(name, shape, wide), compute)

    def _check_mergeable(self, part: LinearSpec) -> None:
        """Refuse a LoRA that would have to be merged into quantized weights."""
        changes = self._adapter is not None and self._adapter.shape.changes(part)
        if changes and not is_quantized(self._config, part):
            raise AdapterError(
                tr(
                    "{0} is quantized, though config.json doesn't say so: no adapter can be added.",
                    part.name,
                ),
                "Download config.json again.",
            )

    def _tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Read a tensor in the compute dtype to the device."""
        tensor = self._checkpoint.tensor(name, shape, self._precision.compute)
        return tensor.to(self._precision.device)

    def _counted(self, tensor: Tensor, name: str) -> Tensor:
        """Pass a loaded tensor to the cache writer and count it."""
        self._keep(name, tensor)
        self._count(tensor.nbytes, tensor.numel())
        return tensor


def embedding_device(formats: PartFormats, precision: Precision) -> torch.device:
    """Return the device of the token embedding."""
    return torch.device("cpu") if formats.embedding_in_ram else precision.device


def read_table(
    checkpoint: Checkpoint,
    name: str,
    shape: tuple[int, int],
    formats: PartFormats,
    precision: Precision,
) -> TokenTable:
    """Open an embedding table: on disk, in main memory or on the device, as the formats say.

    Raises:
        CheckpointError: It is missing, of another shape, or can't be read.
        OutOfMemoryError: The device has too little memory.
    """
    tensor, dtype = f"{name}.weight", DTYPES[formats.embedding.compute[0]]
    if formats.embedding_on_disk if name == EMBEDDING else formats.per_layer == "disk":
        stored = checkpoint.stored_rows(tensor, shape)
        return StoredTable(FileRows(stored), stored.decode, shape, dtype)
    if name == EMBEDDING:
        device, part = embedding_device(formats, precision), tr("the token vectors")
    elif formats.per_layer == "ram" and checkpoint.dtype(tensor) in BLOCK_SIZES:
        blocks = checkpoint.raw(tensor).view(shape[0], -1)
        decode = checkpoint.stored_rows(tensor, shape).decode
        return StoredTable(
            lambda token_ids: blocks.index_select(0, torch.tensor(token_ids)),
            *(decode, shape, dtype, blocks.nbytes),
        )
    else:
        is_here = formats.per_layer == "device"
        device = precision.device if is_here else torch.device("cpu")
        part = tr("the per-layer embeddings")
    return DenseTable(_to_device(checkpoint.tensor(tensor, shape, dtype), device, part))


def no_memory(part: str) -> OutOfMemoryError:
    """Make the error for a part that doesn't fit in memory."""
    return OutOfMemoryError(
        tr("No memory for {0}.", part),
        "Choose a smaller weight format (q4 on a CPU, nf4-dq on a card), keep the token vectors in "
        "RAM, or close other programs.",
        part=part,
    )


def _to_device(tensor: Tensor, device: torch.device, part: str) -> Tensor:
    """Move a tensor to a device; `OutOfMemoryError` names the part if there is no room."""
    try:
        return tensor.to(device)
    except torch.OutOfMemoryError as error:
        raise no_memory(part) from error
