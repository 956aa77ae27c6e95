"""A multi-token-prediction layer among the target's own tensors, in a folder or a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from medusa_core.errors import HeadsError, ModelError
from medusa_core.heads.checks import check_sizes
from medusa_core.heads.head_files import HeadFiles
from medusa_core.heads.kind import HeadKind
from medusa_core.heads.medusa import HeadsTarget
from medusa_core.heads.mtp import MtpHead
from medusa_core.heads.mtp_layouts import layout_of
from medusa_core.heads.mtp_parts import WITHOUT, MtpParts, mtp_parts, mtp_shape
from medusa_core.i18n import tr
from medusa_core.messages import HeadsShape
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.models.weights import no_memory
from medusa_core.system.files.safetensors_header import TensorShapes


def _owns(names: frozenset[str]) -> bool:
    """Whether tensors of these names include an MTP layer."""
    return layout_of(names) is not None


def _lies_within(names: frozenset[str], config: ModelConfig) -> bool:
    """Whether a target's own tensors include an MTP layer."""
    return config.has_native_family and layout_of(names, config.model_type) is not None


def _parts(shapes: TensorShapes, settings: Mapping[str, object]) -> MtpParts:
    """Return names and sizes, given the model's `config.json`."""
    try:
        config = parse_config(settings, {})
    except ModelError as error:
        raise HeadsError(error.message, WITHOUT) from error
    return mtp_parts(config, shapes)


def _sizes(shapes: TensorShapes, settings: Mapping[str, object]) -> HeadsShape:
    """Return the sizes of the layer."""
    return mtp_shape(_parts(shapes, settings).layer)


def _read(files: HeadFiles, target: HeadsTarget) -> MtpHead:
    """Load an MTP layer for a target; usually both come from the same checkpoint.

    Raises:
        CheckpointError: A file is damaged, or holds no floating-point tensors.
        HeadsError: The layer is incomplete, or belongs to another target.
        OutOfMemoryError: The layer doesn't fit into memory.
    """
    config, precision, shared_weights, formats = target
    parts = _parts(files.shapes, files.settings)
    check_sizes(parts.layer.hidden_size, parts.layer.vocab_size, config)
    try:
        return MtpHead(
            parts, config.num_layers, files.checkpoint, shared_weights, formats, precision
        )
    except torch.OutOfMemoryError as error:
        raise no_memory(tr("the layer for multi-token prediction")) from error


SPEC = HeadKind("mtp", _owns, _sizes, _read, is_ranked=False, is_embedded=_lies_within)
