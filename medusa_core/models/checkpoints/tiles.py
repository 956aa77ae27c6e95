"""Heads of gated delta nets as llama.cpp stores them: one of each key head, then the next.

Hugging Face's files have all heads of a key head, then those of the next. Rows are brought into
that order; columns of blocks can't be, as a block may hold those of two heads.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.system.files.gguf import Gguf

_MIXER = ".linear_attn."
_HEADS = ("in_proj_z.weight", "in_proj_b.weight", "in_proj_a.weight", "A_log", "dt_bias")
_BEHIND_KEYS = ("in_proj_qkv.weight", "conv1d.weight")
_READS_HEADS = "out_proj.weight"


class Tiles(NamedTuple):
    """How a file stores heads.

    Attributes:
        groups: Key heads.
        heads: All heads.
        num_keys: Rows of queries and keys in front of those of heads.
    """

    groups: int
    heads: int
    num_keys: int

    @classmethod
    def of(cls, gguf: Gguf) -> Tiles | None:
        """Those of a file; None where each head has a key head of its own, or its keys are lost."""
        keys = ("ssm.group_count", "ssm.time_step_rank", "ssm.state_size")
        groups, heads, size = (gguf.of_model(key) for key in keys)
        if not (isinstance(groups, int) and isinstance(heads, int) and isinstance(size, int)):
            return None
        return cls(groups, heads, 2 * groups * size) if 0 < groups < heads else None

    def in_order(self, name: str, stored: Tensor, is_plain: bool) -> Tensor:
        """A tensor with its heads as Hugging Face has them.

        Args:
            name: Hugging Face's.
            stored: Its rows.
            is_plain: It holds plain numbers, not blocks.

        Raises:
            CheckpointError: Its rows aren't those of so many heads.
        """
        _, of_mixer, part = name.partition(_MIXER)
        if of_mixer and part in _HEADS:
            return self._rows(name, stored)
        if of_mixer and part in _BEHIND_KEYS:
            keys, heads = stored[: self.num_keys], stored[self.num_keys :]
            return torch.cat([keys, self._rows(name, heads)])
        if of_mixer and part == _READS_HEADS and is_plain:
            return self._rows(name, stored.t()).t().contiguous()
        return stored

    def _rows(self, name: str, rows: Tensor) -> Tensor:
        if len(rows) % self.heads or self.heads % self.groups:
            raise CheckpointError(
                f"{name} has {len(rows)} rows, which aren't those of {self.heads} heads.",
                "Download the file again.",
            )
        tiles = rows.view(self.heads // self.groups, self.groups, -1, *rows.shape[1:])
        return tiles.transpose(0, 1).reshape(rows.shape)
