"""Stages as actors of Ray."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, TypeVar

from medusa_core.errors import ClusterError, MedusaError, StageLostError
from medusa_core.i18n import tr
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

_PASS_TIMEOUT_S = 120.0  # after which a stage counts as lost
_LOAD_TIMEOUT_S = 1800.0  # of loading layers
_JOIN_TIMEOUT_S, _POLL_TIMEOUT_S = 10.0, 0.1

R = TypeVar("R")


class RayConnection:
    """A stage that is a Ray actor; see `StageConnection`.

    Attributes:
        is_lost: It has failed to answer.
    """

    def __init__(self, ray: ModuleType, name: str, actor: Any) -> None:
        """Connect to an actor.

        Args:
            ray: The module, connected to the cluster.
            name: Name of the stage.
            actor: Handle of a `RayStage`.
        """
        self.is_lost = False
        self._ray = ray
        self._name = name
        self._actor = actor

    def offer(self) -> StageOffer:
        """See `Stage.offer`."""
        return self._answer(self._actor.offer.remote(), StageOffer, _PASS_TIMEOUT_S)

    def prepare(self, wanted: ComputeSettings) -> StageSpeed:
        """See `Stage.prepare`."""
        return self._answer(self._actor.prepare.remote(wanted), StageSpeed, _LOAD_TIMEOUT_S)

    def take(self, share: LayerRange, client: str) -> StageLayers:
        """See `Stage.take`."""
        return self._answer(self._actor.take.remote(share, client), StageLayers, _LOAD_TIMEOUT_S)

    def run(self, request: PassRequest) -> PassReply:
        """See `Stage.run`."""
        return self._answer(self._actor.run.remote(request), PassReply, _PASS_TIMEOUT_S)

    def committed(self, request: CacheRequest) -> PackedTensor:
        """See `Stage.committed`."""
        return self._answer(self._actor.committed.remote(request), PackedTensor, _PASS_TIMEOUT_S)

    def _answer(self, reference: Any, kind: type[R], timeout_s: float) -> R:
        """Wait for the result of a call.

        Raises:
            StageLostError: It doesn't answer in time.
            MedusaError: It refuses, or fails.
        """
        exceptions = self._ray.exceptions
        try:
            answer = self._ray.get(reference, timeout=timeout_s)
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, MedusaError):
                raise error.cause from None
            raise ClusterError(
                tr("{0} failed: {1}.", self._name, type(error.cause).__name__),
                "Start serve-layers there with --verbose to see why.",
            ) from error
        except (exceptions.RayError, TimeoutError) as error:
            self.is_lost = True
            raise StageLostError(
                tr("{0} doesn't answer any more.", self._name),
                "Start serve-layers there again.",
                stage=self._name,
            ) from error
        assert isinstance(answer, kind)  # all machines run the same version
        return answer


class RayCluster:
    """Machines that offer layers over Ray; see `Cluster`."""

    def __init__(self, address: str) -> None:
        """Join a cluster as its client.

        Args:
            address: HOST:PORT of the head node.

        Raises:
            ClusterError: It can't be reached.
        """
        self.name = address
        self._node = RayNode(address)
        self._connections: dict[str, RayConnection] = {}
        self._pending: dict[str, tuple[Any, Any]] = {}

    def connections(self) -> Mapping[str, StageConnection]:
        """Return the stages that answer, by name; see `Cluster`."""
        ray = self._node.ray
        try:
            found = [name for name in ray.util.list_named_actors() if name.startswith(PREFIX)]
        except (ray.exceptions.RayError, RuntimeError) as error:
            raise ClusterError(
                tr("The cluster at {0} can't be reached any more.", self.name),
                "Start serve-layers there again.",
            ) from error
        self._connect({name for name in found if name not in self._connections})
        known = self._connections
        connections = ((name, known[name]) for name in sorted(found) if name in known)
        return {name: connection for name, connection in connections if not connection.is_lost}

    def close(self) -> None:
        """Leave the cluster."""
        self._node.close()

    def _connect(self, names: set[str]) -> None:
        """Connect to those of some actors that have opened their model by now."""
        ray = self._node.ray
        for name in names - self._pending.keys():
            try:
                actor = ray.get_actor(name, namespace=NAMESPACE)
            except ValueError:
                continue  # it has ended
            self._pending[name] = (actor, actor.is_open.remote())
        references = [reference for _, reference in self._pending.values()]
        # Loading a model waits for all stages; a later pass mustn't wait for a machine that is
        # still opening its model.
        timeout_s = _POLL_TIMEOUT_S if self._connections else _JOIN_TIMEOUT_S
        if not references:
            return
        ready, _ = ray.wait(references, num_returns=len(references), timeout=timeout_s)
        for name, (actor, reference) in list(self._pending.items()):
            if reference in ready:
                del self._pending[name]
                if self._is_open(reference):
                    self._connections[name] = RayConnection(ray, name, actor)

    def _is_open(self, reference: Any) -> bool:
        """Whether an actor that has answered has opened its model."""
        try:
            return bool(self._node.ray.get(reference))
        except self._node.ray.exceptions.RayError:
            return False  # it has ended
