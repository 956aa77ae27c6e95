"""The way to stages over Ray."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, TypeVar

from medusa_core.errors import ClusterError, MedusaError, StageLostError
from medusa_core.runtime.cluster.connection import StageConnection
from medusa_core.runtime.cluster.layer_range import LayerRange
from medusa_core.runtime.cluster.protocol import (
    CacheRequest,
    ComputeSettings,
    PackedTensor,
    PassReply,
    PassRequest,
    StageLayers,
    StageOffer,
    StageSpeed,
)
from medusa_core.runtime.cluster.ray_setup import (
    NAMESPACE,
    PREFIX,
    RayNode,
)

_PASS_S = 120.0  # a stage that takes longer is taken for lost
_READ_S = 1800.0  # to read layers
_LOOK_S, _GLANCE_S = 10.0, 0.1

R = TypeVar("R")


class RayConnection:
    """The way to one stage; see `StageConnection`.

    Attributes:
        is_lost: It didn't answer.
    """

    def __init__(self, ray: ModuleType, name: str, actor: Any) -> None:
        """Talk to an actor.

        Args:
            ray: The connected module.
            name: The stage's name.
            actor: A handle of a `RayStage`.
        """
        self.is_lost = False
        self._ray = ray
        self._name = name
        self._actor = actor

    def offer(self) -> StageOffer:
        return self._answer(self._actor.offer.remote(), StageOffer, _PASS_S)

    def prepare(self, wanted: ComputeSettings) -> StageSpeed:
        return self._answer(self._actor.prepare.remote(wanted), StageSpeed, _READ_S)

    def take(self, share: LayerRange, client: str) -> StageLayers:
        return self._answer(self._actor.take.remote(share, client), StageLayers, _READ_S)

    def run(self, order: PassRequest) -> PassReply:
        return self._answer(self._actor.run.remote(order), PassReply, _PASS_S)

    def committed(self, order: CacheRequest) -> PackedTensor:
        return self._answer(self._actor.committed.remote(order), PackedTensor, _PASS_S)

    def _answer(self, promised: Any, kind: type[R], most_s: float) -> R:
        """What a stage answers.

        Raises:
            StageLostError: It doesn't.
            MedusaError: It refuses, or fails.
        """
        exceptions = self._ray.exceptions
        try:
            answer = self._ray.get(promised, timeout=most_s)
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, MedusaError):
                raise error.cause from None
            raise ClusterError(
                f"{self._name} failed: {type(error.cause).__name__}.",
                "Start serve-layers there with --verbose to see why.",
            ) from error
        except (exceptions.RayError, TimeoutError) as error:
            self.is_lost = True
            raise StageLostError(
                f"{self._name} doesn't answer any more.",
                "Start serve-layers there again.",
                stage=self._name,
            ) from error
        assert isinstance(answer, kind)  # all machines run the same version
        return answer


class RayCluster:
    """The machines that offer layers over Ray; see `Cluster`."""

    def __init__(self, address: str) -> None:
        """Join a cluster as its client.

        Args:
            address: HOST:PORT of its head.

        Raises:
            ClusterError: It can't be reached.
        """
        self.name = address
        self._node = RayNode(address)
        self._lines: dict[str, RayConnection] = {}
        self._pending: dict[str, tuple[Any, Any]] = {}

    def connections(self) -> Mapping[str, StageConnection]:
        ray = self._node.ray
        try:
            found = [name for name in ray.util.list_named_actors() if name.startswith(PREFIX)]
        except (ray.exceptions.RayError, RuntimeError) as error:
            raise ClusterError(
                f"The cluster at {self.name} can't be reached any more.",
                "Start serve-layers there again.",
            ) from error
        self._look_at({name for name in found if name not in self._lines})
        connections = ((name, self._lines[name]) for name in sorted(found) if name in self._lines)
        return {name: connection for name, connection in connections if not connection.is_lost}

    def close(self) -> None:
        self._node.close()

    def _look_at(self, names: set[str]) -> None:
        """Take in those of some actors that offer layers by now."""
        ray = self._node.ray
        for name in names - self._pending.keys():
            try:
                actor = ray.get_actor(name, namespace=NAMESPACE)
            except ValueError:
                continue  # it has ended
            self._pending[name] = (actor, actor.is_open.remote())
        promised = [promise for _, promise in self._pending.values()]
        # Who is asked for layers waits for those who offer them; a pass waits for nobody who is
        # still reading a model.
        most_s = _GLANCE_S if self._lines else _LOOK_S
        if not promised:
            return
        ready, _ = ray.wait(promised, num_returns=len(promised), timeout=most_s)
        for name, (actor, promise) in list(self._pending.items()):
            if promise in ready:
                del self._pending[name]
                if self._is_open(promise):
                    self._lines[name] = RayConnection(ray, name, actor)

    def _is_open(self, promise: Any) -> bool:
        try:
            return bool(self._node.ray.get(promise))
        except self._node.ray.exceptions.RayError:
            return False  # it has ended
