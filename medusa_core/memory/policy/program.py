"""The linear program: shares of weights, cache and states on three tiers, for one block.

Variables are the nine shares, and the seconds that a layer takes in a prefill and in a step.

Source: Sheng et al., "FlexGen" (2023), section 4.3, equation 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from medusa_core.memory.policy.cost import (
    SHARES,
    TIERS,
    WHAT,
    Costs,
    Sum,
    TierShare,
)

_NUM = len(SHARES)
_PREFILL, _STEP = _NUM, _NUM + 1
_TINY = 1e-9
_NEARER = 1e-6  # of the time, which is paid for what lies farther without need
_ROOM = {
    "device": "room on the device",
    "memory": "room in memory",
    "disk": "room on the disk",
}


class Placed(NamedTuple):
    """The best shares, and the tiers whose room binds."""

    shares: Mapping[TierShare, float]
    binds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """What a placement may do.

    Attributes:
        streams: Layers may lie elsewhere than on the device.
        stays: Cache and states stay on the device.
        overlaps: Loading and computing run at the same time; else one after the other.
    """

    streams: bool = True
    stays: bool = False
    overlaps: bool = True

    def most(self, what: str, tier: str) -> float:
        """The largest share of something on a tier."""
        is_free = self.streams if what == "weights" else not self.stays
        return 1.0 if tier == "device" or is_free else 0.0


def place(costs: Costs, room: Mapping[str, int], num_steps: int, rules: Rules) -> Placed | None:
    """The shares for which a block takes the least time; None where nothing has room.

    Args:
        costs: Of the block.
        room: Bytes of each tier.
        num_steps: Decoding steps behind a prefill.
        rules: What a placement may do.
    """
    from scipy.optimize import linprog  # half a second that no other command pays

    dislike = _dislike(costs, num_steps)
    timed = [
        (place, total)
        for place, streams in ((_PREFILL, costs.prefill), (_STEP, costs.step))
        for total in _least_times(streams, rules.overlaps)
    ]
    limits = [_row(total, place) for place, total in timed] + _room_rows(costs)
    most = [-total.constant for _, total in timed] + _free_room(costs, room)
    found = linprog(
        [*dislike, 1.0, float(num_steps)],
        A_ub=np.array(limits),
        b_ub=np.array(most),
        A_eq=_wholes(),
        b_eq=np.ones(len(WHAT)),
        bounds=[*((0.0, rules.most(*share)) for share in SHARES), (0, None), (0, None)],
        method="highs",
    )
    if not found.success:
        return None
    prices = found.ineqlin.marginals[len(timed) :]
    return Placed(_shares(found.x), _binding(prices, room, 10 * max(dislike)))


def _dislike(costs: Costs, num_steps: int) -> list[float]:
    """Of placements that take the same time, that which is nearer to the device."""
    least_s = costs.prefill["computing"].constant + num_steps * costs.step["computing"].constant
    return [_NEARER * least_s * TIERS.index(tier) for _, tier in SHARES]


def _least_times(streams: Mapping[str, Sum], overlaps: bool) -> Sequence[Sum]:
    """What a layer takes at least: as long as each stream; or as all of them together."""
    if overlaps:
        return list(streams.values())
    together: dict[TierShare, float] = {}
    for stream in streams.values():
        for share, each in stream.by_share.items():
            together[share] = together.get(share, 0.0) + each
    return [Sum(sum(stream.constant for stream in streams.values()), together)]


def _row(total: Sum, time_place: int | None = None) -> NDArray[np.float64]:
    row = np.zeros(_NUM + 2)
    for share, each in total.by_share.items():
        row[SHARES.index(share)] = each
    if time_place is not None:
        row[time_place] = -1.0
    return row


def _scale(total: Sum) -> float:
    """Bytes by which a tier's row is divided, for numbers of like size."""
    return max(1.0, *total.by_share.values())


def _room_rows(costs: Costs) -> list[NDArray[np.float64]]:
    return [_row(costs.bytes[tier]) / _scale(costs.bytes[tier]) for tier in TIERS]


def _free_room(costs: Costs, room: Mapping[str, int]) -> list[float]:
    held = costs.bytes
    return [(room[tier] - held[tier].constant) / _scale(held[tier]) for tier in TIERS]


def _wholes() -> NDArray[np.float64]:
    """The shares of each thing add up to one."""
    whole = np.zeros((len(WHAT), _NUM + 2))
    for index in range(len(WHAT)):
        whole[index, len(TIERS) * index : len(TIERS) * (index + 1)] = 1.0
    return whole


def _shares(values: NDArray[np.float64]) -> dict[TierShare, float]:
    shares = zip(SHARES, values[:_NUM].tolist(), strict=True)
    return {share: 0.0 if value < _TINY else value for share, value in shares}


def _binding(prices: NDArray[np.float64], room: Mapping[str, int], least: float) -> tuple[str, ...]:
    """Tiers of which more room would save time."""
    tiers = zip(TIERS, prices.tolist(), strict=True)
    return tuple(_ROOM[tier] for tier, price in tiers if room[tier] and -price > least)
