"""The layers that a LoRA changes, and their sizes, read without torch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from medusa_core.errors import AdapterError, CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.blocks.sizes import block_tensors
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.checkpoints.text_prefixes import TEXT_PREFIXES
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter_config import (
    CONFIG_NAME,
    LoraConfig,
    read_lora_config,
)
from medusa_core.system.files.safetensors_header import (
    TensorEntry,
    read_header,
)

WEIGHTS_NAME = "adapter_model.safetensors"
ADAPTER = "adapter"  # the folder of a LoRA that was trained together with heads
PREFIX = "base_model.model."  # of all names of layers
_PICKLE = "adapter_model.bin"
_TENSOR = re.compile(r"base_model\.model\.(?P<module>.+)\.lora_(?P<which>[AB])(\.\w+)?\.weight")
_OUTSIDE_BLOCKS = ("lm_head", "embed_tokens")
_FLOATS = ("F64", "F32", "F16", "BF16")
_OTHER_TENSORS = {
    "lora_magnitude_vector": "DoRA",
    "lora_embedding": tr("changed token vectors"),
    "ia3": "IA3",
    ".bias": "biases",
}


@dataclass(frozen=True, slots=True)
class AdapterPair:
    """The matrices of one layer: scale · B A is added to its weight.

    Attributes:
        rows: Rows of the layer and of B.
        columns: Columns of the layer and of A.
        rank: Rows of A, columns of B.
        scale: Factor of the product.
        names: Names of the tensors of A and B.
    """

    rows: int
    columns: int
    rank: int
    scale: float
    names: tuple[str, str]


@dataclass(frozen=True, slots=True)
class AdapterShape:
    """Sizes of a LoRA.

    Attributes:
        pairs: Matrices by the names of their layers, such as `model.layers.0.mlp.up_proj`.
    """

    pairs: Mapping[str, AdapterPair] = field(default_factory=dict)

    def changes(self, part: LinearSpec) -> bool:
        """Whether it changes a linear layer."""
        return any(piece.name in self.pairs for piece in part.pieces)

    def inner(self, part: LinearSpec) -> int:
        """Return the sum of the ranks of a fused layer's pieces."""
        names = {piece.name for piece in part.pieces}
        return sum(self.pairs[name].rank for name in names if name in self.pairs)


def read_adapter_shape(folder: Path, config: ModelConfig) -> AdapterShape:
    """Read the sizes of a LoRA and compare them with its base model.

    Args:
        folder: Folder with `adapter_config.json` and `adapter_model.safetensors`.
        config: Configuration of the base model.

    Raises:
        AdapterError: The folder has no LoRA, it is damaged, or it doesn't fit the model.
    """
    lora, entries = _read(folder)
    return AdapterShape(dict(_pairs(entries, lora, _layers(config))))


def adapter_problems(folder: Path) -> tuple[str, ...]:
    """Return why an adapter can't be applied to any model, as sentences; empty if it can."""
    try:
        _read(folder)
    except AdapterError as error:
        return (error.message,)
    return ()


def _read(folder: Path) -> tuple[LoraConfig, dict[str, TensorEntry]]:
    """Read the configuration and the header of the weights."""
    lora = read_lora_config(folder)
    path = folder / WEIGHTS_NAME
    if not path.exists():
        raise AdapterError(
            tr("No {0} in {1}.", WEIGHTS_NAME, folder),
            tr("{0} is a pickle, which can run code: save the adapter as safetensors.", _PICKLE)
            if (folder / _PICKLE).exists()
            else "Choose a folder with a LoRA of PEFT.",
        )
    try:
        return lora, read_header(path)
    except CheckpointError as error:
        raise AdapterError(error.message, "Download the adapter again.") from error


def is_adapter(folder: Path) -> bool:
    """Whether a folder contains an adapter's configuration."""
    return (folder / CONFIG_NAME).is_file()


def is_unmerged(config: ModelConfig, part: LinearSpec, keeps_blocks: bool) -> bool:
    """Whether a LoRA is added to a layer's outputs, because the layer keeps its files' blocks.

    Otherwise it is merged into the weights before they are quantized. Blocks aren't quantized
    again for it: in 4 bits that costs more than most adapters change (docs/performance.md).

    Args:
        config: The model's configuration.
        part: The layer.
        keeps_blocks: As in `PartFormats`.
    """
    return keeps_blocks and is_quantized(config, part)


