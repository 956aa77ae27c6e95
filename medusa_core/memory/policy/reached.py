"""What was expected of each part of a batch, and what came of it."""

from __future__ import annotations

from medusa_core.memory.policy.found import BatchForecast
from medusa_core.messages import PARTS, PartRate
from medusa_core.runtime.runner.traffic import Traffic

WEIGHTS, ROWS_READ, ROWS_WRITTEN, COMPUTED, WAITED = PARTS
UNITS = {
    WEIGHTS: "GB/s",
    ROWS_READ: "GB/s",
    ROWS_WRITTEN: "GB/s",
    COMPUTED: "ms a layer",
    WAITED: "s a pass",
}
_FACTORS = {"GB/s": 1e-9, "ms a layer": 1e3, "s a pass": 1.0}
# Whose seconds count, and what streams of a search are meant.
_BINDING = {
    WEIGHTS: ("reading from disk", "link to the device"),
    ROWS_READ: ("reading from disk", "bringing cached rows", "link to the device"),
    ROWS_WRITTEN: ("writing to disk", "link from the device"),
    COMPUTED: ("computing",),
    WAITED: (),
}


def shown(name: str, rate: float) -> float:
    """A rate of bytes a second, or seconds, in the unit of its part."""
    return rate * _FACTORS[UNITS[name]]


def part_rates(forecast: BatchForecast, traffic: Traffic) -> tuple[PartRate, ...]:
    """What was expected of each part, and what came of it; of parts that there are.

    Args:
        forecast: What was expected.
        traffic: What passes have moved and computed.
    """
    reached = _reached(traffic)
    names = [name for name in PARTS if name in forecast.rates or name in reached]
    return tuple(
        PartRate(
            name,
            _maybe_shown(name, forecast.rates.get(name)),
            _maybe_shown(name, reached.get(name)),
            UNITS[name],
            binds=any(stream in forecast.binds for stream in _BINDING[name]),
        )
        for name in names
    )


def _reached(traffic: Traffic) -> dict[str, float]:
    moved = {
        WEIGHTS: (traffic.weights_bytes, traffic.weights_s),
        ROWS_READ: (traffic.rows_read_bytes, traffic.rows_read_s),
        ROWS_WRITTEN: (traffic.rows_written_bytes, traffic.rows_written_s),
    }
    rates = {name: size / took for name, (size, took) in moved.items() if size and took > 0}
    if traffic.num_layers:
        rates[COMPUTED] = traffic.computed_s / traffic.num_layers
    if traffic.num_passes:
        rates[WAITED] = traffic.waited_s / traffic.num_passes
    return rates


def _maybe_shown(name: str, rate: float | None) -> float | None:
    return None if rate is None else shown(name, rate)
