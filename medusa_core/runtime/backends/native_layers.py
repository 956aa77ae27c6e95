"""Computes the layers of a draft head by the compiled step, over rows of a growing token tree."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from ctypes import addressof
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import DTYPES, NativeLinear
from medusa_core.runtime.backends.block import Block
from medusa_core.runtime.backends.native_blocks import DescribedLayers, NativeDecoder, set_input
from medusa_core.runtime.backends.native_limits import why_not
from medusa_core.runtime.backends.norm import RmsNorm
from medusa_core.runtime.backends.rope import Rope
from medusa_core.runtime.kv.panel_cache import PanelCache
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.pool import Workers
from medusa_core.system.native.structs import PassStruct, SequenceStruct


class TreeRows(NamedTuple):
    """New rows of a token tree after the committed rows of a head's cache.

    Attributes:
        token_ids: Token of each new row.
        position: RoPE position of rows without ancestors in the tree.
        parents: Parent of each row of the tree, −1 for none; the known rows come first. int32
        depths: Number of ancestors of each row of the tree. int32
        num_known: Rows of the tree that are in the cache already.
    """

    token_ids: Sequence[int]
    position: int
    parents: array[int]
    depths: array[int]
    num_known: int = 0

    @classmethod
    def chain(cls, token_ids: Sequence[int], position: int) -> TreeRows:
        """Return consecutive tokens."""
        count = len(token_ids)
        return cls(token_ids, position, array("i", range(-1, count - 1)), array("i", range(count)))


@dataclass(frozen=True, slots=True)
class HeadLayers:
    """Layers of a head, as `NativeDecoder` describes them.

    Attributes:
        config: Their sizes.
        blocks: The layers.
        ropes: Rotary embeddings; a layer names one by its index.
        final_norm: Norm after the last layer.
    """

    config: ModelConfig
    blocks: Sequence[Block]
    ropes: Sequence[Rope]
    final_norm: RmsNorm
    per_layer: None = None

    def rotations(self, num_positions: int) -> list[Tensor]:
        """Return the table of each rope. [positions, head_dim / 2] each, complex"""
        return [rope.rotations(num_positions) for rope in self.ropes]

    def attn_temperature_scale(self, num_positions: int) -> Tensor | None:
        """Return None: queries aren't scaled by position."""
        return None


class NativeLayers:
    """Layers of a head in the compiled step.

    Attributes:
        workers: The target's worker threads; None to compute on the calling thread alone.
    """

    def __init__(self, native: NativeDecoder, config: ModelConfig) -> None:
        """Prepare.

        Args:
            native: The layers, and the norm after them.
            config: Their sizes.
        """
        self._native, self._config = native, config
        self.workers: Workers | None = None
        self._scratch = torch.empty(0)
        self._scratch_for = (0, 0, 0)

    def new_cache(
        self, dtype: torch.dtype, capacity: int, memory: Tensor | None = None
    ) -> PanelCache:
        """Return an empty cache."""
        return PanelCache(self._native.library, self._config, dtype, capacity, memory)

    def run(
        self,
        inputs: Tensor,
        rows: TreeRows,
        kv: PanelCache,
        mixer_inputs: Tensor | None = None,
        only_last: bool = False,
    ) -> Tensor:
        """Compute rows, whose keys and values are written to the cache.

        Args:
            inputs: Input of the first layer. float32 [n, hidden]
            rows: The rows.
            kv: Cache from `new_cache`, with room for the whole tree.
            mixer_inputs: Input of the first layer's token mixer in place of its pre-norm's output.
                float32 [n, any]
            only_last: Only the last row's output is needed.

        Returns:
            After the final norm, then before it. float32 [n, 2, hidden], or [1, 2, hidden]
        """
        native, total, known = self._native, len(rows.parents), rows.num_known
        kv.reserve(total)
        native.start_at(rows.position - kv.length, kv.capacity)
        workers = self.workers
        num_workers = 1 if workers is None else workers.decoding.num_workers
        wanted = (total, kv.capacity, num_workers)
        if any(new > old for new, old in zip(wanted, self._scratch_for, strict=True)):
            self._scratch_for = wanted
            self._scratch = torch.empty(native.scratch_floats(*wanted))
        first = total - 1 if only_last else known
        states = torch.empty(total - first, 2, self._config.hidden_size)
        inputs = inputs.contiguous()
        set_input(native.struct, inputs)
        sequence = SequenceStruct(cache=kv.address)
        sequence.tree.num_rows, sequence.tree.num_committed = total, kv.length
        sequence.tree.parents = rows.parents.buffer_info()[0]
        sequence.tree.depths = rows.depths.buffer_info()[0]
        ids = (ctypes.c_int64 * total)(*range(-known, total - known))
        taps = ctypes.c_int32(self._config.num_layers)
        pass_struct = PassStruct(
            sequences=addressof(sequence),
            token_ids=addressof(ids),
            scratch=self._scratch.data_ptr(),
            taps=addressof(taps),
            num_taps=1,
            hidden_states=states.data_ptr(),
            mixer_inputs=None if mixer_inputs is None else mixer_inputs.data_ptr(),
            num_sequences=1,
            num_rows=total,
            first_row=known,
            first_output_row=first,
            num_workers=num_workers,
        )
        pool = None if workers is None else workers.decoding.awake()
        native.library.forward(addressof(native.struct), addressof(pass_struct), pool)
        return states


def native_layers(
    layers: DescribedLayers, linears: Iterable[QuantLinear], precision: Precision
) -> NativeLayers | None:
    """Return a head's layers for the compiled step, or None if it can't compute them.

    Args:
        layers: The layers.
        linears: Their linear layers.
        precision: Dtypes and device.
    """
    library, config = native_library(), layers.config
    fits = (
        precision.device.type == "cpu"
        and precision.cache in (torch.float32, torch.bfloat16)
        and precision.compute in DTYPES
        and why_not(config) is None
        and not config.state_layers
        and layers.per_layer is None
        and all(isinstance(linear, NativeLinear) for linear in linears)
    )
    if library is None or not fits:
        return None
    return NativeLayers(NativeDecoder(library, layers), config)
