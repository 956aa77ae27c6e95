"""Speculative streams: a folder with `streams.safetensors` and `config.json`.

The tensors determine the number of streams, their first layer and the rank of the adapters;
`config.json` the target's layers and vocabulary. No such format has been published; this is the
program's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

import torch

from medusa_core.errors import HeadsError
from medusa_core.heads.checks import check_sizes, check_tensors
from medusa_core.heads.head_files import HeadFiles
from medusa_core.heads.kind import HeadKind
from medusa_core.heads.medusa import HeadsTarget, SharedWeights
from medusa_core.heads.streams import EMBEDDINGS, StreamHeads, StreamSizes
from medusa_core.heads.tensor_reader import linears_of, read_tensor
from medusa_core.i18n import tr
from medusa_core.messages import HeadsShape
from medusa_core.models.config import ModelConfig
from medusa_core.models.weights import no_memory
from medusa_core.runtime.backends.block import host_mlps
from medusa_core.system.files.json_file import is_whole
from medusa_core.system.files.safetensors_header import TensorShapes

_LAYER = re.compile(r"layers\.(0|[1-9]\d{0,3})\.(?:qkv|output|gate_up|down)\.lora_[AB]")
_MOST_STREAMS = 32  # a tree is no deeper
_MOST_LAYERS = 10_000
_MOST_TOKENS = 1 << 24
_AGAIN = tr("Train the streams again, or get them again from where they came.")
# The paper's early exit, which prunes trees: pruned trees were slower than whole ones.
_UNUSED = ("early_exit.lora_A", "early_exit.lora_B")


def _owns(names: frozenset[str]) -> bool:
    """Whether tensors of these names are speculative streams."""
    return EMBEDDINGS in names


def _shape_among(shapes: TensorShapes, settings: Mapping[str, object]) -> HeadsShape:
    """Return the sizes of streams from their tensors."""
    return _shape_of(_sizes_of(shapes, settings))


def _shape_of(sizes: StreamSizes) -> HeadsShape:
    """Return sizes for plans and lists of heads."""
    halves = (
        half
        for outputs, inputs in sizes.adapters.values()
        for half in ((sizes.rank, inputs), (outputs, sizes.rank))
    )
    num_layers = sizes.num_layers - sizes.first_layer
    return HeadsShape(
        num_heads=sizes.num_streams,
        hidden_size=sizes.hidden,
        kind="streams",
        matrices=tuple(halves),
        num_vector_numbers=sizes.num_streams * sizes.hidden,
        cache_row=num_layers * (sizes.qkv_rows - sizes.q_rows),
        made_for_vocab=sizes.vocab_size,
        deepest_layer=sizes.num_layers,
    )


def _read(files: HeadFiles, target: HeadsTarget) -> StreamHeads:
    """Load the streams for a target.

    Raises:
        CheckpointError: A file is damaged, or holds no floating-point tensors.
        HeadsError: They are incomplete, or made for another target.
        OutOfMemoryError: They don't fit into memory.
    """
    config, precision, shared_weights, formats = target
    checkpoint, sizes = files.checkpoint, _sizes_of(files.shapes, files.settings)
    _check_fit(sizes, config, shared_weights)

    read_part = partial(read_tensor, checkpoint, precision)
    try:
        return StreamHeads(
            sizes, config, read_part, shared_weights, linears_of(formats, precision), precision
        )
    except torch.OutOfMemoryError as error:
        raise no_memory(tr("the streams")) from error


def _check_fit(sizes: StreamSizes, config: ModelConfig, shared_weights: SharedWeights) -> None:
    """Check that streams were made for this target.

    Raises:
        HeadsError: They weren't; the message names the difference.
    """
    check_sizes(sizes.hidden, sizes.vocab_size, config)
    decoder = shared_weights.decoder
    if decoder is None or not decoder.blocks or not config.is_llama_like:  # none in a cluster
        raise HeadsError(
            tr("Streams beside {0} models aren't supported.", config.model_type),
            "Choose a model whose layers are Llama's, or other heads.",
        )
    if host_mlps(decoder.blocks[sizes.first_layer :]):
        raise HeadsError(
            "Streams run beside the last layers, of which the processor computes a part here.",
            "Load the model with --cpu-layers 0, or choose other heads.",
        )
    if sizes.num_layers != config.num_layers:
        raise HeadsError(
            tr(
                "The streams are for a model of {0} layers, this one has {1}.",
                sizes.num_layers,
                config.num_layers,
            ),
            "Choose the streams that were trained for this model.",
        )
    q_rows = config.num_heads * config.head_dim
    qkv_rows = q_rows + 2 * config.num_kv_heads * config.head_dim
    own = (q_rows, qkv_rows, config.intermediate_size)
    if (sizes.q_rows, sizes.qkv_rows, sizes.inner) != own:
        raise HeadsError(
            "The streams are for a model whose layers have other sizes.",
            "Choose the streams that were trained for this model.",
        )


def _sizes_of(shapes: TensorShapes, settings: Mapping[str, object]) -> StreamSizes:
    """Return the sizes of tensors of these names and shapes.

    Raises:
        HeadsError: They are no complete streams.
    """
    layers = sorted({int(match[1]) for name in shapes if (match := _LAYER.fullmatch(name))})
    if not layers:
        raise HeadsError("The streams have no layers.", _AGAIN)
    first = f"layers.{layers[0]}"
    named = (EMBEDDINGS, f"{first}.qkv.lora_A", f"{first}.qkv.lora_B", f"{first}.output.lora_A")
    for name in (*named, f"{first}.down.lora_A"):
        if len(shapes.get(name, ())) != 2 or not all(shapes[name]):
            raise HeadsError(tr("The streams have no matrix {0}.", name), _AGAIN)
    sizes = StreamSizes(
        num_streams=shapes[EMBEDDINGS][0],
        first_layer=layers[0],
        num_layers=_setting(settings, "num_hidden_layers", layers[-1] + 1, _MOST_LAYERS),
        rank=shapes[f"{first}.qkv.lora_A"][0],
        hidden=shapes[EMBEDDINGS][1],
        q_rows=shapes[f"{first}.output.lora_A"][1],
        qkv_rows=shapes[f"{first}.qkv.lora_B"][0],
        inner=shapes[f"{first}.down.lora_A"][1],
        vocab_size=_setting(settings, "vocab_size", 0, _MOST_TOKENS),
    )
    if sizes.num_streams > _MOST_STREAMS:
        raise HeadsError(
            tr(
                "There are {0} streams; no tree is deeper than {1}.",
                sizes.num_streams,
                _MOST_STREAMS,
            ),
            _AGAIN,
        )
    if layers != list(range(sizes.first_layer, sizes.num_layers)):
        raise HeadsError(
            tr(
                "The streams run through layers {0} to {1}, which aren't the last of {2}.",
                layers[0],
                layers[-1],
                sizes.num_layers,
            ),
            _AGAIN,
        )
    used = {name: shape for name, shape in shapes.items() if name not in _UNUSED}
    check_tensors(used, sizes.tensors, _AGAIN)
    return sizes


def _setting(settings: Mapping[str, object], name: str, otherwise: int, most: int) -> int:
    """Read a number of `config.json`, with a default for an empty one."""
    value = settings.get(name) if settings else otherwise
    if not is_whole(value, 0, most):
        raise HeadsError(tr("config.json gives {0:.40} as {1}.", repr(value), name), _AGAIN)
    return value


SPEC = HeadKind("streams", _owns, _shape_among, _read, is_ranked=False)
