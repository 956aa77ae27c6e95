"""Where a decoder's parts come from: a checkpoint, each part quantized as it is read.

One part at a time is dense, so that the computer's memory never holds more than the quantized model
and one part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from medusa_core.errors import AdapterError, CheckpointError, OutOfMemoryError
from medusa_core.models.blocks.sizes import EMBEDDING
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter import Adapter
from medusa_core.models.lora.adapter_shape import lies_beside
from medusa_core.models.precision import DTYPES, Precision
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.format import QuantSpec
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.stored import stored_as
from medusa_core.models.token_table import FileTable, HeldTable, TokenTable

Keep = Callable[[str, Tensor], None]
AfterPart = Callable[[int], None]


class Weights(Protocol):
    """Gives the parts of a target, where they are to run."""

    @property
    def num_parameters(self) -> int:
        """Parameters given so far."""

    @property
    def nbytes(self) -> int:
        """Bytes of the parts given so far."""

    def vector(self, name: str, size: int) -> Tensor:
        """A norm's weight, in the compute dtype. [size]"""

    def named(self, name: str, *shape: int) -> Tensor:
        """A tensor by its whole name, in the compute dtype."""

    def embedding(self) -> Tensor:
        """The token vectors. [vocabulary, hidden]

        Where they stay in their file, what says their shape and dtype alone: a tensor on torch's
        device `meta`. They are then given as a `token_table`.
        """

    def token_table(self, name: str, rows: int, columns: int) -> Tensor | TokenTable:
        """A table of token vectors, where the formats say that it lies."""

    def linear(self, part: LinearSpec) -> QuantLinear:
        """A linear layer of a block."""

    def lm_head(self, part: LinearSpec, embedding: Tensor) -> QuantLinear:
        """The projection to the vocabulary, which may share the token vectors."""


class CheckpointWeights:
    """Reads a checkpoint and quantizes its parts."""

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
        """Read from a checkpoint.

        Args:
            checkpoint: The tensors.
            config: Sizes of the target.
            precision: What it computes in, and where.
            formats: Format of every part.
            keep: Takes every tensor that a later load needs, by name.
            after_part: Called with the parameters that each part had.
            adapter: What changes the weights, or None.
        """
        self._adapter = adapter
        self._checkpoint = checkpoint
        self._config = config
        self._precision = precision
        self._formats = formats
        self._keep = keep or _forget
        self._after_part = after_part or _ignore
        self.num_parameters = 0
        self.nbytes = 0

    def vector(self, name: str, size: int) -> Tensor:
        return self._counted(self._vector(f"{name}.weight", size), name)

    def named(self, name: str, *shape: int) -> Tensor:
        return self._counted(self._tensor(name, shape), name)

    def embedding(self) -> Tensor:
        config, formats = self._config, self._formats
        shape = (config.vocab_size, config.hidden_size)
        dtype = DTYPES[formats.embedding.compute[0]]
        if formats.embedding_on_disk:
            return torch.empty(shape, dtype=dtype, device="meta")
        table = self._checkpoint.tensor(f"{EMBEDDING}.weight", shape, dtype)
        table = _placed(table, embedding_device(formats, self._precision), "the token vectors")
        return self._counted(table, EMBEDDING)

    def token_table(self, name: str, rows: int, columns: int) -> Tensor | TokenTable:
        shape = (rows, columns)
        table = read_table(self._checkpoint, name, shape, self._formats, self._precision)
        self.nbytes += table.nbytes
        self._after(rows * columns)
        return table

    def linear(self, part: LinearSpec) -> QuantLinear:
        formats = self._formats  # where blocks are kept, so are plain numbers
        layer = self._layer(part, formats.dense if formats.keeps_blocks else formats.linears)
        self.nbytes += layer.nbytes
        return layer

    def lm_head(self, part: LinearSpec, embedding: Tensor) -> QuantLinear:
        names = self._checkpoint.names
        if self._formats.shares_embedding(self._config.tie_embeddings):
            return make_linear(embedding)
        if f"{part.pieces[0].name}.weight" not in names:
            raise CheckpointError(
                "The weights lack the tensor lm_head.weight.", "Download the model again."
            )
        parameters = self.num_parameters
        layer = self._layer(part, self._formats.lm_head)
        if self._config.tie_embeddings:
            self.num_parameters = parameters  # they are the embedding's
        self.nbytes += layer.nbytes
        return layer

    def _layer(self, part: LinearSpec, wanted: QuantSpec) -> QuantLinear:
        device = self._precision.device
        try:
            spec, tensors = self._quantized(part, wanted)
            bias = self._bias(part)
            for key, tensor in tensors.items():
                self._keep(f"{part.name}/{spec.name}/{key}", tensor)
            if bias is not None:
                self._keep(f"{part.name}/{spec.name}/bias", bias)
            here = {key: tensor.to(device) for key, tensor in tensors.items()}
            layer = self._built(part, spec, here, bias)
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise no_memory(part.name) from error
        self._after(part.rows * part.columns + (0 if bias is None else part.rows))
        return layer

    def _built(
        self, part: LinearSpec, spec: QuantSpec, tensors: dict[str, Tensor], bias: Tensor | None
    ) -> QuantLinear:
        """A layer of a part's tensors, with the adapter where that isn't merged."""
        layer = spec.build(tensors, part.rows, bias, self._precision.compute)
        if self._adapter is None or not lies_beside(self._config, part):
            return layer
        return self._adapter.beside(part, layer, self._precision)

    def _quantized(
        self, part: LinearSpec, wanted: QuantSpec
    ) -> tuple[QuantSpec, dict[str, Tensor]]:
        """The format of a part, and its tensors in it."""
        stored = stored_as(self._checkpoint, part)
        if stored is not None:
            self._check_beside(part)
            return stored.read(self._checkpoint, part, self._config, self._formats)
        spec = part.fitting(wanted, self._formats)
        weights = [self._piece(piece, part.columns) for piece in part.pieces]
        weight = weights[0] if len(weights) == 1 else torch.cat(weights)
        del weights
        return spec, spec.quantize(weight.to(self._precision.device))

    def _piece(self, piece: TensorRows, columns: int) -> Tensor:
        weight = piece.take(self._matrix(piece, columns))
        return piece.interleaved(weight, self._config.head_rows)

    def _matrix(self, piece: TensorRows, columns: int) -> Tensor:
        """The tensor that a piece is of, with what an adapter adds to it."""
        name, shape = f"{piece.name}.weight", (piece.tensor_rows, columns)
        compute, adapter = self._precision.compute, self._adapter
        is_beside = lies_beside(self._config, LinearSpec("", (piece,), columns))
        if adapter is None or piece.name not in adapter.shape.pairs or is_beside:
            return self._checkpoint.tensor(name, shape, compute)
        wide = torch.promote_types(compute, torch.float32)
        return adapter.merged(piece.name, self._checkpoint.tensor(name, shape, wide), compute)

    def _check_beside(self, part: LinearSpec) -> None:
        """Weights that are packed take no adapter into them."""
        changes = self._adapter is not None and self._adapter.shape.changes(part)
        if changes and not lies_beside(self._config, part):
            raise AdapterError(
                f"{part.name} is quantized, though config.json doesn't say so: no adapter can be "
                "added.",
                "Download config.json again.",
            )

    def _bias(self, part: LinearSpec) -> Tensor | None:
        if not part.has_bias:
            return None
        biases = []
        for piece in part.pieces:
            bias = piece.take(self._vector(f"{piece.name}.bias", piece.tensor_rows))
            biases.append(piece.interleaved(bias, self._config.head_rows))
        return torch.cat(biases)

    def _vector(self, name: str, size: int) -> Tensor:
        return self._tensor(name, (size,))

    def _tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        tensor = self._checkpoint.tensor(name, shape, self._precision.compute)
        return tensor.to(self._precision.device)

    def _counted(self, tensor: Tensor, name: str) -> Tensor:
        self._keep(name, tensor)
        self.nbytes += tensor.nbytes
        self._after(tensor.numel())
        return tensor

    def _after(self, num_parameters: int) -> None:
        self.num_parameters += num_parameters
        self._after_part(num_parameters)


