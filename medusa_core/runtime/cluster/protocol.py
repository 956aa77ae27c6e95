"""What passes between a client and a stage; all of it can be pickled."""

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
    """A tensor on its way; numpy has no bfloat16.

    Attributes:
        data: Its bytes. uint8, flat
        dtype: Name of its dtype.
        shape: Its shape.
    """

    data: NDArray[np.uint8]
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor) -> PackedTensor:
        """Pack a tensor of any device."""
        here = tensor.detach().cpu().contiguous()
        name = str(here.dtype).removeprefix("torch.")
        return cls(here.view(-1).view(torch.uint8).numpy(), name, tuple(here.shape))

    def tensor(self) -> Tensor:
        """The tensor, on the CPU; a copy, as what arrives can't be written to."""
        flat = torch.from_numpy(self.data.copy())
        return flat.view(_DTYPES[self.dtype]).view(self.shape)


@dataclass(frozen=True, slots=True)
class StageOffer:
    """What a machine that offers layers says of itself.

    Attributes:
        name: Its name among the stages of a cluster.
        place: Host and process, for people.
        model_hash: Of the model's `config.json` and weights.
        libraries: The compiled steps that it could use, each with the hash of its file.
        versions: Of what else computes there, by name.
        memory_bytes: What its layers and their caches may take.
    """

    name: str
    place: str
    model_hash: str
    libraries: dict[str, str]
    versions: dict[str, str]
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class ComputeSettings:
    """How all stages are to compute.

    Attributes:
        formats: The weight formats that the client asks for.
        compute: Name of the dtype that it computes in.
        library: The compiled step that it uses; empty for none.
        context_tokens: Longest prompt plus answer.
        sessions: Conversations that have room for as much at once.
        client: Who asks: a stage serves one client at a time.
    """

    formats: WeightFormats
    compute: str
    library: str
    context_tokens: int
    sessions: int
    client: str


@dataclass(frozen=True, slots=True)
class StageSpeed:
    """How a stage computes as wanted.

    Attributes:
        formats: Names of the formats that it takes.
        layer_s: Seconds of one layer in a step.
        most_layers: Layers that it has memory for.
    """

    formats: dict[str, str | bool]
    layer_s: float
    most_layers: int


@dataclass(frozen=True, slots=True)
class StageLayers:
    """What a stage has read.

    Attributes:
        share: The layers.
        num_parameters: Their parameters.
        nbytes: Bytes of their weights.
        cache: Dtype of keys and values.
        hidden: Dtype of rows.
    """

    share: LayerRange
    num_parameters: int
    nbytes: int
    cache: str
    hidden: str


@dataclass(frozen=True, slots=True)
class CacheRequest:
    """What has become of a cache since the last pass, and what of it is next.

    Attributes:
        cache_id: Which cache.
        keep: The rows of its last pass that are kept, ascending.
        length: Rows that it then holds: those from there on are forgotten.
        capacity: Slots that it must have.
        is_blank: It holds rows of nothing, for measurements.
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
        cache: Their cache.
        num_rows: How many.
        paths: Of a tree's nodes the paths; None for consecutive tokens.
        parents: Of a tree's nodes the parents; they say which rows see which.
    """

    cache: CacheRequest
    num_rows: int
    paths: tuple[tuple[int, ...], ...] | None = None
    parents: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PassRequest:
    """One pass: all that a step needs of a stage, in one message.

    Attributes:
        client: Who asks.
        sequences: Whose the rows are, in their order.
        rows: What enters the stage's first layer. [n, hidden]
        taps: Layers of the whole target, rising, of which it is told what enters them.
        only_last: Only the last row goes on.
        forget: Caches that nobody uses any more.
    """

    client: str
    sequences: tuple[RowsRequest, ...]
    rows: PackedTensor
    taps: tuple[int, ...]
    only_last: bool
    forget: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PassReply:
    """What came of a pass.

    Attributes:
        states: What leaves the stage's last layer, behind the final norm if that is the target's
            last; then what enters each tapped one. [n, (1 + taps) · hidden]
        compute_s: Seconds that the stage computed.
    """

    states: PackedTensor
    compute_s: float
