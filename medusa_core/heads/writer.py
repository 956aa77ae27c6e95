"""Writer of Medusa heads in published formats."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from medusa_core.errors import HeadsError
from medusa_core.heads.format import format_registry
from medusa_core.heads.weights import HeadSet
from medusa_core.i18n import tr
from medusa_core.system.files.atomic_file import AtomicFile
from medusa_core.system.files.disk_errors import disk_errors


def with_projection(heads: HeadSet, lm_head: Tensor) -> HeadSet:
    """Give each head a copy of the target's projection.

    Args:
        heads: Heads without projections.
        lm_head: The target's projection. [vocabulary, hidden]
    """
    return replace(
        heads, heads=tuple(replace(head, projection=lm_head.clone()) for head in heads.heads)
    )


def write_heads(heads: HeadSet, format_name: str, folder: Path, base_model: str) -> Path:
    """Write heads and their `config.json`.

    Args:
        format_name: Name of a registered format.
        folder: Destination; created if missing.
        base_model: Name of the target, for `config.json`.

    Returns:
        The tensor file. Files are replaced atomically.

    Raises:
        RequestError: There is no such format.
        HeadsError: The format can't represent these heads, or the folder can't be written.
    """
    spec = format_registry().get(format_name)
    if spec.write is None:
        raise HeadsError(
            tr("Heads aren't written as {0}.", format_name), "Choose v0.1, v2 or vllm instead."
        )
    written = spec.write(heads, base_model)
    tensors = {name: tensor.contiguous() for name, tensor in written.tensors.items()}
    path = folder / written.file_name
    with disk_errors(HeadsError, folder, tr("Choose another folder, or make space.")):
        folder.mkdir(parents=True, exist_ok=True)
        with AtomicFile(path, private=False) as part:
            save_file(tensors, part, metadata={"format": "pt"})
        config = json.dumps(written.config, indent=2) + "\n"
        with AtomicFile(folder / "config.json", private=False) as part:
            part.write_text(config, encoding="utf-8")
    return path


def copy_trees(source: Path, folder: Path) -> None:
    """Copy the measured trees that are stored with heads."""
    name = "medusa_trees.json"
    if (source / name).exists() and source.resolve() != folder.resolve():
        shutil.copyfile(source / name, folder / name)
