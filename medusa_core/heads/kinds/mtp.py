"""A layer for multi-token prediction among the target's own tensors, as MiMo is published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from medusa_core.errors import MedusaError
from medusa_core.heads.kind import HeadKind, check_finite
from medusa_core.heads.medusa import SharedWeights
from medusa_core.heads.mtp import MtpHead
from medusa_core.heads.mtp_parts import PREFIX, MtpParts, has_mtp, mtp_names, mtp_parts
from medusa_core.heads.reader import check_sizes, linears_of
from medusa_core.messages import HeadsShape
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.checkpoints.folder_checkpoint import open_folder
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.weights import no_memory
from medusa_core.system.files.json_file import read_json
from medusa_core.system.files.safetensors_header import TensorShapes


def _claims(heads_dir: Path) -> bool:
    try:
        return has_mtp(open_folder(heads_dir).names)
    except MedusaError:
        return False


def _open(heads_dir: Path) -> tuple[Checkpoint, MtpParts]:
    checkpoint = open_folder(heads_dir)
    return checkpoint, mtp_parts(read_json(heads_dir / "config.json"), _shapes(checkpoint))


def _shapes(checkpoint: Checkpoint) -> TensorShapes:
    return {name: checkpoint.shape(name) for name in checkpoint.names if name.startswith(PREFIX)}


def _shape(heads_dir: Path) -> HeadsShape:
    checkpoint, parts = _open(heads_dir)
    shapes = {part: checkpoint.shape(name) for part, name in parts.names.items()}
    return _shape_of(shapes, parts.layer.vocab_size)


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
    heads_dir: Path,
    config: ModelConfig,
    precision: Precision,
    shared_weights: SharedWeights,
    formats: PartFormats,
) -> MtpHead:
    """The layer of a folder for a target: mostly the target's own folder.

    Raises:
        CheckpointError: A file is damaged, or holds no floating-point numbers.
        HeadsError: It isn't whole, or made for another target.
        OutOfMemoryError: There is no room for it.
    """
    checkpoint, parts = _open(heads_dir)
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


SPEC = HeadKind(
    "mtp", _claims, _shape, has_mtp, _sizes, _read, is_ranked=False, lies_within=has_mtp
)
