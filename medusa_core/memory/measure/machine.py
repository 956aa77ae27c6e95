"""This machine's rates for a model: measured once and kept."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from medusa_core.memory.budget import Budget
from medusa_core.memory.heap import trim_heap
from medusa_core.memory.measure.compute import Paces, model_rates, paces_of
from medusa_core.memory.measure.transfers import (
    disk_errors,
    disk_read_latency,
    disk_read_rate,
    disk_write_rate,
    from_card_rate,
    memory_copy_rate,
    open_reads,
    to_card_rate,
)
from medusa_core.memory.placement import OffloadRoom, piece_bytes
from medusa_core.memory.policy.machine_rates import MachineRates, RateCurve
from medusa_core.memory.policy.request import PolicyRequest
from medusa_core.runtime.offload.layer_file import PIECE_BYTES
from medusa_core.system import cuda
from medusa_core.system.files.measurement_files import MeasurementFiles
from medusa_core.system.files.own_folder import make_own_folder

_RESERVED_BYTES = 1 << 30  # of a disk, for everything but layers
_VISIT_S = 1e-4  # Python between two computations
OnMeasure = Callable[[str], None]
# Kinds of measurements: a layer and attention, the disk, the link to a card, copies in memory, and
# how much computing and reading slow each other down.
MEASURED = MODEL, DISK, CARD, MEMORY, BESIDE = ("model", "disk", "card", "memory", "beside")
_NUMBERS = {
    MODEL: ("cache", "prompts", "host"),
    DISK: ("read", "write", "each"),
    CARD: ("to", "from"),
    MEMORY: ("copied",),
    BESIDE: ("computing", "reading"),
}
_CURVES = {MODEL: ("layer_s", "head_s")}


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """Measurements of this machine, each taken once and kept in a file.

    Attributes:
        files: Files of measurements.
        on_measure: Called with what is being measured, for people.
        remeasure: Kinds of `MEASURED` that are measured even if they are kept.
    """

    files: MeasurementFiles
    on_measure: OnMeasure
    remeasure: Collection[str] = ()

    def disk(self, folder: Path, piece: int) -> dict[str, Any]:
        """Return rates of reads of so many bytes, of writes, and the latency of a read.

        Raises:
            TierError: The folder can't be written or read.
        """

        def measure() -> dict[str, Any]:
            self.on_measure(f"measuring the disk of {folder}")
            return {
                "read": disk_read_rate(folder, piece),
                "write": disk_write_rate(folder),
                "each": disk_read_latency(folder),
            }

        return self._known(DISK, _disk_key(folder, piece), measure)

    def card(self, device: torch.device) -> dict[str, Any]:
        """Return rates of the link to a card, and back."""

        def measure() -> dict[str, Any]:
            self.on_measure("measuring the link to the card")
            return {"to": to_card_rate(device), "from": from_card_rate(device)}

        return self._known(CARD, (CARD, cuda.name(device)), measure)

    def memory(self) -> dict[str, Any]:
        """Return the rate of copies in memory."""
        return self._known(MEMORY, (MEMORY,), lambda: {"copied": memory_copy_rate()})

    def model(self, request: PolicyRequest) -> dict[str, Any]:
        """Return the times of a layer, and rates of attention."""

        def measure() -> dict[str, Any]:
            self.on_measure("measuring a layer of the model")
            kinds = (request.config, request.formats, request.precision)
            return model_rates(*kinds, request.mean_tokens, request.num_threads)._asdict()

        return self._known(MODEL, _model_key(request), measure)

    def beside(self, request: PolicyRequest, folder: Path, piece: int) -> dict[str, Any]:
        """Return the paces of computing a layer and reading a disk at the same time.

        Raises:
            TierError: The folder can't be written or read.
        """

        def measure() -> dict[str, Any]:
            self.on_measure("measuring a layer and the disk at the same time")
            kinds = (request.config, request.formats, request.precision, request.num_threads)
            with disk_errors(folder), open_reads(folder, piece) as read:
                return paces_of(*kinds, read)._asdict()

        return self._known(BESIDE, (BESIDE, _model_key(request), _disk_key(folder, piece)), measure)

    def _known(
        self, kind: str, facts: Sequence[object], measure: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return a kept measurement, or measure and keep it.

        Args:
            kind: One of `MEASURED`.
            facts: Everything that it depends on.
            measure: Measures it.
        """
        key = hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
        found = None
        if kind not in self.remeasure:
            found = self.files.load(key, "rates", lambda raw: _checked(kind, raw))
        if found is None:
            found = measure()
            trim_heap()  # a model that is loaded next needs that memory
            self.files.save(key, "rates", found)
        return found


