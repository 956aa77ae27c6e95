"""Divides a target's layers among machines, and again when one is lost, slow or new."""

from __future__ import annotations

import atexit
import logging
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from medusa_core.errors import ClusterError, MedusaError, StageBusyError, StageLostError
from medusa_core.i18n import tr
from medusa_core.messages import Move, MoveReason
from medusa_core.runtime.cluster.connection import (
    Cluster,
    StageConnection,
)
from medusa_core.runtime.cluster.fingerprint import (
    check_formats,
    check_offer,
)
from medusa_core.runtime.cluster.layer_range import (
    NO_LAYERS,
    LayerRange,
    shares_of,
)
from medusa_core.runtime.cluster.protocol import (
    ComputeSettings,
    StageLayers,
    StageOffer,
    StageSpeed,
)


class Power(NamedTuple):
    """Speed and capacity of a machine.

    Attributes:
        layer_s: Seconds of a layer in a step.
        most_layers: Layers that fit into its memory.
    """

    layer_s: float
    most_layers: int


def divide(num_layers: int, powers: Sequence[Power]) -> list[int] | None:
    """Divide layers among machines.

    Each layer goes to the machine that would finish it first, which is optimal for equal jobs.

    Args:
        num_layers: Number of layers.
        powers: Speed and capacity of each machine.

    Returns:
        Number of layers of each machine; None if they don't fit into all memory.
    """
    counts = [0] * len(powers)
    for _ in range(num_layers):
        free = [i for i, power in enumerate(powers) if counts[i] < power.most_layers]
        if not free:
            return None
        counts[min(free, key=lambda i: (counts[i] + 1) * powers[i].layer_s)] += 1
    return counts


def slowest_s(counts: Sequence[int], powers: Sequence[Power]) -> float:
    """Return the seconds of the slowest machine in a step."""
    return max(count * power.layer_s for count, power in zip(counts, powers, strict=True))


log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

_MAX_RELATIVE_TIME = 0.7  # of a new division: loading layers takes longer than many passes
_REVIEW_S = 5.0  # between two checks for slow or new machines
_RECOVERY_TIMEOUT_S = 60.0  # in which a lost machine may come back
_BUSY_TIMEOUT_S = 30.0  # for a machine that serves another client
_POLL_S = 0.2
_NUM_PASSES = 32  # by which a machine's speed is judged


@dataclass(slots=True, eq=False)
class Member:
    """A stage that fits the client's model.

    Attributes:
        connection: Connection to the stage.
        offer: Its offer.
        rate: Its measured speed.
        share: Its layers; none while it is a spare.
        held: The layers that it has loaded.
        seconds: Times of its latest passes.
    """

    connection: StageConnection
    offer: StageOffer
    rate: StageSpeed
    share: LayerRange = NO_LAYERS
    held: StageLayers | None = None
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_NUM_PASSES))

    @property
    def name(self) -> str:
        """Name of the stage in its cluster."""
        return self.offer.name

    @property
    def power(self) -> Power:
        """Speed and capacity as measured before it had layers."""
        return Power(self.rate.layer_s, self.rate.most_layers)

    @property
    def layer_s(self) -> float:
        """Mean seconds of one of its layers in its latest passes."""
        return sum(self.seconds) / len(self.seconds) / self.share.num_layers

    @property
    def is_known(self) -> bool:
        """Whether it has run enough passes to be judged by them."""
        return self.share.num_layers > 0 and len(self.seconds) == _NUM_PASSES