def embedding_device(formats: PartFormats, precision: Precision) -> torch.device:
    """Where the token vectors lie."""
    return torch.device("cpu") if formats.embedding_in_ram else precision.device


def read_table(
    checkpoint: Checkpoint,
    name: str,
    shape: tuple[int, int],
    formats: PartFormats,
    precision: Precision,
) -> Tensor | TokenTable:
    """A table of token vectors, where the formats say that it lies.

    Raises:
        CheckpointError: It is missing, of another shape, or can't be read.
        OutOfMemoryError: The device has no room.
    """
    tensor = f"{name}.weight"
    if name == EMBEDDING or formats.per_layer == "disk":
        return FileTable(checkpoint.stored_rows(tensor, shape))
    dtype = DTYPES[formats.embedding.compute[0]]
    if formats.per_layer == "device":
        table = checkpoint.tensor(tensor, shape, dtype)
        return _placed(table, precision.device, "the per-layer embeddings")
    stored = checkpoint.stored_rows(tensor, shape)
    if checkpoint.dtype(tensor) not in BLOCK_SIZES:
        return HeldTable(checkpoint.tensor(tensor, shape, dtype))
    return HeldTable(checkpoint.raw(tensor).view(shape[0], -1), stored.decode)


def no_memory(part: str) -> OutOfMemoryError:
    """What to say when a part finds no room."""
    return OutOfMemoryError(
        f"No memory for {part}.",
        "Choose a smaller weight format (q4 on a CPU, nf4-dq on a card), keep the token vectors in "
        "RAM, or close other programs.",
        part=part,
    )


def _placed(tensor: Tensor, device: torch.device, what: str) -> Tensor:
    try:
        return tensor.to(device)
    except torch.OutOfMemoryError as error:
        raise no_memory(what) from error


def _forget(name: str, tensor: Tensor) -> None:
    """For loads of which nothing is kept."""


def _ignore(num_parameters: int) -> None:
    """Progress that nobody watches."""
