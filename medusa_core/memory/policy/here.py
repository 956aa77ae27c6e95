"""A model on this machine as a policy sees both; rates are measured once and kept."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from medusa_core.memory.bandwidth import (
    card_bytes_per_s,
    disk_bytes_per_s,
    disk_read_s,
    measuring,
    reads_of,
)
from medusa_core.memory.budget import Budget
from medusa_core.memory.heap import trim_heap
from medusa_core.memory.placement import layer_bytes, piece_bytes
from medusa_core.memory.plan import (
    kv_bytes,
    scratch_bytes,
    session_states_bytes,
    states_bytes,
    weights_bytes,
)
from medusa_core.memory.policy.machine import (
    MachineRates,
    RateCurve,
)
from medusa_core.memory.policy.measure import (
    Paces,
    copied_bytes_per_s,
    from_card_bytes_per_s,
    model_rates,
    paces_beside,
    written_bytes_per_s,
)
from medusa_core.memory.policy.work import BatchWork
from medusa_core.memory.tiers import Below, rows_at_once
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.runtime.kv.size import ROUND_ROWS, whole_rows
from medusa_core.runtime.offload.layer_file import PIECE_BYTES
from medusa_core.system import compute_threads, cuda
from medusa_core.system.files.measurement_files import MeasurementFiles
from medusa_core.system.files.own_folder import make_own_folder

_LEFT_BYTES = 1 << 30  # that a disk keeps free
_VISIT_S = 1e-4  # of this program between two computations, on usual processors
OnMeasure = Callable[[str], None]
# What is measured: layers and attention, the disk, the way to a card, copies in memory, and what a
# layer and the disk at the same time take from each other.
MEASURED = MODEL, DISK, CARD, MEMORY, BESIDE = ("model", "disk", "card", "memory", "beside")
_NUMBERS = {
    MODEL: ("cache", "prompts", "below"),
    DISK: ("read", "write", "each"),
    CARD: ("to", "from"),
    MEMORY: ("copied",),
    BESIDE: ("computing", "reading"),
}
_CURVES = {MODEL: ("layer_s", "head_s")}


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """What a policy is wanted for.

    Attributes:
        config: Sizes of the model.
        formats: Format of every part.
        precision: What it computes in, and where.
        num_prompts: Prompts.
        prompt_tokens: Tokens of each.
        new_tokens: Tokens of each answer.
        lengths: Of every prompt and its answer; empty where all are as long.
        num_threads: That compute on a processor; 0 for as many as are usual.
    """

    config: ModelConfig
    formats: PartFormats
    precision: Precision
    num_prompts: int
    prompt_tokens: int
    new_tokens: int
    lengths: tuple[int, ...] = ()
    num_threads: int = 0

    @property
    def threads(self) -> int:
        """Threads that compute."""
        return self.num_threads or compute_threads.count()

    @property
    def mean_tokens(self) -> int:
        """Attention is measured behind as many tokens as there are on average, in steps of 64."""
        return -(-(self.prompt_tokens + self.new_tokens // 2) // 64) * 64

    @property
    def piece_bytes(self) -> int:
        """Of a disk, that are read at once."""
        return min(PIECE_BYTES, piece_bytes(self.config, self.formats))


@dataclass(frozen=True, slots=True)
class Rates:
    """What is measured of this machine.

    Attributes:
        kept: Where it is kept.
        on_measure: Called with what is being measured.
        anew: Of what nothing that was kept is believed: some of `MEASURED`.
    """

    kept: MeasurementFiles
    on_measure: OnMeasure
    anew: Collection[str] = ()

    def known(
        self, kind: str, what: Sequence[object], measure: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """What was kept of a measurement, else measured and kept.

        Args:
            kind: One of `MEASURED`.
            what: All that it depends on.
            measure: Takes it.
        """
        key = _key_of(what)
        found = None
        if kind not in self.anew:
            found = self.kept.load(key, "rates", lambda raw: _checked_rates(kind, raw))
        if found is None:
            found = measure()
            trim_heap()  # what it took isn't a model's
            self.kept.save(key, "rates", found)
        return found


def _key_of(what: Sequence[object]) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()[:32]


def _checked_rates(kind: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """What was kept, if it is what is kept now.

    Raises:
        KeyError: A rate is missing.
        TypeError: One is no number.
        ValueError: Likewise, or none that can be.
    """
    found: dict[str, Any] = {name: float(raw[name]) for name in _NUMBERS[kind]}
    if not all(0 <= rate < math.inf for rate in found.values()):
        raise ValueError("a rate is none")
    curves = {name: _curve(raw[name]) for name in _CURVES.get(kind, ())}
    return found | {name: [list(point) for point in curve] for name, curve in curves.items()}


def work_of(request: PolicyRequest) -> BatchWork:
    """A model and its prompts in bytes and rows."""
    config, formats = request.config, request.formats
    sizes, length = layer_bytes(config, formats), request.prompt_tokens + request.new_tokens

    lengths = sorted(request.lengths or (length,), reverse=True)
    longest = max(length, lengths[0])

    def scratch(rows: int, scored: int) -> int:
        return scratch_bytes(config, formats, longest, rows, scored, 0)

    row, scored_row = scratch(2, 0) - scratch(1, 0), scratch(1, 1) - scratch(1, 0)
    return BatchWork(
        num_layers=config.num_layers,
        layer_bytes=max(sizes),
        piece_bytes=piece_bytes(config, formats),
        fixed_bytes=weights_bytes(config, formats) - sum(sizes),
        row_bytes=_row_bytes(config, formats, length) // config.num_layers,
        slots=tuple(-(-(each + 2) // ROUND_ROWS) * ROUND_ROWS for each in lengths),
        most_slots=whole_rows(longest),
        state_bytes=4 * config.hidden_size,
        scratch_bytes=scratch(1, 0) - row,
        scratch_row_bytes=row,
        scored_row_bytes=scored_row,
        num_prompts=request.num_prompts,
        prompt_tokens=request.prompt_tokens,
        new_tokens=request.new_tokens,
        rows_at_once=rows_at_once(formats.device),
    )


def _row_bytes(config: ModelConfig, formats: PartFormats, length: int) -> int:
    """Bytes that a token holds; the states of its sequence are spread over all tokens."""
    states = states_bytes(config, formats, length)
    of_rows = (kv_bytes(config, formats, length) - states) // whole_rows(length)
    return of_rows + session_states_bytes(config, formats) // length


def machine_for(request: PolicyRequest, budget: Budget, below: Below, rates: Rates) -> MachineRates:
    """This machine with the rates of a model.

    Args:
        request: The model, and what it is wanted for.
        budget: What may be taken of the device.
        below: What lies below it.
        rates: What was measured before.

    Raises:
        TierError: The disk can't be written.
    """
    device, folder = request.precision.device, below.disk
    keys = _Keys.of(request, below)
    # A folder that can't be used is told before anything is measured.
    free = 0 if folder is None else _free_bytes(folder) - _LEFT_BYTES
    model = rates.known(MODEL, keys.model, lambda: _of_model(request, rates))
    memory = rates.known(MEMORY, keys.memory, lambda: {"copied": copied_bytes_per_s()})
    disk: dict[str, Any] = {"read": 1.0, "write": 1.0, "each": 0.0}
    beside: dict[str, Any] = Paces(1.0, 1.0)._asdict()
    if folder is not None:
        disk = rates.known(DISK, keys.disk, lambda: _of_disk(folder, request, rates))
        beside = rates.known(BESIDE, keys.beside, lambda: _of_both(folder, request, rates))
    link: dict[str, Any] = {"to": math.inf, "from": math.inf}
    if device.type == "cuda":
        link = rates.known(CARD, keys.card, lambda: _of_card(device, rates))
    return MachineRates(
        device_bytes=budget.total_bytes - budget.other_bytes - budget.runtime_bytes,
        memory_bytes=below.memory_bytes,
        disk_bytes=max(0, free),
        to_device=link["to"],
        from_device=link["from"],
        from_disk=disk["read"],
        read_s=disk["each"],
        to_disk=disk["write"],
        copied=memory["copied"],
        num_cores=request.threads,
        cache_on_device=model["cache"],
        cache_of_prompts=model["prompts"],
        cache_in_memory=model["below"],
        visit_s=_VISIT_S,
        layer_s=_curve(model["layer_s"]),
        head_s=_curve(model["head_s"]),
        computing_beside=beside["computing"],
        reading_beside=beside["reading"],
    )


class _Keys(NamedTuple):
    """By what measurements are kept: everything that they depend on."""

    model: tuple[object, ...]
    disk: tuple[object, ...]
    card: tuple[object, ...]
    memory: tuple[object, ...]
    beside: tuple[object, ...]

    @classmethod
    def of(cls, request: PolicyRequest, below: Below) -> _Keys:
        config, formats, device = request.config, request.formats, request.precision.device
        is_card = device.type == "cuda"
        where = cuda.name(device) if is_card else f"{os.cpu_count()} cores"
        sizes = (config.hidden_size, config.intermediate_size, config.vocab_size, config.row_sizes)
        heads = (config.num_heads, config.num_kv_heads, config.head_dim, request.mean_tokens)
        facts = (formats.cache_format, formats.attended, torch.__version__, request.threads)
        folder = "" if below.disk is None else str(below.disk.absolute())
        model = (MODEL, sizes, heads, sorted(formats.names.items()), facts, where)
        disk = (DISK, folder, request.piece_bytes)
        return cls(model, disk, (CARD, where), (MEMORY,), (BESIDE, model, disk))


def _of_model(request: PolicyRequest, rates: Rates) -> dict[str, Any]:
    config, precision = request.config, request.precision
    rates.on_measure("measuring a layer of the model")
    return model_rates(
        config, request.formats, precision, request.mean_tokens, request.threads
    )._asdict()


def _of_disk(folder: Path, request: PolicyRequest, rates: Rates) -> dict[str, Any]:
    rates.on_measure(f"measuring the disk of {folder}")
    read = disk_bytes_per_s(folder, None, request.piece_bytes)
    written = written_bytes_per_s(folder)
    return {"read": read, "write": written, "each": disk_read_s(folder)}


def _of_both(folder: Path, request: PolicyRequest, rates: Rates) -> dict[str, Any]:
    rates.on_measure("measuring a layer and the disk at the same time")
    config, formats, precision = request.config, request.formats, request.precision
    with measuring(folder), reads_of(folder, request.piece_bytes) as read:
        return paces_beside(config, formats, precision, request.threads, read)._asdict()


def _of_card(device: torch.device, rates: Rates) -> dict[str, Any]:
    rates.on_measure("measuring the way to the card")
    there, back = card_bytes_per_s(device, None), from_card_bytes_per_s(device)
    return {"to": there, "from": back}


def _free_bytes(folder: Path) -> int:
    """Of the disk of a folder, which is made."""
    with measuring(folder):
        make_own_folder(folder)
        return shutil.disk_usage(folder).free


def _curve(raw: Sequence[Sequence[float]]) -> RateCurve:
    return tuple((int(rows), float(seconds)) for rows, seconds in raw)
