"""Read a target's layers from the cache of quantized models, with checks before use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.blocks.sizes import EMBEDDING, lm_head_spec
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.checkpoints.header import unquantized_tensors
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter_shape import linear_parts
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.format import QuantSpec, TensorKind
from medusa_core.models.token_table import DenseTable, TokenTable
from medusa_core.models.weights import AfterPart, WeightReader, embedding_device
from medusa_core.system.files.safetensors_header import read_metadata


class QuantizedWeights(WeightReader):
    """Weights of a target read from the cache instead of its checkpoint; see `Weights`."""

    def __init__(
        self,
        path: Path,
        config: ModelConfig,
        precision: Precision,
        formats: PartFormats,
        after_part: AfterPart,
        original: Checkpoint,
    ) -> None:
        """Open a file of the cache.

        Args:
            config: As in `WeightReader`.
            precision: As in `WeightReader`.
            formats: As in `WeightReader`.
            after_part: As in `WeightReader`.
            original: The model's checkpoint, which has the tensors that aren't cached.

        Raises:
            CheckpointError: The file's tensors aren't those of the model in these formats.
        """
        super().__init__(original, config, precision, formats, after_part)
        self._cached = Checkpoint.open_file(path)
        self._checksums = read_metadata(path)
        _check(self._cached, config, formats)

    def vector(self, name: str, size: int) -> Tensor:
        """Read a norm's weight or a bias."""
        return self._tensor(name, self._precision.device)

    def named(self, name: str, *shape: int) -> Tensor:
        """Read an unquantized tensor by its name in the engine."""
        return self._tensor(name, self._precision.device)

    def token_table(self, name: str, rows: int, columns: int) -> TokenTable:
        """Open an embedding table; the cache has token embeddings that are kept in memory."""
        if name != EMBEDDING or self._formats.embedding_on_disk:
            return super().token_table(name, rows, columns)
        return DenseTable(self._tensor(name, embedding_device(self._formats, self._precision)))

    def _quantized(
        self, part: LinearSpec, wanted: QuantSpec
    ) -> tuple[QuantSpec, dict[str, Tensor], Tensor | None]:
        """Read a quantized linear layer: its format, its tensors and its bias."""
        spec = self._formats.fitting_linear(part, wanted)
        keys = spec.tensors(part.rows, part.columns, self._formats.compute)
        device, prefix = self._precision.device, f"{part.name}/{spec.name}"
        tensors = {key: self._read(f"{prefix}/{key}").to(device) for key in keys}
        bias = self._read(f"{prefix}/bias").to(device) if part.has_bias else None
        return spec, tensors, bias

    def _read(self, name: str) -> Tensor:
        """Read a tensor and compare its checksum."""
        tensor, found = self._cached.summed(name)
        if found != self._checksums.get(name):
            raise CheckpointError(
                tr("The kept model's {0} isn't what was kept.", name), "Check the disk."
            )
        return tensor

    def _tensor(self, name: str, device: torch.device) -> Tensor:
        """Read a tensor to a device and count its size."""
        tensor = self._read(name).to(device)
        self._count(tensor.nbytes, tensor.numel())
        return tensor


def _check(cached: Checkpoint, config: ModelConfig, formats: PartFormats) -> None:
    """Compare the header of a cached file with the model and its formats.

    Raises:
        CheckpointError: A tensor is missing, of another dtype or shape, or unexpected.
    """
    expected = dict(_tensor_kinds(config, formats))
    for name, (dtype, shape) in expected.items():
        found = cached.shape(name)
        fits = len(found) == len(shape) and all(
            wanted in (-1, size) for wanted, size in zip(shape, found, strict=True)
        )
        if not fits or cached.dtype(name) != dtype:
            raise CheckpointError(
                tr(
                    "The kept model's {0} is {1} of {2}, not {3} of {4}.",
                    name,
                    cached.dtype(name),
                    list(found),
                    dtype,
                    list(shape),
                )
            )
    # Earlier versions kept token embeddings that are read from the model's files now.
    if extra := cached.names - expected.keys() - {EMBEDDING}:
        raise CheckpointError(
            tr("The kept model holds {0}, which it has no place for.", min(extra))
        )


def _tensor_kinds(config: ModelConfig, formats: PartFormats) -> Iterator[tuple[str, TensorKind]]:
    """Yield name, dtype and shape of every tensor that the cached file must have."""
    for tensor in unquantized_tensors(config):
        is_embedding = tensor.name == EMBEDDING
        if is_embedding and formats.embedding_on_disk:
            continue
        dtype = formats.embedding.compute[0] if is_embedding else formats.compute
        yield tensor.name, (dtype, tensor.shape)
    wanted = [(part, formats.linears) for part in linear_parts(config)]
    if not formats.shares_embedding(config.tie_embeddings):
        wanted.append((lm_head_spec(config), formats.lm_head))
    for part, wanted_spec in wanted:
        spec = formats.fitting_linear(part, wanted_spec)
        kinds = spec.tensors(part.rows, part.columns, formats.compute)
        if part.has_bias:
            kinds["bias"] = (formats.compute, (part.rows,))
        yield from ((f"{part.name}/{spec.name}/{key}", kind) for key, kind in kinds.items())
