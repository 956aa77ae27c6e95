"""The machines that share a target: who joins, who has which layers, who follows whom."""

from __future__ import annotations

import atexit
import logging
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from medusa_core.errors import ClusterError, MedusaError, StageBusyError, StageLostError
from medusa_core.messages import Move, MoveReason
from medusa_core.runtime.cluster.connection import (
    Cluster,
    StageConnection,
)
from medusa_core.runtime.cluster.division import (
    Power,
    divide,
    slowest_s,
)
from medusa_core.runtime.cluster.fingerprint import (
    check_offer,
    check_speed,
)
from medusa_core.runtime.cluster.layer_range import (
    NO_LAYERS,
    LayerRange,
    shares_of,
)
from medusa_core.runtime.cluster.member import Member
from medusa_core.runtime.cluster.protocol import (
    ComputeSettings,
    StageOffer,
)

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

_WORTHWHILE = 0.7  # moving layers takes longer than many passes
_LOOK_AGAIN_S = 5.0
_PATIENCE_S = 60.0  # in which a machine may come back
_WAIT_S = 30.0  # for a machine that serves another client
_PAUSE_S = 0.2


class Pipeline:
    """Divides a target's layers, anew when a machine is lost or turns out slow.

    Attributes:
        epoch: Goes up with every new division: caches are then to be made again.
        moves: Where layers went since somebody took these, for people.
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
        """Let everybody who offers layers join, and give them theirs.

        Args:
            cluster: The machines.
            ours: What this machine says of itself.
            wanted: How to compute.
            formats: Names of the formats that are settled here.
            num_layers: Layers of the target.
            clock: Seconds; tests bring their own.

        Raises:
            ClusterError: Nobody offers layers, somebody has another model or computes otherwise, or
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
        atexit.register(self.leave)  # else machines would wait for this program
        self._refused: set[str] = set()
        self._looked = clock()
        self.epoch = 0
        self.moves: list[Move] = []
        try:
            self._begin()
        except BaseException:
            self.leave()
            raise

    def _begin(self) -> None:
        """Let everybody who is there join, and give them layers."""
        connections = self._cluster.connections()
        if not connections:
            raise ClusterError(
                f"Nobody offers layers at {self._cluster.name}.",
                "Start medusa serve-layers --model MODEL there first.",
            )
        self._members = _at_once(self._join_patiently, list(connections.values()))
        self._give(self._divided())

    @property
    def active(self) -> list[Member]:
        """Those who have layers, in the order of these."""
        return [member for member in self._members if member.share.num_layers]

    @property
    def client(self) -> str:
        """Who asks."""
        return self._wanted.client

    def take_moves(self) -> tuple[Move, ...]:
        """Where layers went since this was asked last."""
        moves, self.moves = tuple(self.moves), []
        return moves

    def leave(self) -> None:
        """Let all machines go; nothing happens where that has been done."""
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
        """Let others have the layers of a stage that is lost.

        Args:
            error: Names it.

        Raises:
            ClusterError: Those who are left have no room for them.
        """
        started = self._clock()
        lost = next(member for member in self._members if member.name == error.data["stage"])
        log.info("%s (%s) doesn't answer any more", lost.name, lost.offer.place)
        self._members.remove(lost)
        while True:
            try:
                moved_to = self._succeed(lost.share)
                break
            except StageLostError as also:
                gone = also.data["stage"]
                self._members = [member for member in self._members if member.name != gone]
            except ClusterError:
                if self._clock() - started > _PATIENCE_S:
                    raise
                time.sleep(_PAUSE_S)
                self._look_for_others()
        self._report(Move(MoveReason.LOST, lost.offer.place, moved_to, lost.share.num_layers))

    def reconsider(self) -> None:
        """Divide anew if somebody is slower than was thought, or has joined.

        Raises:
            StageLostError: Somebody is lost meanwhile.
        """
        if self._clock() - self._looked < _LOOK_AGAIN_S:
            return
        self._looked = self._clock()
        self._look_for_others()
        if not all(member.is_known for member in self.active):
            return
        powers = self._powers_now()
        now = slowest_s([member.share.num_layers for member in self._members], powers)
        counts = divide(self._num_layers, powers)
        if counts is None or slowest_s(counts, powers) >= _WORTHWHILE * now:
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
        log.info("%s", move.text)
        self.moves.append(move)

    def _powers_now(self) -> list[Power]:
        """What machines can do by their latest passes; of spares, by what was measured first."""
        change = statistics.median(m.layer_s / m.rate.layer_s for m in self.active)
        return [
            member.power._replace(
                layer_s=member.layer_s if member.is_known else member.rate.layer_s * change
            )
            for member in self._members
        ]

    def _join_patiently(self, connection: StageConnection) -> Member:
        """As `_join`; who serves another client may be free soon: that one may have ended."""
        started = self._clock()
        while True:
            try:
                return self._join(connection)
            except StageBusyError:
                if self._clock() - started > _WAIT_S:
                    raise
                time.sleep(_PAUSE_S)

    def _join(self, connection: StageConnection) -> Member:
        offer = connection.offer()
        check_offer(offer, self._ours, self._wanted.library)
        rate = connection.prepare(self._wanted)
        check_speed(offer.name, rate, self._formats)
        log.info("%s at %s: %s", offer.name, offer.place, rate)
        return Member(connection, offer, rate)

    def _look_for_others(self) -> None:
        """Let those join who have come since; who doesn't fit is left out."""
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

    def _succeed(self, share: LayerRange) -> tuple[str, ...]:
        """Give a share to a spare, or divide all layers anew; returns who has them now."""
        count = sum(member.share.num_layers for member in self._members) + share.num_layers
        able = [
            m
            for m in self._members
            if not m.share.num_layers and m.rate.most_layers >= share.num_layers
        ]
        if able and count == self._num_layers:  # else others lost theirs, too
            successor = min(able, key=lambda member: member.rate.layer_s)
            self._take([(successor, share)])
            return (successor.offer.place,)
        before = {member.name: member.share for member in self._members}
        self._give(self._divided())
        return tuple(m.offer.place for m in self.active if before[m.name] != m.share)

    def _divided(self) -> list[int]:
        powers = [member.power for member in self._members]
        counts = divide(self._num_layers, powers)
        if counts is None:
            room = sum(power.most_layers for power in powers)
            raise ClusterError(
                f"The machines have room for {room} of {self._num_layers} layers.",
                "Let another machine join, give them more with --memory-gib, or choose a smaller "
                "weight format.",
            )
        return counts

    def _give(self, counts: list[int]) -> None:
        """Give members so many layers each; who keeps the same ones reads nothing."""
        pairs = zip(self._members, shares_of(counts), strict=True)
        self._take([(member, share) for member, share in pairs if member.share != share])

    def _take(self, pairs: Sequence[tuple[Member, LayerRange]]) -> None:
        for member, _ in pairs:
            member.share = NO_LAYERS  # what it has is unknown until all of them have answered
        held = _at_once(lambda pair: pair[0].connection.take(pair[1], self.client), pairs)
        for (member, share), found in zip(pairs, held, strict=True):
            member.share, member.held = share, found
        for member in self._members:
            member.seconds.clear()
        self._members.sort(key=lambda member: (not member.share.num_layers, member.share))
        self.epoch += 1


def _at_once(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Let all machines do something at once; reading layers takes a while."""
    with ThreadPoolExecutor(max(1, len(items))) as pool:
        return list(pool.map(work, items))
