"""The compiled step layer by layer, so that layers may come and go between two of them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import addressof

import torch
from torch import Tensor

from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.runtime.kv.panel_cache import PanelCache
from medusa_core.runtime.offload.linear import OffloadedLayers
from medusa_core.runtime.offload.visits import Visits
from medusa_core.runtime.runner.compiled_decoder import NativeDecoder, enter_with
from medusa_core.runtime.runner.native import NativeRunner, applied
from medusa_core.runtime.runner.runner import (
    PlacedTree,
    Waited,
)
from medusa_core.runtime.tree.step import Pruner
from medusa_core.system.native.pool import Pool
from medusa_core.system.native.structs import (
    CacheStruct,
    PassStruct,
    SequenceStruct,
)

# What a pass through one layer tells of each row: what leaves it, behind the last norm; what
# enters it; what leaves it.
_NORMED, _BEFORE, _BEHIND, _TOLD = 0, 1, 2, 3


class OffloadNativeRunner(NativeRunner):
    """Runs forward passes layer by layer; what it computes is what `NativeRunner` computes.

    A layer is a decoder of one layer, whose token vectors are what the layer before gave.

    Attributes:
        visits: Brings the layers.
    """

    def __init__(
        self,
        model: Decoder,
        precision: Precision,
        native: NativeDecoder,
        offloaded: OffloadedLayers,
    ) -> None:
        super().__init__(model, precision, native)
        self._stand_ins = offloaded.linears
        self.visits = Visits(offloaded, precision.device)
        self._both_ends = (ctypes.c_int32 * 2)(0, 1)  # of a decoder of one layer
        self._layers = [native.layer(index) for index in range(model.config.num_layers)]
        self._num_holding = model.config.num_layers  # a pass is one: layers come once

    @property
    def waited(self) -> Waited:
        return Waited(self.visits.waited_s)

    @property
    def buffer_bytes(self) -> int:
        return self.visits.nbytes

    def verify_pruned(
        self, placed: Sequence[PlacedTree], pruners: Sequence[Pruner | None]
    ) -> Tensor:
        """Verify all nodes: while layers come, rows are free."""
        return self.verify(*placed)

    def _run(
        self, pass_struct: PassStruct, caches: Sequence[PanelCache], states: Tensor, pool: Pool
    ) -> None:
        config = self._model.config
        x = torch.empty(pass_struct.rows, _TOLD, config.hidden_size)
        wanted = states.view(-1, 1 + len(self.taps), config.hidden_size)
        one = _pass_of_one_layer(pass_struct, x, self._both_ends)
        last = config.num_layers - 1
        # Behind the first layer rows are found where the layer before has left them.
        ids = (ctypes.c_int64 * pass_struct.rows)(*range(_BEHIND, pass_struct.rows * _TOLD, _TOLD))
        for index in range(config.num_layers):
            parts = self.visits.enter(index)
            if parts:
                self._native.place(self._stand_ins[index], parts)
            layer = self._layers[index]
            if index:
                enter_with(layer, x)
                one.token_ids = addressof(ids)
            one.first_wanted = pass_struct.first_wanted if index == last else 0
            sequences = _sequences(pass_struct, caches, index)
            one.sequences = addressof(sequences[0])
            self._library.forward(addressof(layer), addressof(one), pool.awake())
            applied(caches)  # of all layers, by the first
            first = 0 if index == last else pass_struct.first_wanted
            self._describe(index, x[first : first + len(wanted)], wanted)
        wanted[:, 0] = x[: len(wanted), _NORMED]

    def _describe(self, index: int, x: Tensor, wanted: Tensor) -> None:
        """Keep what enters a layer, and what leaves the last one, where that is wanted."""
        for place, tap in enumerate(self.taps, start=1):
            if tap == index:
                wanted[:, place] = x[:, _BEFORE]
            elif tap == index + 1 == self._model.config.num_layers:
                wanted[:, place] = x[:, _BEHIND]


def _pass_of_one_layer(
    pass_struct: PassStruct, x: Tensor, both_ends: ctypes.Array[ctypes.c_int32]
) -> PassStruct:
    """The pass for one layer, which tells all of it. [rows, _TOLD, hidden]"""
    one = PassStruct.from_buffer_copy(pass_struct)
    one.hidden = x.data_ptr()
    one.taps, one.num_taps = addressof(both_ends), len(both_ends)
    return one


def _sequences(
    pass_struct: PassStruct, caches: Sequence[PanelCache], layer: int
) -> tuple[ctypes.Array[SequenceStruct], list[CacheStruct]]:
    """The pass' sequences over one layer of their caches, and what they point at."""
    found = (SequenceStruct * len(caches))()
    ctypes.memmove(found, pass_struct.sequences, ctypes.sizeof(found))
    of_layer = []
    for sequence, kv in zip(found, caches, strict=True):
        of_layer.append(kv.from_layer(layer))
        sequence.pending = kv.num_pending
        sequence.cache = addressof(of_layer[-1])
    return found, of_layer
