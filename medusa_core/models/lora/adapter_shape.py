"""Which layers of a model a LoRA changes, and how large it is. Nothing here needs torch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from medusa_core.errors import AdapterError, CheckpointError
from medusa_core.models.blocks.sizes import block_tensors
from medusa_core.models.blocks.tensors import LinearSpec
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
ADAPTER = "adapter"  # the folder of a LoRA beside heads that learned with it
LEAD = "base_model.model."  # in front of every layer's name
_PICKLE = "adapter_model.bin"
_TENSOR = re.compile(r"base_model\.model\.(?P<module>.+)\.lora_(?P<which>[AB])(\.\w+)?\.weight")
# How models that also see call their text part, and what it is called without it; Nemotron-H calls
# its whole model so.
_TEXT_PARTS = (
    ("model.language_model.", "model."),
    ("language_model.", ""),
    ("backbone.", "model."),
)
_AROUND = ("lm_head", "embed_tokens")
_FLOATS = ("F64", "F32", "F16", "BF16")


@dataclass(frozen=True, slots=True)
class AdapterPair:
    """What is added to one layer: scale · B A.

    Attributes:
        rows: Rows of the layer and of B.
        columns: Columns of the layer and of A.
        rank: Rows of A, columns of B.
        scale: What their product is multiplied with.
        names: The tensors of A and of B.
    """

    rows: int
    columns: int
    rank: int
    scale: float
    names: tuple[str, str]


@dataclass(frozen=True, slots=True)
class AdapterShape:
    """A LoRA's sizes.

    Attributes:
        pairs: By the name of the layer that each changes, such as `model.layers.0.mlp.up_proj`.
    """

    pairs: Mapping[str, AdapterPair] = field(default_factory=dict)

    def changes(self, part: LinearSpec) -> bool:
        """Whether it changes a part."""
        return any(piece.name in self.pairs for piece in part.pieces)

    def inner(self, part: LinearSpec) -> int:
        """Numbers behind the matrices A of a part: the sum of its layers' ranks."""
        names = {piece.name for piece in part.pieces}
        return sum(self.pairs[name].rank for name in names if name in self.pairs)


def read_adapter_shape(folder: Path, config: ModelConfig) -> AdapterShape:
    """The sizes of a LoRA, checked against the model that it is to change.

    Args:
        folder: In PEFT's layout: `adapter_config.json` and `adapter_model.safetensors`.
        config: The model's.

    Raises:
        AdapterError: It is none, is damaged, or doesn't fit the model.
    """
    lora, entries = _read(folder)
    return AdapterShape(dict(_pairs(entries, lora, _layers(config))))


def adapter_problems(folder: Path) -> tuple[str, ...]:
    """Why an adapter can't be loaded onto any model, for people."""
    try:
        _read(folder)
    except AdapterError as error:
        return (error.message,)
    return ()


def _read(folder: Path) -> tuple[LoraConfig, dict[str, TensorEntry]]:
    """The description, and the tensors that lie beside it."""
    lora = read_lora_config(folder)
    path = folder / WEIGHTS_NAME
    if not path.exists():
        raise AdapterError(
            f"No {WEIGHTS_NAME} in {folder}.",
            f"{_PICKLE} is a pickle, which can run code: save the adapter as safetensors."
            if (folder / _PICKLE).exists()
            else "Choose a folder with a LoRA of PEFT.",
        )
    try:
        return lora, read_header(path)
    except CheckpointError as error:
        raise AdapterError(error.message, "Download the adapter again.") from error


def is_adapter(folder: Path) -> bool:
    """Whether a folder looks like one with an adapter."""
    return (folder / CONFIG_NAME).is_file()


def lies_beside(config: ModelConfig, part: LinearSpec) -> bool:
    """Whether an adapter of a part stays beside its weights: those are quantized in its files.

    Else it is merged into them as they are read.
    """
    if not config.quantization:
        return False
    return any(config.stored_type(f"{piece.name}.weight") for piece in part.pieces)


def linear_parts(config: ModelConfig) -> Iterator[LinearSpec]:
    """All linear parts of a model's blocks."""
    for index in range(config.num_layers):
        yield from block_tensors(config, index).linears


def beside_parts(config: ModelConfig, shape: AdapterShape) -> Iterator[LinearSpec]:
    """The parts that a LoRA stays beside."""
    if shape.pairs and config.quantization:
        parts = linear_parts(config)
        yield from (part for part in parts if shape.changes(part) and lies_beside(config, part))


def _layers(config: ModelConfig) -> dict[str, tuple[int, int]]:
    """Rows and columns of every layer that a LoRA may change."""
    return {
        piece.name: (piece.tensor_rows, part.columns)
        for part in linear_parts(config)
        for piece in part.pieces
    }


def _pairs(
    entries: Mapping[str, TensorEntry], lora: LoraConfig, layers: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[str, AdapterPair]]:
    halves: dict[str, dict[str, str]] = {}
    modules: dict[str, str] = {}
    for name in sorted(entries):
        found = _TENSOR.fullmatch(name)
        if found is None:
            raise _unknown(name)
        layer = _layer_name(found["module"])
        modules[layer] = found["module"]
        if found["which"] in halves.setdefault(layer, {}):
            raise AdapterError(f"The adapter changes {layer} twice.", "Choose one with one LoRA.")
        halves[layer][found["which"]] = name
    if not halves:
        raise AdapterError("The adapter holds nothing.", "Download it again.")
    for layer, names in halves.items():
        if layer not in layers:
            raise _no_layer(layer)
        if len(names) < 2:
            raise AdapterError(
                f"The adapter has one half of what it adds to {layer}.", "Download it again."
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
    rank, (rows, columns) = lora.rank_of(module), size
    for name, wanted in zip(names, ((rank, columns), (rows, rank)), strict=True):
        entry = entries[name]
        if entry.shape != wanted:
            raise AdapterError(
                f"The adapter's {name} has shape {list(entry.shape)}, not {list(wanted)}.",
                "It was made for another model, or its two files don't belong together.",
            )
        if entry.dtype not in _FLOATS:
            raise AdapterError(
                f"The adapter's {name} holds {entry.dtype}.", "Choose one of plain numbers."
            )
    return AdapterPair(rows, columns, rank, lora.scale_of(module), names)


def _layer_name(module: str) -> str:
    for theirs, ours in _TEXT_PARTS:
        if module.startswith(theirs):
            return ours + module.removeprefix(theirs)
    return module


def _unknown(name: str) -> AdapterError:
    whole = "whole layers" if ".lora_" not in name else "something else than two matrices a layer"
    if "lora_magnitude_vector" in name:
        whole = "DoRA"
    elif "lora_embedding" in name:
        whole = "changed token vectors"
    elif "ia3" in name:
        whole = "IA3"
    elif name.endswith(".bias"):
        whole = "biases"
    return AdapterError(
        f"The adapter holds {whole}: {name}.",
        "Choose a plain LoRA, or a model into which the adapter was merged.",
    )


def _no_layer(layer: str) -> AdapterError:
    if layer.rpartition(".")[2] in _AROUND:
        return AdapterError(
            f"The adapter changes {layer}; only layers of the blocks are supported.",
            "Choose a LoRA of attention and MLPs, or a model into which it was merged.",
        )
    return AdapterError(
        f"The model has no layer {layer}, which the adapter changes.",
        "It was made for another model: choose that one.",
    )
