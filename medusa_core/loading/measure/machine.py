"""This machine's rates for a model: measured once and kept."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch

from medusa_core.loading.measure.compute import ModelRates, Paces, model_rates, paces_of
from medusa_core.loading.measure.transfers import (
    card_round_trip,
    disk_errors,
    disk_read_latency,
    disk_read_rate,
    disk_write_rate,
    from_card_rate,
    memory_copy_rate,
    open_reads,
    to_card_rate,
)
from medusa_core.loading.memory.budget import Budget
from medusa_core.loading.memory.placement import OffloadRoom, piece_bytes
from medusa_core.loading.policy.machine_rates import MachineRates, RateCurve
from medusa_core.loading.policy.request import PolicyRequest
from medusa_core.runtime.offload.layer_file import PIECE_BYTES
from medusa_core.system import cuda
from medusa_core.system.files.measurement_files import MeasurementFiles
from medusa_core.system.files.own_folder import make_own_folder
from medusa_core.system.garbage import trim_heap

_RESERVED_BYTES = 1 << 30  # of a disk, for everything but layers
_VISIT_S = 1e-4  # Python between two computations
OnMeasure = Callable[[str], None]
# Kinds of measurements: a layer and attention, the disk, the link to a card, copies in memory, and
# how much computing and reading slow each other down.
MEASURED = MODEL, DISK, CARD, MEMORY, BESIDE = ("model", "disk", "card", "memory", "beside")


class DiskRates(NamedTuple):
    """Rates of a disk past the page cache.

    Attributes:
        read: Sequential reads. [bytes/s]
        write: Writes that reach the disk. [bytes/s]
        each: Latency of a small read. [s]
    """

    read: float = math.inf
    write: float = math.inf
    each: float = 0.0


class LinkRates(NamedTuple):
    """Rates of copies between pinned memory and a card.

    Attributes:
        to_device: Copies to the card. [bytes/s]
        from_device: Copies back. [bytes/s]
        row_copies: Time of copying a row of activations from the card and back. [s]
    """

    to_device: float = math.inf
    from_device: float = math.inf
    row_copies: float = 0.0


class CopyRate(NamedTuple):
    """Rate of copies in memory by one core. [bytes/s]"""

    copied: float


_Rates = TypeVar("_Rates", ModelRates, DiskRates, LinkRates, CopyRate, Paces)


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

    def disk(self, folder: Path, piece: int) -> DiskRates:
        """Return rates of the disk of a folder, with reads of `piece` bytes.

        Raises:
            TierError: The folder can't be written or read.
        """

        def measure() -> DiskRates:
            """Measure reads, writes and the latency of small reads."""
            read, written = disk_read_rate(folder, piece), disk_write_rate(folder)
            return DiskRates(read, written, disk_read_latency(folder))

        facts = _disk_facts(folder, piece)
        return self._measured_once(DiskRates, facts, f"measuring the disk of {folder}", measure)

    def card(self, device: torch.device) -> LinkRates:
        """Return rates of the link to a card."""
        return self._measured_once(
            LinkRates,
            (CARD, cuda.name(device)),
            "measuring the link to the card",
            lambda: LinkRates(
                to_card_rate(device), from_card_rate(device), card_round_trip(device)
            ),
        )

    def memory(self) -> CopyRate:
        """Return the rate of copies in memory."""
        return self._measured_once(CopyRate, (MEMORY,), "", lambda: CopyRate(memory_copy_rate()))

    def model(self, request: PolicyRequest) -> ModelRates:
        """Return the times of a layer, and rates of attention."""
        kinds = (request.config, request.formats, request.precision)
        return self._measured_once(
            ModelRates,
            _model_facts(request),
            "measuring a layer of the model",
            lambda: model_rates(*kinds, request.mean_tokens, request.num_threads),
        )

    def beside(self, request: PolicyRequest, folder: Path, piece: int) -> Paces:
        """Return the paces of computing a layer and reading a disk at the same time.

        Raises:
            TierError: The folder can't be written or read.
        """

        def measure() -> Paces:
            """Compute a layer while the disk is read."""
            kinds = (request.config, request.formats, request.precision, request.num_threads)
            with disk_errors(folder), open_reads(folder, piece) as read:
                return paces_of(*kinds, read)

        facts = (BESIDE, _model_facts(request), _disk_facts(folder, piece))
        return self._measured_once(
            Paces, facts, "measuring a layer and the disk at the same time", measure
        )

    def _measured_once(
        self,
        kind: type[_Rates],
        facts: tuple[object, ...],
        what: str,
        measure: Callable[[], _Rates],
    ) -> _Rates:
        """Return a kept measurement, or measure and keep it.

        Args:
            kind: Record of the measurement.
            facts: One of `MEASURED`, and everything that the measurement depends on.
            what: Name of the measurement, for people; empty if it takes no time.
            measure: Measures it.
        """
        key = hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
        found = None
        if facts[0] not in self.remeasure:
            found = self.files.load(key, "rates", lambda raw: _read(kind, raw))
        if found is None:
            if what:
                self.on_measure(what)
            found = measure()
            trim_heap()  # a model that is loaded next needs that memory
            self.files.save(key, "rates", found._asdict())
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
    model, copied = rates.model(request), rates.memory().copied
    disk, paces, link = DiskRates(), Paces(1.0, 1.0), LinkRates()
    if folder is not None:
        disk, paces = rates.disk(folder, piece), rates.beside(request, folder, piece)
    if device.type == "cuda":
        link = rates.card(device)
    return MachineRates(
        device_bytes=budget.total_bytes - budget.other_bytes - budget.runtime_bytes,
        memory_bytes=room.memory_bytes,
        disk_bytes=max(0, free),
        to_device=link.to_device,
        from_device=link.from_device,
        from_disk=disk.read,
        read_s=disk.each,
        to_disk=disk.write,
        copied=copied,
        num_cores=request.num_threads,
        cache_on_device=model.cache,
        cache_of_prompts=model.prompts,
        cache_in_memory=model.host,
        visit_s=_VISIT_S,
        layer_s=model.layer_s,
        head_s=model.head_s,
        computing_beside=paces.computing,
        reading_beside=paces.reading,
    )


def _model_facts(request: PolicyRequest) -> tuple[object, ...]:
    """Everything that the rates of a model depend on, as a key."""
    config, formats, device = request.config, request.formats, request.precision.device
    where = cuda.name(device) if device.type == "cuda" else f"{os.cpu_count()} cores"
    sizes = (config.hidden_size, config.intermediate_size, config.vocab_size, config.row_sizes)
    heads = (config.num_heads, config.num_kv_heads, config.head_dim, request.mean_tokens)
    mixers = (config.model_type, None if config.moe is None else config.moe.routing)
    facts = (formats.cache_format, formats.attended, torch.__version__, request.num_threads)
    return MODEL, sizes, heads, mixers, sorted(formats.names.items()), facts, where


def _disk_facts(folder: Path, piece: int) -> tuple[object, ...]:
    """Everything that the rates of a disk depend on, as a key."""
    return DISK, str(folder.absolute()), piece


def _read(kind: type[_Rates], raw: Mapping[str, Any]) -> _Rates:
    """Read a kept measurement.

    Raises:
        KeyError: A rate is missing.
        TypeError: A rate isn't a number.
        ValueError: Likewise, or it is negative or not finite.
    """
    values: dict[str, Any] = {
        name: _curve(raw[name]) if name.endswith("_s") else float(raw[name])
        for name in kind._fields
    }
    numbers = [value for value in values.values() if isinstance(value, float)]
    if not all(0 <= rate < math.inf for rate in numbers):
        raise ValueError("a rate is negative or not finite")
    return kind(**values)


def _free_bytes(folder: Path) -> int:
    """Free bytes of a folder's disk; the folder is created."""
    with disk_errors(folder):
        make_own_folder(folder)
        return shutil.disk_usage(folder).free


def _curve(raw: Sequence[Sequence[float]]) -> RateCurve:
    """Parse pairs of rows and seconds."""
    return tuple((int(rows), float(seconds)) for rows, seconds in raw)
