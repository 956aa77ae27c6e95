"""Reorder the value heads of gated delta nets, which llama.cpp stores strided by key head.

In GGUF files the first value head of every key head comes first, then the second, …; Hugging Face
stores all value heads of a key head together. Rows are reordered; columns of block-quantized
weights can't be, as a block may contain columns of two heads.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.system.files.gguf import Gguf

_MIXER = ".linear_attn."
_HEADS = ("in_proj_z.weight", "in_proj_b.weight", "in_proj_a.weight", "A_log", "dt_bias")
_AFTER_KEYS = ("in_proj_qkv.weight", "conv1d.weight")  # rows of queries and keys, then of heads
_OUTPUT = "out_proj.weight"


class Tiles(NamedTuple):
    """Sizes of the heads of a file.

    Attributes:
        groups: Number of key heads.
        heads: Number of value heads.
        num_keys: Number of rows of queries and keys, which precede those of value heads.
    """

    groups: int
    heads: int
    num_keys: int

    @classmethod
    def of(cls, gguf: Gguf) -> Tiles | None:
        """Read the sizes of a file; None if no reordering is needed or sizes are missing."""
        keys = ("ssm.group_count", "ssm.time_step_rank", "ssm.state_size")
        groups, heads, size = (gguf.of_model(key) for key in keys)
        if not (isinstance(groups, int) and isinstance(heads, int) and isinstance(size, int)):
            return None
        return cls(groups, heads, 2 * groups * size) if 0 < groups < heads else None

    def reorder(self, name: str, stored: Tensor, is_dense: bool) -> Tensor:
        """Reorder a tensor's heads to Hugging Face's layout.

        Args:
            name: Hugging Face's name.
            is_dense: Whether it is unquantized.

        Raises:
            CheckpointError: The number of rows isn't a multiple of the heads.
        """
        _, of_mixer, part = name.partition(_MIXER)
        if of_mixer and part in _HEADS:
            return self._rows(name, stored)
        if of_mixer and part in _AFTER_KEYS:
            keys, heads = stored[: self.num_keys], stored[self.num_keys :]
            return torch.cat([keys, self._rows(name, heads)])
        if of_mixer and part == _OUTPUT and is_dense:
            return self._rows(name, stored.t()).t().contiguous()
        return stored

    def _rows(self, name: str, rows: Tensor) -> Tensor:
        """Reorder rows from strided by key head to grouped by key head."""
        if len(rows) % self.heads or self.heads % self.groups:
            raise CheckpointError(
                tr(
                    "{0} has {1} rows, which aren't those of {2} heads.",
                    name,
                    len(rows),
                    self.heads,
                ),
                "Download the file again.",
            )
        tiles = rows.view(self.heads // self.groups, self.groups, -1, *rows.shape[1:])
        return tiles.transpose(0, 1).reshape(rows.shape)
