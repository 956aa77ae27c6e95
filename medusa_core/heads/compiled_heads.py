"""C structures of Medusa and Hydra heads for the compiled step."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from ctypes import addressof
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from medusa_core.heads.compiled_ranking import SHARPNESS, CompiledRanking, RankedColumns
from medusa_core.models.quant.native_linear import (
    DTYPES,
    NativeLinear,
)
from medusa_core.models.token_table import TokenTable
from medusa_core.runtime.backends.native_blocks import set_embedding
from medusa_core.runtime.tree.step import PositionNoise
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import PANEL
from medusa_core.system.native.pool import Workers
from medusa_core.system.native.structs import (
    HeadsStruct,
    LinearStruct,
    PathHeadStruct,
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
        embedding: TokenTable | None,
    ) -> None:
        """Describe the layers.

        Args:
            first: First residual layers of all heads, concatenated.
            rest: Further residual layers: for each depth one per head.
            projections: One per head, or one shared by all.
            num_heads: Number of heads.
            embedding: The target's token embeddings, if the first layers read the root's.
                float32 or bfloat16
        """
        self._library = library
        self._kept, self._embedding = (first, rest, projections), embedding
        self._rest = (LinearStruct * len(rest))(*(layer.struct for layer in rest))
        self._projections = (LinearStruct * len(projections))(*(p.struct for p in projections))
        hidden, self._num_columns = projections[0].num_inputs, projections[0].num_outputs
        self._struct = HeadsStruct(
            first=None if first is None else addressof(first.struct),
            rest=addressof(self._rest),
            projections=addressof(self._projections),
            hidden_size=hidden,
            num_columns=self._num_columns,
            num_heads=num_heads,
            num_rest=len(rest) // num_heads,
            shares_projection=len(projections) == 1 and num_heads > 1,
        )
        self._address = addressof(self._struct)
        self.workers: Workers | None = None
        self._scratch = torch.empty((3 * num_heads + 3) * hidden)

    def ranked(
        self,
        hidden: Tensor,
        root_id: int,
        num_heads: int,
        num_ranks: int,
        token_map: Tensor | None,
        noises: Sequence[PositionNoise],
    ) -> tuple[Tensor, RankedColumns]:
        """Compute and rank the logits of the first heads.

        Args:
            hidden: The target's final hidden state. [hidden], float32
            root_id: The token that was chosen from it.
            num_heads: Number of heads to run.
            num_ranks: Best columns per head, at most `MAX_TOP_K`.
            token_map: Token id of each column; None if columns are token ids. int64
            noises: Sampling noise of each head's position; empty for none.

        Returns:
            Logits [num_heads, columns], and the best columns of all heads.
        """
        scores = torch.empty(num_heads, self._num_columns)
        if self._embedding is not None:
            vectors, (root_id,) = self._embedding.find([root_id])
            set_embedding(self._struct, vectors)
        ranking = CompiledRanking(
            num_heads, num_ranks, self._num_columns, token_map, noises, SHARPNESS
        )
        self._library.run_heads(
            self._address,
            hidden.data_ptr(),
            root_id,
            num_heads,
            self._scratch.data_ptr(),
            scores.data_ptr(),
            ranking.address,
            None if self.workers is None else self.workers.decoding.awake(),
        )
        return scores, ranking.ranked


class NativePathHead:
    """C structure of a Hydra head, which points to its weights without copies."""

    def __init__(
        self,
        library: ctypes.CDLL,
        first: NativeLinear,
        rest: Sequence[NativeLinear],
        projection: NativeLinear,
        embedding: TokenTable,
    ) -> None:
        """Describe the layers.

        Args:
            first: First residual layer; W stacked on R, or W alone.
            rest: Further residual layers.
            projection: Output projection.
            embedding: The target's token embeddings. float32 or bfloat16
        """
        self._library = library
        self._kept, self._embedding = (first, rest, projection), embedding
        self._rest = (LinearStruct * len(rest))(*(layer.struct for layer in rest))
        hidden = projection.num_inputs
        self._num_tokens = first.num_inputs // hidden - 1
        self._num_columns = projection.num_outputs
        self._struct = PathHeadStruct(
            first=addressof(first.struct),
            rest=addressof(self._rest),
            projection=addressof(projection.struct),
            hidden_size=hidden,
            num_tokens=self._num_tokens,
            num_rest=len(rest),
        )
        self._address = addressof(self._struct)
        self._path_floats = 2 * (self._num_tokens + 3) * hidden + self._num_columns
        self._memory = torch.empty(0)

    def ranked(
        self,
        hidden: Tensor,
        root_id: int,
        token_ids: array[int],
        num_paths: int,
        ranking: CompiledRanking,
        workers: Workers | None,
    ) -> None:
        """Compute and rank the logits after some paths.

        Args:
            hidden: The target's final hidden state. [hidden], float32 and contiguous
            root_id: The token that was chosen from it.
            token_ids: Tokens of the paths without the root, path by path. int32
            num_paths: Number of paths.
            ranking: Takes the best columns.
            workers: The target's worker threads; None to compute on the calling thread alone.
        """
        if len(self._memory) < num_paths * self._path_floats:
            self._memory = torch.empty(num_paths * self._path_floats)
        drafted = token_ids[: num_paths * (self._num_tokens - 1)]
        vectors, (root, *indices) = self._embedding.find((root_id, *drafted))
        set_embedding(self._struct, vectors)
        paths = array("i", indices)
        memory, bytes_of_logits = self._memory.data_ptr(), _BYTES * num_paths * self._num_columns
        self._library.run_path_head(
            self._address,
            hidden.data_ptr(),
            root,
            paths.buffer_info()[0],
            num_paths,
            memory + bytes_of_logits,
            memory,
            ranking.address,
            None if workers is None else workers.decoding.awake(),
        )


def native_path_head(
    first: QuantLinear, rest: Sequence[QuantLinear], projection: QuantLinear, embedding: TokenTable
) -> NativePathHead | None:
    """Return a Hydra head for the compiled step, or None if it can't compute it.

    Args:
        first: First residual layer.
        rest: Further residual layers.
        projection: Output projection.
        embedding: The target's token embeddings.
    """
    library = native_library()
    layers = [layer for layer in rest if isinstance(layer, NativeLinear)]
    if library is None or len(layers) < len(rest) or not isinstance(first, NativeLinear):
        return None
    if not isinstance(projection, NativeLinear) or projection.num_inputs % PANEL:
        return None
    if embedding.dtype not in DTYPES or embedding.device.type != "cpu":
        return None
    return NativePathHead(library, first, layers, projection, embedding)


def native_heads(
    first: QuantLinear | None,
    residual_layers: Sequence[Sequence[QuantLinear]],
    projections: Sequence[QuantLinear],
    num_heads: int,
    embedding: TokenTable | None,
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
    if embedding is not None and (embedding.dtype not in DTYPES or embedding.device.type != "cpu"):
        return None
    return NativeHeads(library, first, layers, ends, num_heads, embedding)
