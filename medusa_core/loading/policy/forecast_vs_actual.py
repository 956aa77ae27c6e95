"""Compare the forecast rates of a batch with the measured ones, part by part."""

from __future__ import annotations

from medusa_core.loading.policy.cost import COMPUTING, READING
from medusa_core.loading.policy.result import BatchForecast
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
_SCALES = {"GB/s": 1e-9, "ms a layer": 1e3, "s a pass": 1.0}
# Streams of the cost model that move or compute each part.
_STREAMS = {
    WEIGHTS: (READING, "link to the device"),
    ROWS_READ: (READING, "bringing cached rows", "link to the device"),
    ROWS_WRITTEN: ("writing to disk", "link from the device"),
    COMPUTED: (COMPUTING,),
    WAITED: (),
}


def in_unit(name: str, rate: float) -> float:
    """Convert bytes per second, or seconds, to the unit of a part."""
    return rate * _SCALES[UNITS[name]]


def part_rates(forecast: BatchForecast, traffic: Traffic) -> tuple[PartRate, ...]:
    """Return the forecast and measured rate of each part that occurs.

    Args:
        forecast: The forecast.
        traffic: Bytes and seconds of all passes.
    """
    actual = _actual(traffic)

    def shown(name: str, rate: float | None) -> float | None:
        """A rate in the unit of its part; None stays None."""
        return None if rate is None else in_unit(name, rate)

    return tuple(
        PartRate(
            name,
            shown(name, forecast.rates.get(name)),
            shown(name, actual.get(name)),
            UNITS[name],
            binds=any(stream in forecast.binds for stream in _STREAMS[name]),
        )
        for name in PARTS
        if name in forecast.rates or name in actual
    )


def _actual(traffic: Traffic) -> dict[str, float]:
    """Measured rate of each part that occurred, in bytes per second or seconds."""
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
