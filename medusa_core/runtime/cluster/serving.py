"""Offers this machine as a stage, until the program is ended."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medusa_core.errors import MedusaError
from medusa_core.runtime.cluster.protocol import StageOffer
from medusa_core.runtime.cluster.ray_setup import (
    PREFIX,
    RayNode,
)
from medusa_core.runtime.cluster.ray_stage import RayStage

log = logging.getLogger(__name__)

_POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class Offering:
    """Settings of a stage.

    Attributes:
        model_dir: This machine's copy of the model.
        memory_bytes: Memory for layers and caches; 0 for most of the free memory.
        device: A torch device name; empty for the best one.
        delay_s: Seconds added to each pass, to simulate a slow network.
    """

    model_dir: Path
    memory_bytes: int = 0
    device: str = ""
    delay_s: float = 0.0


def serve(node: RayNode, offering: Offering, on_offer: Callable[[StageOffer], None]) -> None:
    """Offer layers in a Ray process, and in a new one when that is lost.

    Args:
        node: This machine's Ray node.
        offering: Settings of the stage.
        on_offer: Called with the offer of each process.

    Raises:
        MedusaError: The model can't be opened.
        KeyboardInterrupt: The user ended it.
    """
    while True:
        name = f"{PREFIX}{secrets.token_hex(3)}"
        actor = _start(node, name)
        try:
            on_offer(_open(node, actor, name, offering))
            _watch(node, actor)
        except node.ray.exceptions.RayActorError:
            log.warning("the process of %s has ended; another one offers its layers", name)


def _start(node: RayNode, name: str) -> Any:
    """Start an actor on this machine, which ends with this program."""
    ray = node.ray
    on_this_node = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    options = {"name": name, "num_cpus": 0, "max_restarts": 0, "scheduling_strategy": on_this_node}
    return ray.remote(RayStage).options(**options).remote()


def _open(node: RayNode, actor: Any, name: str, offering: Offering) -> StageOffer:
    """Let an actor open the model, and return its offer; raises the actor's `MedusaError`."""
    arguments = (offering.model_dir, offering.memory_bytes, offering.device, offering.delay_s)
    try:
        offer = node.ray.get(actor.open.remote(name, *arguments))
    except node.ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, MedusaError):
            raise error.cause from None
        raise
    assert isinstance(offer, StageOffer)
    return offer


def _watch(node: RayNode, actor: Any) -> None:
    """Wait until an actor's process ends."""
    while True:
        try:
            node.ray.get(actor.is_open.remote(), timeout=_POLL_S)
        except node.ray.exceptions.GetTimeoutError:
            continue  # it reads layers
        time.sleep(_POLL_S)
