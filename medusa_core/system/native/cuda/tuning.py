"""Chooses how kernels are launched by their times on this card, and keeps the choice.

The order of summation depends on how a kernel is launched. A choice therefore holds for all numbers
of rows, so that drafts change no token, and it is stored, so that the next start computes the same
bits; one that can't be stored isn't used.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch

from medusa_core.i18n import tr
from medusa_core.system import cuda
from medusa_core.system.files.measurement_files import MeasurementFiles
from medusa_core.system.native.cuda.build import RECORD
from medusa_core.system.resources import calibrations_dir, native_dir

log = logging.getLogger(__name__)

Launch = tuple[int, ...]  # numbers that a kernel is launched with, such as warps of a block

_LIMIT_S = 0.8  # of all measurements when a model is loaded
_REPEATS = 7
_LEAST_GAIN = (
    0.03  # times vary by about 1 %; other launches than the default must be faster by this
)
_WHAT = "launches"  # part of the file's name


class Choice(NamedTuple):
    """How kernels of one shape are launched.

    Attributes:
        launch: Chosen launch.
        default_s: Median seconds of the default; 0 if it wasn't measured in time.
        chosen_s: Median seconds of the chosen one.
    """

    launch: Launch
    default_s: float
    chosen_s: float

    @property
    def gain(self) -> float:
        """By which part the chosen launch is faster than the default."""
        return 1 - self.chosen_s / self.default_s if self.default_s else 0.0


@dataclass(frozen=True, slots=True)
class Candidates:
    """Ways to launch the kernels of one shape.

    Attributes:
        shape: What is launched; a key, and for people.
        launches: Possible launches; the first is the default.
        work: Returns what is measured for a launch: all kernels at all sizes that matter.
        is_correct: Whether a launch computes correct results on this card.
    """

    shape: str
    launches: Sequence[Launch]
    work: Callable[[Launch], Callable[[], None]]
    is_correct: Callable[[Launch], bool] = lambda _: True


def tune(candidates: Sequence[Candidates], device: torch.device) -> dict[str, Launch]:
    """Choose the launches of all shapes, measuring those that no earlier start has chosen.

    Args:
        candidates: Ways to launch each shape.
        device: The card.

    Returns:
        Launches that aren't the default, by shape.
    """
    stored, began = stored_choices(device), time.perf_counter()
    found = {}
    for each in candidates:
        if each.shape not in stored:
            # The default is stored, too, where time or memory didn't suffice: bits never change.
            ends = began + _LIMIT_S
            found[each.shape] = _choose(each, device, ends)
    if found:
        _store(device, found)
        stored = stored_choices(device)
        log.info("chose launches in %.2f s", time.perf_counter() - began)
        if lost := found.keys() - stored.keys():
            log.warning("launches that can't be kept aren't used: %s", ", ".join(sorted(lost)))
    used = {}
    for each in candidates:
        choice = stored.get(each.shape)
        if choice is None or choice.launch == each.launches[0]:
            continue
        if choice.launch in each.launches and each.is_correct(choice.launch):
            used[each.shape] = choice.launch
            log.info("%s: launch %s, %.0f %% faster", each.shape, choice.launch, 100 * choice.gain)
    return used


def tuning_note(device: torch.device) -> str:
    """Return which launches were chosen on a card so far, for people; empty if none were."""
    choices = {
        shape: choice for shape, choice in stored_choices(device).items() if choice.default_s
    }
    faster = {shape: choice for shape, choice in choices.items() if choice.gain > 0}
    if not choices:
        return ""
    if not faster:
        return tr("The default launches are the fastest for all measured shapes.")
    best = max(faster, key=lambda shape: faster[shape].gain)
    return tr(
        "Tuned launches are faster for {0} of {1} measured shapes, most for {2}: by {3}.",
        len(faster),
        len(choices),
        best,
        f"{faster[best].gain:.0%}",
    )


def _choose(candidates: Candidates, device: torch.device, ends: float) -> Choice:
    """Measure the launches of a shape in turns; the default if there is no time left."""
    default, *_ = launches = candidates.launches
    if time.perf_counter() >= ends:
        return Choice(default, 0.0, 0.0)
    try:
        works = [candidates.work(launch) for launch in launches]
        medians = cuda.median_seconds(works, device, _REPEATS, ends)
    except RuntimeError as error:  # too little memory, or a graph that the driver can't record
        log.warning("launches of %s can't be measured: %s", candidates.shape, error)
        return Choice(default, 0.0, 0.0)
    best = min(range(len(launches)), key=medians.__getitem__)
    if medians[best] > medians[0] * (1 - _LEAST_GAIN):
        best = 0
    return Choice(launches[best], medians[0], medians[best])


def stored_choices(device: torch.device) -> dict[str, Choice]:
    """Return the choices of earlier starts on this card, with this driver and these kernels."""
    return _files().load(_key(device), _WHAT, _read) or {}


def _store(device: torch.device, found: dict[str, Choice]) -> None:
    """Keep choices beside those that another process has stored meanwhile."""
    choices = found | stored_choices(device)
    shapes = {shape: [list(each.launch), *each[1:]] for shape, each in choices.items()}
    facts = {"card": cuda.name(device), "driver": cuda.driver_version()}
    _files().save(_key(device), _WHAT, {**facts, "kernels": _kernels_hash(), "shapes": shapes})


def _read(raw: Any) -> dict[str, Choice]:
    """Convert a file's content; raises what `MeasurementFiles.load` names."""
    choices = {}
    for shape, (launch, default_s, chosen_s) in raw["shapes"].items():
        if not all(isinstance(number, int) for number in launch):
            raise TypeError(f"a launch of {launch}")
        times = float(default_s), float(chosen_s)
        if not all(math.isfinite(seconds) and seconds >= 0 for seconds in times):
            raise ValueError(f"times of {times}")
        choices[str(shape)] = Choice(tuple(launch), *times)
    return choices


def _files() -> MeasurementFiles:
    return MeasurementFiles(calibrations_dir())


def _key(device: torch.device) -> str:
    """Identify card, driver and kernels."""
    facts = (cuda.name(device), cuda.driver_version(), _kernels_hash())
    return "card-" + hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


@cache
def _kernels_hash() -> str:
    """Hash of the kernels' sources and binaries."""
    return hashlib.sha256((native_dir() / "cuda" / RECORD).read_bytes()).hexdigest()[:16]