class Pipeline:
    """The machines that compute a target's layers.

    Attributes:
        epoch: Counts divisions; caches of an earlier one must be computed again.
        moves: Layers that were moved since the last `take_moves`, for people.
    """

    def __init__(
        self,
        cluster: Cluster,
        ours: StageOffer,
        wanted: ComputeSettings,
        formats: dict[str, str | bool],
        num_layers: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let all machines of a cluster join, and divide the layers.

        Args:
            cluster: The machines.
            ours: Offer of this machine.
            wanted: Settings for all stages.
            formats: Names of this machine's resolved weight formats.
            num_layers: Number of layers of the target.
            clock: Returns seconds; replaced by tests.

        Raises:
            ClusterError: No machine offers layers, one has another model, versions or kernels, or
                the layers don't fit.
        """
        self._cluster = cluster
        self._ours = ours
        self._wanted = wanted
        self._formats = formats
        self._num_layers = num_layers
        self._clock = clock
        self._members: list[Member] = []
        self._has_left = False
        atexit.register(self.leave)  # else machines would wait for a client that is gone
        self._refused: set[str] = set()
        self._reviewed_at = clock()
        self.epoch = 0
        self.moves: list[Move] = []
        try:
            self._begin()
        except BaseException:
            self.leave()
            raise

    def _begin(self) -> None:
        """Let all available machines join, and divide the layers."""
        connections = self._cluster.connections()
        if not connections:
            raise ClusterError(
                tr("Nobody offers layers at {0}.", self._cluster.name),
                "Start medusa serve-layers --model MODEL there first.",
            )
        self._members = _at_once(self._join_patiently, list(connections.values()))
        self._give(self._divided())

    @property
    def active(self) -> list[Member]:
        """Members that have layers, in layer order."""
        return [member for member in self._members if member.share.num_layers]

    @property
    def client(self) -> str:
        """Id of this client."""
        return self._wanted.client

    def take_moves(self) -> tuple[Move, ...]:
        """Return and clear the list of moves."""
        moves, self.moves = tuple(self.moves), []
        return moves

    def leave(self) -> None:
        """Release all machines; a second call does nothing."""
        if self._has_left:
            return
        self._has_left = True
        atexit.unregister(self.leave)
        try:
            for member in self.active:
                try:
                    member.connection.take(NO_LAYERS, self.client)
                except MedusaError as error:
                    log.info("%s is let go: %s", member.name, error.message)
        finally:
            self._cluster.close()

    def replace_lost(self, error: StageLostError) -> None:
        """Give the layers of a lost stage to other machines.

        Args:
            error: Names the stage.

        Raises:
            ClusterError: The other machines have too little memory.
        """
        started = self._clock()
        lost = next(member for member in self._members if member.name == error.data["stage"])
        log.info("%s (%s) doesn't answer any more", lost.name, lost.offer.place)
        self._members.remove(lost)
        while True:
            try:
                moved_to = self._reassign(lost.share)
                break
            except StageLostError as also:
                gone = also.data["stage"]
                self._members = [member for member in self._members if member.name != gone]
            except ClusterError:
                if self._clock() - started > _RECOVERY_TIMEOUT_S:
                    raise
                time.sleep(_POLL_S)
                self._let_new_join()
        self._report(Move(MoveReason.LOST, lost.offer.place, moved_to, lost.share.num_layers))

    def reconsider(self) -> None:
        """Divide again if that is clearly faster, as a machine is slow or has joined.

        Raises:
            StageLostError: A stage is lost meanwhile.
        """
        if self._clock() - self._reviewed_at < _REVIEW_S:
            return
        self._reviewed_at = self._clock()
        self._let_new_join()
        if not all(member.is_known for member in self.active):
            return
        powers = self._measured_powers()
        current_s = slowest_s([member.share.num_layers for member in self._members], powers)
        counts = divide(self._num_layers, powers)
        if counts is None or slowest_s(counts, powers) >= _MAX_RELATIVE_TIME * current_s:
            return
        before = {member.name: member.share.num_layers for member in self._members}
        slowest = max(self.active, key=lambda member: member.layer_s)
        self._give(counts)
        gains = {m: m.share.num_layers - before[m.name] for m in self.active}
        gainers = [member for member, gain in gains.items() if gain > 0]
        joined = [member for member in gainers if not before[member.name]]
        reason = MoveReason.JOINED if joined else MoveReason.SLOW
        places = tuple(member.offer.place for member in joined or gainers)
        count = sum(gains[member] for member in joined or gainers)
        self._report(Move(reason, slowest.offer.place, places, count))

    def _report(self, move: Move) -> None:
        """Log a move of layers, and keep it for `take_moves`."""
        log.info("%s", move.text)
        self.moves.append(move)

    def _measured_powers(self) -> list[Power]:
        """Return speeds by the latest passes; those of spares are scaled by the median change."""
        change = statistics.median(m.layer_s / m.rate.layer_s for m in self.active)
        return [
            member.power._replace(
                layer_s=member.layer_s if member.is_known else member.rate.layer_s * change
            )
            for member in self._members
        ]

    def _join_patiently(self, connection: StageConnection) -> Member:
        """Join a stage, and wait if it serves another client, which may have just ended."""
        started = self._clock()
        while True:
            try:
                return self._join(connection)
            except StageBusyError:
                if self._clock() - started > _BUSY_TIMEOUT_S:
                    raise
                time.sleep(_POLL_S)

    def _join(self, connection: StageConnection) -> Member:
        """Check a stage's model, versions and formats, and measure its speed."""
        offer = connection.offer()
        check_offer(offer, self._ours, self._wanted.library)
        rate = connection.prepare(self._wanted)
        check_formats(offer.name, rate, self._formats)
        log.info("%s at %s: %s", offer.name, offer.place, rate)
        return Member(connection, offer, rate)

    def _let_new_join(self) -> None:
        """Let new stages join, except for those that don't fit."""
        known = {member.name for member in self._members} | self._refused
        for name, connection in self._cluster.connections().items():
            if name in known:
                continue
            try:
                self._members.append(self._join(connection))
            except StageBusyError:
                log.info("%s serves another client", name)
            except MedusaError as error:
                log.warning("%s", error.message)
                self._refused.add(name)

    def _reassign(self, share: LayerRange) -> tuple[str, ...]:
        """Give layers to a spare, or divide all layers again; return the places that got some."""
        count = sum(member.share.num_layers for member in self._members) + share.num_layers
        able = [
            m
            for m in self._members
            if not m.share.num_layers and m.rate.most_layers >= share.num_layers
        ]
        if able and count == self._num_layers:  # else other stages were lost, too
            successor = min(able, key=lambda member: member.rate.layer_s)
            self._take([(successor, share)])
            return (successor.offer.place,)
        before = {member.name: member.share for member in self._members}
        self._give(self._divided())
        return tuple(m.offer.place for m in self.active if before[m.name] != m.share)

    def _divided(self) -> list[int]:
        """Divide the layers among all members.

        Raises:
            ClusterError: They have too little memory.
        """
        powers = [member.power for member in self._members]
        counts = divide(self._num_layers, powers)
        if counts is None:
            room = sum(power.most_layers for power in powers)
            raise ClusterError(
                tr("The machines have room for {0} of {1} layers.", room, self._num_layers),
                "Let another machine join, give them more with --memory-gib, or choose a smaller "
                "weight format.",
            )
        return counts

    def _give(self, counts: list[int]) -> None:
        """Assign numbers of layers to members; one that keeps its layers loads nothing."""
        pairs = zip(self._members, shares_of(counts), strict=True)
        self._take([(member, share) for member, share in pairs if member.share != share])

    def _take(self, pairs: Sequence[tuple[Member, LayerRange]]) -> None:
        """Let members load their new layers at the same time."""
        for member, _ in pairs:
            member.share = NO_LAYERS  # unknown until all of them have answered
        held = _at_once(lambda pair: pair[0].connection.take(pair[1], self.client), pairs)
        for (member, share), found in zip(pairs, held, strict=True):
            member.share, member.held = share, found
        for member in self._members:
            member.seconds.clear()
        self._members.sort(key=lambda member: (not member.share.num_layers, member.share))
        self.epoch += 1


def _at_once(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Run a call for all machines in parallel, as loading layers takes long."""
    with ThreadPoolExecutor(max(1, len(items))) as pool:
        return list(pool.map(work, items))