def is_quantized(config: ModelConfig, part: LinearSpec) -> bool:
    """Whether the configuration says that a layer is quantized in the model's files."""
    if not config.quantization:
        return False
    return any(config.stored_type(f"{piece.name}.weight") for piece in part.pieces)


def linear_parts(config: ModelConfig) -> Iterator[LinearSpec]:
    """Yield all linear layers of a model's blocks."""
    for index in range(config.num_layers):
        yield from block_tensors(config, index).linears


def unmerged_parts(
    config: ModelConfig, shape: AdapterShape, keeps_blocks: bool
) -> Iterator[LinearSpec]:
    """Yield the linear layers to whose outputs a LoRA is added; see `is_unmerged`."""
    if shape.pairs and config.quantization and keeps_blocks:
        for part in linear_parts(config):
            if shape.changes(part) and is_unmerged(config, part, keeps_blocks):
                yield part


def _layers(config: ModelConfig) -> dict[str, tuple[int, int]]:
    """Return rows and columns of all layers that a LoRA may change."""
    return {
        piece.name: (piece.tensor_rows, part.columns)
        for part in linear_parts(config)
        for piece in part.pieces
    }


def _pairs(
    entries: Mapping[str, TensorEntry], lora: LoraConfig, layers: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[str, AdapterPair]]:
    """Pair the A and B matrices of each layer and compare their shapes with the base model's."""
    halves: dict[str, dict[str, str]] = {}
    modules: dict[str, str] = {}
    for name in sorted(entries):
        found = _TENSOR.fullmatch(name)
        if found is None:
            raise _unknown(name)
        layer = _layer_name(found["module"])
        modules[layer] = found["module"]
        if found["which"] in halves.setdefault(layer, {}):
            raise AdapterError(
                tr("The adapter changes {0} twice.", layer), "Choose one with one LoRA."
            )
        halves[layer][found["which"]] = name
    if not halves:
        raise AdapterError("The adapter holds nothing.", "Download it again.")
    for layer, names in halves.items():
        if layer not in layers:
            raise _no_layer(layer)
        if len(names) < 2:
            raise AdapterError(
                tr("The adapter has one half of what it adds to {0}.", layer), "Download it again."
            )
        pair = (names["A"], names["B"])
        yield layer, _pair(pair, entries, lora, modules[layer], layers[layer])


def _pair(
    names: tuple[str, str],
    entries: Mapping[str, TensorEntry],
    lora: LoraConfig,
    module: str,
    size: tuple[int, int],
) -> AdapterPair:
    """Check the shapes of one layer's A and B matrices."""
    rank, (rows, columns) = lora.rank_of(module), size
    for name, wanted in zip(names, ((rank, columns), (rows, rank)), strict=True):
        entry = entries[name]
        if entry.shape != wanted:
            raise AdapterError(
                tr(
                    "The adapter's {0} has shape {1}, not {2}.",
                    name,
                    list(entry.shape),
                    list(wanted),
                ),
                "It was made for another model, or its two files don't belong together.",
            )
        if entry.dtype not in _FLOATS:
            raise AdapterError(
                tr("The adapter's {0} holds {1}.", name, entry.dtype),
                "Choose one of plain numbers.",
            )
    return AdapterPair(rows, columns, rank, lora.scale_of(module), names)


def _layer_name(module: str) -> str:
    """Translate the prefix of a multimodal model's layer to that of the text model."""
    for prefix, text_prefix in TEXT_PREFIXES:
        if module.startswith(prefix):
            return text_prefix + module.removeprefix(prefix)
    return module


def _unknown(name: str) -> AdapterError:
    """Make the error for a tensor that isn't a LoRA matrix."""
    other = "something else than two matrices a layer" if ".lora_" in name else "whole layers"
    what = next((what for part, what in _OTHER_TENSORS.items() if part in name), other)
    return AdapterError(
        tr("The adapter holds {0}: {1}.", what, name),
        "Choose a plain LoRA, or a model into which the adapter was merged.",
    )


def _no_layer(layer: str) -> AdapterError:
    """Make the error for a layer that the model lacks, or that is outside of its blocks."""
    if layer.rpartition(".")[2] in _OUTSIDE_BLOCKS:
        return AdapterError(
            tr("The adapter changes {0}; only layers of the blocks are supported.", layer),
            "Choose a LoRA of attention and MLPs, or a model into which it was merged.",
        )
    return AdapterError(
        tr("The model has no layer {0}, which the adapter changes.", layer),
        "It was made for another model: choose that one.",
    )
