"""A layer for multi-token prediction among the target's own tensors, as MiMo is published."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from medusa_core.heads.head_files import HeadFiles
from medusa_core.heads.kind import HeadKind, check_finite
from medusa_core.heads.medusa import SharedWeights
from medusa_core.heads.mtp import MtpHead
from medusa_core.heads.mtp_parts import has_mtp, mtp_names, mtp_parts
from medusa_core.heads.reader import check_sizes, linears_of
from medusa_core.messages import HeadsShape
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.weights import no_memory
from medusa_core.system.files.safetensors_header import TensorShapes


def _sizes(shapes: TensorShapes, settings: Mapping[str, object]) -> HeadsShape:
    """Sizes of the layer; where `config.json` is unknown, by its tensors alone."""
    if settings:
        parts = mtp_parts(settings, shapes)
        names, vocab_size = parts.names, parts.layer.vocab_size
    else:
        names, vocab_size = mtp_names(shapes), 0
    return _shape_of({part: shapes[name] for part, name in names.items()}, vocab_size)


def _shape_of(shapes: TensorShapes, vocab_size: int) -> HeadsShape:
    """Sizes of the layer, by the shapes of its parts."""
    (queries, hidden), (keys, _) = shapes["q"], shapes["k"]
    inner = shapes["gate"][0]
    matrices = (
        (hidden, 2 * hidden),
        (queries + 2 * keys, hidden),
        (hidden, queries),
        (2 * inner, hidden),
        (hidden, inner),
    )
    return HeadsShape(
        num_heads=1,
        hidden_size=hidden,
        kind="mtp",
        made_for_vocab=vocab_size,
        matrices=matrices,
        num_norm_numbers=5 * (hidden + 1),
        num_biases=queries + 2 * keys if "q_bias" in shapes else 0,
        cache_row=2 * keys,
    )


def _read(
    files: HeadFiles,
    config: ModelConfig,
    precision: Precision,
    shared_weights: SharedWeights,
    formats: PartFormats,
) -> MtpHead:
    """The layer of a file for a target: mostly the target's own folder.

    Raises:
        CheckpointError: A file is damaged, or holds no floating-point numbers.
        HeadsError: It isn't whole, or made for another target.
        OutOfMemoryError: There is no room for it.
    """
    checkpoint, parts = files.checkpoint, mtp_parts(files.settings, files.shapes)
    check_sizes(parts.layer.hidden_size, parts.layer.vocab_size, config)

    def take(part: str) -> Tensor | None:
        name = parts.names.get(part)
        if name is None:
            return None
        tensor = check_finite(name, checkpoint.floats(name, precision.compute))
        return tensor.to(precision.device)

    make = linears_of(formats, precision)
    try:
        return MtpHead(parts, config.num_layers, take, shared_weights, make, precision)
    except torch.OutOfMemoryError as error:
        raise no_memory("the layer for multi-token prediction") from error


SPEC = HeadKind("mtp", has_mtp, _sizes, _read, is_ranked=False, lies_within=has_mtp)
