"""Plan and load embedding models."""

from __future__ import annotations

import math
from pathlib import Path

from medusa_core.engine.embeddings.embedder import Embedder
from medusa_core.engine.embeddings.files import EmbeddingFiles, open_embedding_files
from medusa_core.errors import PlanError
from medusa_core.i18n import tr
from medusa_core.loading.decoder import OnProgress
from medusa_core.loading.memory.budget import GIB
from medusa_core.loading.memory.plan import plan_memory
from medusa_core.loading.memory.probe import live_budget
from medusa_core.messages import HeadsShape, LoadOptions, WeightFormats
from medusa_core.models.checkpoints.folder_checkpoint import weight_files
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.system.files.safetensors_header import read_header

_SCRATCH_BYTES = 64 << 20  # activations of an encoder's longest text


def planned_bytes(path: Path, device: str = "") -> int:
    """Return the bytes of a device that an embedding model needs: weights, cache and scratch.

    Args:
        path: Folder or GGUF file of the model.
        device: Torch device name; empty for the best there is.

    Raises:
        ModelError: The model can't be used.
    """
    return _needed_bytes(open_embedding_files(path), device)


def load_embedder(
    path: Path, options: LoadOptions, on_progress: OnProgress | None = None
) -> Embedder:
    """Load an embedding model.

    Args:
        path: Folder or GGUF file.
        options: Device, bytes that must stay free (`reserved_bytes`), and whether the plan may be
            ignored, because it has been counted in another one.
        on_progress: As of `load_target`.

    Raises:
        ModelError: The model can't be used.
        PlanError: It doesn't fit the device.
        OutOfMemoryError: The device has no room.
    """
    files = open_embedding_files(path)
    if files.decoder is None:
        return _load_encoder(files, options)
    from medusa_core.engine.embeddings.native import NativeEmbedder
    from medusa_core.loading.load import load_target

    target = load_target(files.decoder, None, options, on_progress)
    return NativeEmbedder(target, files.pooling, files.conventions)


def _load_encoder(files: EmbeddingFiles, options: LoadOptions) -> Embedder:
    """Load an encoder, if it fits the device."""
    from medusa_core.engine.embeddings.encoder import TransformersEmbedder  # transformers is slow
    from medusa_core.models.precision import choose_device

    budget = live_budget(options.device)
    used = budget.other_bytes + budget.runtime_bytes + options.reserved_bytes
    missing = _needed_bytes(files, options.device) + used - budget.total_bytes
    if missing > 0 and not options.ignores_plan:
        raise PlanError(
            tr("This model needs {0:.1f} GiB more than {1} has free.", missing / GIB, budget.name),
            "Choose a smaller embedding model, or close other programs.",
            missing_bytes=missing,
            max_context=0,
        )
    return TransformersEmbedder(files, choose_device(options.device))


def _needed_bytes(files: EmbeddingFiles, device: str) -> int:
    """Bytes of weights, KV cache and scratch."""
    if files.decoder is None:
        headers = [read_header(path) for path in set(weight_files(files.path).values())]
        numbers = sum(math.prod(entry.shape) for header in headers for entry in header.values())
        return 4 * numbers + _SCRATCH_BYTES
    config, budget = files.decoder.config, live_budget(device)
    formats = resolve_formats(WeightFormats(), "", budget.hardware, config.stored)
    plan = plan_memory(config, HeadsShape(), formats, budget, config.context_tokens)
    return plan.model_bytes + plan.scratch_bytes
