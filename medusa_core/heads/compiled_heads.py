"""C structures of Medusa heads for the compiled step."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from ctypes import addressof
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from medusa_core.models.quant.native_linear import (
    DTYPES,
    NativeLinear,
)
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import PANEL
from medusa_core.system.native.pool import Workers
from medusa_core.system.native.structs import (
    HeadsStruct,
    LinearStruct,
)

if TYPE_CHECKING:
    from medusa_core.models.quant.layout import QuantLinear

_BYTES = 4


class NativeHeads:
    """C structures that point to the heads' weights, without copies.

    Attributes:
        workers: The target's worker threads; None to compute on the calling thread alone.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        first: NativeLinear | None,
        rest: Sequence[NativeLinear],
        projections: Sequence[NativeLinear],
        num_heads: int,
        embedding: Tensor | None,
    ) -> None:
        """Describe the layers.

        Args:
            first: First residual layers of all heads, concatenated.
            rest: Further residual layers: for each depth one per head.
            projections: One per head, or one shared by all.
            num_heads: Number of heads.
            embedding: The target's token embeddings, if the first layers read the root's.
                float32 or bfloat16, [vocabulary, hidden]
        """
        self._library = library
        self._kept = (first, rest, projections, embedding)
        self._rest = (LinearStruct * len(rest))(*(layer.struct for layer in rest))
        self._projections = (LinearStruct * len(projections))(*(p.struct for p in projections))
        hidden, self._num_columns = projections[0].num_inputs, projections[0].num_outputs
        self._struct = HeadsStruct(
            first=None if first is None else addressof(first.struct),
            rest=addressof(self._rest),
            projections=addressof(self._projections),
            embedding=None if embedding is None else embedding.data_ptr(),
            hidden_size=hidden,
            num_columns=self._num_columns,
            num_heads=num_heads,
            num_rest=len(rest) // num_heads,
            shares_projection=len(projections) == 1 and num_heads > 1,
            embedding_is_bf16=embedding is not None and embedding.dtype == torch.bfloat16,
        )
        self._address = addressof(self._struct)
        self.workers: Workers | None = None
        self._scratch = torch.empty((3 * num_heads + 3) * hidden)

    def ranked(
        self, hidden: Tensor, root_id: int, num_heads: int, num_ranks: int
    ) -> tuple[Tensor, list[int], array[float]]:
        """Compute the logits and best columns of the first heads.

        Args:
            hidden: The target's final hidden state. [hidden], float32
            root_id: The token that was chosen from it.
            num_heads: Number of heads to run.
            num_ranks: Best columns per head, at most `MAX_TOP_K`.

        Returns:
            Logits [num_heads, columns]; the best columns of all heads, concatenated; and their
            probabilities.
        """
        scores = torch.empty(num_heads, self._num_columns)
        best = (ctypes.c_int32 * (num_heads * num_ranks))()
        chances = array("f", bytes(_BYTES * num_heads * num_ranks))
        self._library.run_heads(
            self._address,
            hidden.data_ptr(),
            root_id,
            num_heads,
            num_ranks,
            self._scratch.data_ptr(),
            scores.data_ptr(),
            addressof(best),
            chances.buffer_info()[0],
            None if self.workers is None else self.workers.decoding.awake(),
        )
        return scores, best[:], chances


def native_heads(
    first: QuantLinear | None,
    residual_layers: Sequence[Sequence[QuantLinear]],
    projections: Sequence[QuantLinear],
    num_heads: int,
    embedding: Tensor | None,
) -> NativeHeads | None:
    """Return the heads for the compiled step, or None if it can't compute them.

    Args:
        first: First residual layers of all heads, concatenated.
        residual_layers: Further residual layers: for each depth one per head.
        projections: One per head, or one shared by all.
        num_heads: Number of heads.
        embedding: The target's token embeddings, if the first layers read the root's.
    """
    library = native_library()
    deeper = [layer for layers in residual_layers for layer in layers]
    layers = [layer for layer in deeper if isinstance(layer, NativeLinear)]
    ends = [end for end in projections if isinstance(end, NativeLinear)]
    if library is None or len(layers) < len(deeper) or not ends or len(ends) < len(projections):
        return None
    if ends[0].num_inputs % PANEL or not isinstance(first, NativeLinear | None):
        return None
    if embedding is not None and (embedding.dtype not in DTYPES or not embedding.is_cpu):
        return None
    return NativeHeads(library, first, layers, ends, num_heads, embedding)
