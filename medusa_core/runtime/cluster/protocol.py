"""Messages between a client and a stage; all of them can be pickled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medusa_core.messages import WeightFormats
from medusa_core.runtime.cluster.layer_range import LayerRange

_DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True, slots=True)
class PackedTensor:
    """A serialized tensor; as bytes, because numpy has no bfloat16.

    Attributes:
        data: Content. uint8, flat
        dtype: Name of the torch dtype.
        shape: Shape of the tensor.
    """

    data: NDArray[np.uint8]
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor) -> PackedTensor:
        """Serialize a tensor of any device."""
        on_host = tensor.detach().cpu().contiguous()
        name = str(on_host.dtype).removeprefix("torch.")
        return cls(on_host.view(-1).view(torch.uint8).numpy(), name, tuple(on_host.shape))

    def tensor(self) -> Tensor:
        """Deserialize on the CPU; it copies, because Ray's memory is read-only."""
        flat = torch.from_numpy(self.data.copy())
        return flat.view(_DTYPES[self.dtype]).view(self.shape)


@dataclass(frozen=True, slots=True)
class StageOffer:
    """A machine's offer to compute layers.

    Attributes:
        name: Name of the stage, unique in its cluster.
        place: Host and process, for people.
        model_hash: Hash of the model's `config.json` and weights.
        libraries: Kernel libraries that it can use, each with the hash of its file.
        versions: Versions that influence results, by name.
        memory_bytes: Memory for layers and their caches.
    """

    name: str
    place: str
    model_hash: str
    libraries: dict[str, str]
    versions: dict[str, str]
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class ComputeSettings:
    """Settings that all stages share.

    Attributes:
        formats: Weight formats as the client's user set them.
        compute: Name of the dtype of activations.
        library: Kernel library of the client; empty for none.
        context_tokens: Longest prompt plus answer.
        sessions: Whole contexts at once.
        client: Id of the client; a stage serves one client at a time.
    """

    formats: WeightFormats
    compute: str
    library: str
    context_tokens: int
    sessions: int
    client: str


@dataclass(frozen=True, slots=True)
class StageSpeed:
    """Speed and capacity of a stage with given settings.

    Attributes:
        formats: Names of its resolved weight formats.
        layer_s: Seconds of one layer in a step.
        most_layers: Layers that fit into its memory.
    """

    formats: dict[str, str | bool]
    layer_s: float
    most_layers: int


@dataclass(frozen=True, slots=True)
class StageLayers:
    """The layers that a stage has loaded.

    Attributes:
        share: Range of layers.
        num_parameters: Number of their parameters.
        nbytes: Bytes of their weights.
        cache: Name of the dtype of keys and values.
        hidden: Name of the dtype of hidden states.
    """

    share: LayerRange
    num_parameters: int
    nbytes: int
    cache: str
    hidden: str


@dataclass(frozen=True, slots=True)
class CacheRequest:
    """Changes of a cache since the last pass, to apply before the next.

    Attributes:
        cache_id: Id of the cache.
        keep: Rows of its last pass to commit, ascending.
        length: Number of rows to which it is then truncated.
        capacity: Slots that it needs.
        is_blank: Fill it with `length` rows of zeros, for measurements.
    """

    cache_id: int
    keep: tuple[int, ...]
    length: int
    capacity: int
    is_blank: bool


@dataclass(frozen=True, slots=True)
class RowsRequest:
    """The rows of one sequence in a pass.

    Attributes:
        cache: Changes of their cache.
        num_rows: Number of rows.
        paths: Paths of a tree's nodes; None for consecutive tokens.
        parents: Parents of a tree's nodes.
    """

    cache: CacheRequest
    num_rows: int
    paths: tuple[tuple[int, ...], ...] | None = None
    parents: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PassRequest:
    """One pass through a stage, in one message.

    Attributes:
        client: Id of the client.
        sequences: Sequences of the rows, in order.
        rows: Input of the stage's first layer. [n, hidden]
        taps: Layers of the whole target whose input is returned, ascending.
        only_last: Only the last row's output is needed.
        forget: Ids of caches to free.
    """

    client: str
    sequences: tuple[RowsRequest, ...]
    rows: PackedTensor
    taps: tuple[int, ...]
    only_last: bool
    forget: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PassReply:
    """Result of a pass through a stage.

    Attributes:
        states: Output of the stage's last layer, after the final norm if it is the target's last;
            then the inputs of tapped layers. [n, (1 + taps) · hidden]
        compute_s: Seconds of computing.
    """

    states: PackedTensor
    compute_s: float
