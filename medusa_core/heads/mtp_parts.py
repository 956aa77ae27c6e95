"""Tensor names and sizes of multi-token-prediction layers.

Only the first of several layers is used, and reused for each further token, as vLLM and SGLang do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from medusa_core.errors import HeadsError
from medusa_core.heads.checks import check_shapes, listed, names_by_part
from medusa_core.heads.mtp_layouts import (
    FC,
    LAYOUTS,
    STATE_NORM,
    TOKEN_NORM,
    MtpLayout,
    layout_of,
)
from medusa_core.i18n import tr
from medusa_core.messages import HeadsShape
from medusa_core.models.blocks.sizes import FINAL_NORM, block_tensors
from medusa_core.models.blocks.spec import BlockTensors
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.config import ModelConfig
from medusa_core.system.files.safetensors_header import TensorShapes

# Keys of config.json for the number of such layers.
_COUNTS = ("mtp_num_hidden_layers", "num_nextn_predict_layers")
WITHOUT = tr("Load the model without heads, or download it again.")


@dataclass(frozen=True, slots=True)
class MtpParts:
    """Tensor names and sizes of a layer.

    Attributes:
        layout: Published layout.
        stored: Stored name of each tensor, by its name in a model of one layer.
        layer: Sizes of that model.
    """

    layout: MtpLayout
    stored: Mapping[str, str]
    layer: ModelConfig


def mtp_parts(config: ModelConfig, shapes: TensorShapes) -> MtpParts:
    """Read tensor names and shapes.

    Args:
        config: Sizes of the model that the layer belongs to.
        shapes: Shapes of all tensors, including the model's.

    Raises:
        HeadsError: Something is missing, unknown or of the wrong shape.
    """
    layout = layout_of(shapes, config.model_type)
    if layout is None:
        raise HeadsError(
            tr(
                "No layer for multi-token prediction that is known of {0} models.",
                config.model_type,
            ),
            "Choose a Qwen3.5, GLM or MiMo model that has one, or go without heads.",
        )
    layer = _layer_config(config)
    wanted, first_layer = _shapes(layer), layout.first_layer(sorted(shapes))
    stored = names_by_part(
        first_layer,
        lambda name: own if (own := first_layer[name]) in wanted else None,
        lambda unknown: HeadsError(
            tr("Tensors that belong to no layer for multi-token prediction: {0}.", unknown), WITHOUT
        ),
    )
    if missing := [name for name in wanted if name not in stored]:
        raise HeadsError(
            tr("The layer for multi-token prediction lacks {0}.", listed(missing)), WITHOUT
        )
    check_shapes(
        shapes,
        ((name, wanted[own]) for own, name in stored.items()),
        tr("The weights and config.json belong to different models: download both again."),
    )
    return MtpParts(layout, stored, layer)


def joining_part(layer: ModelConfig) -> LinearSpec:
    """Return the linear layer that joins a state and a token embedding."""
    return LinearSpec(FC, (TensorRows(FC, layer.hidden_size),), 2 * layer.hidden_size)


def mtp_shape(layer: ModelConfig) -> HeadsShape:
    """Return the sizes of a layer."""
    hidden, block = layer.hidden_size, block_tensors(layer, 0)
    linears = (joining_part(layer), *block.linears)
    matrices, dense = (
        tuple((part.rows, part.columns) for part in linears if part.stays_dense is is_dense)
        for is_dense in (False, True)
    )
    return HeadsShape(
        num_heads=1,
        hidden_size=hidden,
        kind="mtp",
        made_for_vocab=layer.vocab_size,
        matrices=matrices,
        dense_matrices=dense,
        num_norm_numbers=3 * (hidden + 1) + sum(size + 1 for size in block.norms.values()),
        num_biases=sum(part.rows for part in linears if part.has_bias),
        num_vector_numbers=sum(math.prod(shape) for shape in block.others.values()),
        cache_row=2 * layer.num_kv_heads * layer.head_dim,
    )


def declared_shape(raw: Mapping[str, object], config: ModelConfig) -> HeadsShape:
    """Return the sizes of the layer that a model's `config.json` declares; no heads without one.

    Args:
        raw: `config.json`.
        config: Sizes of the model.
    """
    text = raw.get("text_config")
    settings = {**raw, **text} if isinstance(text, Mapping) else raw
    counts = [settings.get(key) for key in _COUNTS]
    has_one = any(isinstance(count, int) and count > 0 for count in counts)
    is_known = any(config.model_type in layout.families for layout in LAYOUTS)
    return mtp_shape(_layer_config(config)) if has_one and is_known else HeadsShape()


def _layer_config(config: ModelConfig) -> ModelConfig:
    """Return the sizes of a model of one such layer: attention, and an MLP or experts.

    Raises:
        HeadsError: No layer of the model has attention, after which such layers are made.
    """
    attending = [block for block in config.blocks if block.attention is not None]
    if not attending:
        raise HeadsError(
            "A model without attention has no layer for multi-token prediction.", WITHOUT
        )
    with_experts = [block for block in attending if block.moe is not None]
    one = config.with_blocks((with_experts or attending)[:1])
    return replace(one, quantization="", packing=None, stored_types=())


def _shapes(layer: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all tensors, by their names in a model of one layer."""
    hidden, block = layer.hidden_size, block_tensors(layer, 0)
    norms = dict.fromkeys((TOKEN_NORM, STATE_NORM, FINAL_NORM), hidden) | block.norms
    shapes: dict[str, tuple[int, ...]] = {f"{name}.weight": (size,) for name, size in norms.items()}
    return shapes | dict(block.others) | _matrices(layer, block)


def _matrices(layer: ModelConfig, block: BlockTensors) -> dict[str, tuple[int, ...]]:
    """Return the shapes of weights and biases of all linear layers."""
    shapes: dict[str, tuple[int, ...]] = {}
    for part in (joining_part(layer), *block.linears):
        for piece in part.pieces:
            shapes[f"{piece.name}.weight"] = (piece.tensor_rows, part.columns)
            if part.has_bias:
                shapes[f"{piece.name}.bias"] = (piece.tensor_rows,)
    return shapes