def measure_machine(
    request: PolicyRequest, budget: Budget, room: OffloadRoom, rates: MeasuredRates
) -> MachineRates:
    """Return this machine with its rates for a model.

    Args:
        request: The model, and what it is used for.
        budget: Memory of the device.
        room: Room for offloaded layers.
        rates: Kept measurements.

    Raises:
        TierError: The disk can't be written.
    """
    device, folder = request.precision.device, room.disk
    piece = min(PIECE_BYTES, piece_bytes(request.config, request.formats))
    # Checked first: a folder that can't be used is an error before anything is measured.
    free = 0 if folder is None else _free_bytes(folder) - _RESERVED_BYTES
    model, copied = rates.model(request), rates.memory()["copied"]
    disk: Mapping[str, Any] = {"read": 1.0, "write": 1.0, "each": 0.0}
    paces: Mapping[str, Any] = Paces(1.0, 1.0)._asdict()
    if folder is not None:
        disk, paces = rates.disk(folder, piece), rates.beside(request, folder, piece)
    link: Mapping[str, Any] = {"to": math.inf, "from": math.inf}
    if device.type == "cuda":
        link = rates.card(device)
    return MachineRates(
        device_bytes=budget.total_bytes - budget.other_bytes - budget.runtime_bytes,
        memory_bytes=room.memory_bytes,
        disk_bytes=max(0, free),
        to_device=link["to"],
        from_device=link["from"],
        from_disk=disk["read"],
        read_s=disk["each"],
        to_disk=disk["write"],
        copied=copied,
        num_cores=request.num_threads,
        cache_on_device=model["cache"],
        cache_of_prompts=model["prompts"],
        cache_in_memory=model["host"],
        visit_s=_VISIT_S,
        layer_s=_curve(model["layer_s"]),
        head_s=_curve(model["head_s"]),
        computing_beside=paces["computing"],
        reading_beside=paces["reading"],
    )


def _model_key(request: PolicyRequest) -> tuple[object, ...]:
    config, formats, device = request.config, request.formats, request.precision.device
    where = cuda.name(device) if device.type == "cuda" else f"{os.cpu_count()} cores"
    sizes = (config.hidden_size, config.intermediate_size, config.vocab_size, config.row_sizes)
    heads = (config.num_heads, config.num_kv_heads, config.head_dim, request.mean_tokens)
    mixers = (config.model_type, None if config.moe is None else config.moe.routing)
    facts = (formats.cache_format, formats.attended, torch.__version__, request.num_threads)
    return MODEL, sizes, heads, mixers, sorted(formats.names.items()), facts, where


def _disk_key(folder: Path, piece: int) -> tuple[object, ...]:
    return DISK, str(folder.absolute()), piece


def _checked(kind: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Read a kept measurement.

    Raises:
        KeyError: A rate is missing.
        TypeError: A rate isn't a number.
        ValueError: Likewise, or it is negative or not finite.
    """
    found: dict[str, Any] = {name: float(raw[name]) for name in _NUMBERS[kind]}
    if not all(0 <= rate < math.inf for rate in found.values()):
        raise ValueError("a rate is negative or not finite")
    return found | {name: _curve(raw[name]) for name in _CURVES.get(kind, ())}


def _free_bytes(folder: Path) -> int:
    """Free bytes of a folder's disk; the folder is created."""
    with disk_errors(folder):
        make_own_folder(folder)
        return shutil.disk_usage(folder).free


def _curve(raw: Sequence[Sequence[float]]) -> RateCurve:
    return tuple((int(rows), float(seconds)) for rows, seconds in raw)
