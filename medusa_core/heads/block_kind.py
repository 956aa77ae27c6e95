"""Registration of block drafters: recognition, memory sizes and loading."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import torch

from medusa_core.errors import HeadsError
from medusa_core.heads.block import BlockHead
from medusa_core.heads.block_parts import DrafterParts, drafter_parts, is_block, is_dspark
from medusa_core.heads.checks import check_sizes
from medusa_core.heads.head_files import HeadFiles
from medusa_core.heads.kind import HeadKind
from medusa_core.heads.medusa import HeadsTarget
from medusa_core.heads.tensor_reader import linears_of, tensor_reader, tokens_of_columns
from medusa_core.i18n import tr
from medusa_core.messages import HeadsShape
from medusa_core.models.config import ModelConfig
from medusa_core.models.weights import no_memory
from medusa_core.system.files.safetensors_header import TensorShapes

_MASK = "mask_embedding.pt"


def block_kind(name: str) -> HeadKind:
    """Return the kind of this name, dflash or dspark.

    JetSpec has DFlash's tensors; `config.json` makes it another kind.
    """

    def owns(names: frozenset[str]) -> bool:
        """Whether tensors of these names are a drafter of this kind."""
        return is_block(names) and is_dspark(names) == (name == "dspark")

    return HeadKind(name, owns, _sizes, _read, is_ranked=False)


def _sizes(shapes: TensorShapes, settings: Mapping[str, object]) -> HeadsShape:
    """Return the sizes of a drafter from tensor shapes and configuration."""
    parts = drafter_parts(settings, shapes)
    return _shape_of(parts, {part: shapes[name] for part, name in parts.names.items()})


def _shape_of(parts: DrafterParts, shapes: TensorShapes) -> HeadsShape:
    """Return the sizes of a drafter from the shapes of its parts."""
    layers, hidden = parts.layers, parts.layers.hidden_size
    queries, keys = layers.num_heads * layers.head_dim, layers.num_kv_heads * layers.head_dim
    inner, count = layers.intermediate_size, layers.num_layers
    of_layer = (
        (queries, hidden),
        ((2 if "0.v" in shapes else 1) * keys, hidden),
        (hidden, queries),
        (2 * inner, hidden),
        (hidden, inner),
    )
    matrices = [(hidden, len(parts.settings.taps) * hidden), *of_layer * count]
    if parts.num_columns:
        matrices.append((parts.num_columns, hidden))
    vectors = 0
    if "markov_w2" in shapes:
        matrices.append((shapes["markov_w2"][0], shapes["markov_w2"][1]))
        vectors += shapes["markov_w1"][0] * shapes["markov_w1"][1]
    for part in ("confidence", "confidence_bias"):
        vectors += shapes[part][-1] if part in shapes else 0
    if parts.has_selector:
        for name in ("attention_convolution", "mlp_convolution"):
            rows, columns = shapes[f"0.{name}_projection"]
            matrices += [(rows, columns)] * count
            vectors += count * math.prod(shapes[f"0.{name}_kernels"])
        rows, columns = shapes["selector_projection"]
        matrices.append((rows, columns))
        vectors += 2 * math.prod(shapes["selector_predecessors"])
    vectors += count if "0.scale" in shapes else 0
    norms = 2 + count * (4 if "0.scale" in shapes else 2)
    has_bias = "0.q_bias" in shapes
    return HeadsShape(
        num_heads=1,
        num_layers=count,
        columns=parts.num_columns,
        hidden_size=hidden,
        is_reduced=bool(parts.num_columns),
        matrices=tuple(matrices),
        num_norm_numbers=norms * (hidden + 1) + 2 * count * (layers.head_dim + 1),
        num_biases=count * (queries + 2 * keys + hidden) if has_bias else 0,
        cache_row=2 * keys * count,
        num_vector_numbers=vectors,
        kind=parts.kind,
        reads_width=hidden,
        made_for_vocab=layers.vocab_size,
        deepest_layer=parts.settings.taps[-1]
        + 1,  # taps are inputs, i.e. outputs of the layer before
    )


def _read(files: HeadFiles, target: HeadsTarget) -> BlockHead:
    """Load a drafter for a target.

    Raises:
        CheckpointError: A file is damaged, or holds no floating-point tensors.
        HeadsError: The drafter is incomplete, or made for another target.
        OutOfMemoryError: It doesn't fit into memory.
    """
    config, precision, shared_weights, formats = target
    checkpoint, parts = files.checkpoint, drafter_parts(files.settings, files.shapes)
    _check_fit(parts, config)
    if (files.path / _MASK).exists():
        raise HeadsError(
            tr(
                "This drafter brings the vector of its MASK as a pickle ({0}), which can run code "
                "when it is opened.",
                _MASK,
            ),
            "Choose a drafter that uses the model's own token vectors.",
        )

    integers = {"drafted_tokens": partial(tokens_of_columns, config=config)}
    read_part = tensor_reader(checkpoint, parts.names, precision, integers)
    build_linear = linears_of(formats, precision)
    try:
        return BlockHead(parts, read_part, shared_weights, build_linear, precision)
    except torch.OutOfMemoryError as error:
        raise no_memory(tr("the block drafter")) from error


def _check_fit(parts: DrafterParts, config: ModelConfig) -> None:
    """Check that a drafter was made for this target.

    Raises:
        HeadsError: It wasn't; the message names the difference.
    """
    layers = parts.layers
    by_pairs = {"markov_w1", "selector_predecessors"} & parts.names.keys()
    padding = {"padding": 0} if by_pairs else {}
    check_sizes(layers.hidden_size, layers.vocab_size, config, **padding)
    settings = parts.settings
    if settings.taps[-1] >= config.num_layers:
        raise HeadsError(
            tr(
                "The drafter reads what leaves layer {0}; a model of {1} layers has none behind "
                "it.",
                settings.taps[-1] - 1,
                config.num_layers,
            ),
            "Choose the drafter that was trained for this model.",
        )
    if settings.mask_id >= config.vocab_size:
        raise HeadsError(
            tr(
                "The drafter's MASK is token {0}; the model has {1}.",
                settings.mask_id,
                config.vocab_size,
            ),
            "Choose the drafter that was trained for this model.",
        )
