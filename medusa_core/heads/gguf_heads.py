"""Heads in a GGUF file, by the names and settings of the layout in which they are published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medusa_core.errors import HeadsError
from medusa_core.heads.gguf_format import GgufHeadsFormat, find_gguf_format
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.checkpoints.gguf_checkpoint import GgufCheckpoint
from medusa_core.models.checkpoints.gguf_config import TITLE, base_model_of, config_of
from medusa_core.system.files.gguf import Gguf, GgufTensor, read_gguf

_OFFSETS = "d2t"  # a file has the tokens themselves
_READ_ELSEWHERE = "rope_freqs.weight"


class GgufHeads(GgufCheckpoint):
    """The tensors of a file of heads; see `Checkpoint`."""

    def __init__(self, gguf: Gguf, spec: GgufHeadsFormat) -> None:
        """Take a file.

        Raises:
            HeadsError: Two of its tensors have one name.
        """
        super().__init__(gguf, spec.blocks, _published(gguf, spec))

    def integers(self, name: str) -> Tensor:
        found = super().integers(name)
        return found - torch.arange(len(found)) if name == _OFFSETS else found


def open_gguf_heads(path: Path) -> tuple[Checkpoint, Mapping[str, object]]:
    """The tensors and settings of heads in a GGUF file, or of a model with heads inside.

    Raises:
        CheckpointError: It is missing or damaged.
        HeadsError: Its heads can't be what they are said to be.
        ModelError: It is of an architecture that isn't supported.
    """
    return gguf_heads(read_gguf(path, is_model=False))


def gguf_heads(gguf: Gguf) -> tuple[Checkpoint, Mapping[str, object]]:
    """As `open_gguf_heads`, of a file whose headers are read."""
    spec = find_gguf_format(gguf)
    if spec is None:
        its_model = {"base_model_name_or_path": gguf.text(TITLE)}  # whose layer it may be
        return GgufCheckpoint(gguf), config_of(gguf)[0] | its_model
    return GgufHeads(gguf, spec), _settings(gguf, spec)


def _settings(gguf: Gguf, spec: GgufHeadsFormat) -> dict[str, Any]:
    settings = spec.settings(gguf) | {"base_model_name_or_path": base_model_of(gguf)}
    return {name: value for name, value in settings.items() if value is not None}


def _published(gguf: Gguf, spec: GgufHeadsFormat) -> dict[str, GgufTensor]:
    named: dict[str, GgufTensor] = {}
    for theirs, tensor in gguf.tensors.items():
        name = spec.published(theirs)
        if name in named:
            raise HeadsError(f"The file holds {name} twice.", "Download the file again.")
        if theirs not in spec.unread and theirs != _READ_ELSEWHERE:
            named[name] = tensor
    return named
