"""Heads in a GGUF file, presented in the layout in which they are published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medusa_core.errors import HeadsError
from medusa_core.heads.gguf_format import GgufHeadsFormat, find_gguf_format
from medusa_core.i18n import tr
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.checkpoints.gguf_checkpoint import GgufCheckpoint
from medusa_core.models.checkpoints.gguf_config import TITLE, base_model_of, config_of
from medusa_core.system.files.gguf import Gguf, GgufTensor, read_gguf

_OFFSETS = "d2t"  # GGUF files store token ids, not offsets
_READ_ELSEWHERE = "rope_freqs.weight"


class GgufHeads(GgufCheckpoint):
    """Tensors of a GGUF file of heads; see `Checkpoint`."""

    def __init__(self, gguf: Gguf, spec: GgufHeadsFormat) -> None:
        """Translate the names of a file.

        Raises:
            HeadsError: Two tensors get the same name.
        """
        super().__init__(gguf, spec.blocks, _rename_tensors(gguf, spec))

    def integers(self, name: str) -> Tensor:
        """Read an integer tensor; token ids become EAGLE's offsets."""
        found = super().integers(name)
        return found - torch.arange(len(found)) if name == _OFFSETS else found


def open_gguf_heads(path: Path) -> tuple[Checkpoint, Mapping[str, object]]:
    """Open heads in a GGUF file, or in a model's file.

    Raises:
        CheckpointError: The file is missing or damaged.
        HeadsError: The heads are malformed.
        ModelError: The architecture isn't supported.
    """
    return gguf_heads(read_gguf(path, is_model=False))


def gguf_heads(gguf: Gguf) -> tuple[Checkpoint, Mapping[str, object]]:
    """Return the heads of a file whose header is read; see `open_gguf_heads`."""
    spec = find_gguf_format(gguf)
    if spec is None:
        model_names = {
            "base_model_name_or_path": gguf.text(TITLE)
        }  # the file may be a model with an MTP layer
        return GgufCheckpoint(gguf), config_of(gguf)[0] | model_names
    return GgufHeads(gguf, spec), _settings(gguf, spec)


def _settings(gguf: Gguf, spec: GgufHeadsFormat) -> dict[str, Any]:
    """Return the heads' `config.json`, with the target's name."""
    settings = spec.settings(gguf) | {"base_model_name_or_path": base_model_of(gguf)}
    return {name: value for name, value in settings.items() if value is not None}


def _rename_tensors(gguf: Gguf, spec: GgufHeadsFormat) -> dict[str, GgufTensor]:
    """Return the tensors of a GGUF file by their names in the published safetensors."""
    named: dict[str, GgufTensor] = {}
    for theirs, tensor in gguf.tensors.items():
        name = spec.published(theirs)
        if name in named:
            raise HeadsError(tr("The file holds {0} twice.", name), "Download the file again.")
        if theirs not in spec.unread and theirs != _READ_ELSEWHERE:
            named[name] = tensor
    return named
