"""What a peer is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from medusa_core.bench import peers
from medusa_core.bench.contestant import Contestant
from medusa_core.registry import Registry
from medusa_core.target import Target


@dataclass(frozen=True, slots=True)
class PeerSpec:
    """A registered peer.

    Attributes:
        name: Its name on the command line.
        build: Makes it from the model's folder, our loaded target (for its dtype, device,
            tokenizer and EOS ids), and the token budget.
    """

    name: str
    build: Callable[[Path, Target, int], Contestant]


@cache
def peer_registry() -> Registry[PeerSpec]:
    """All peers."""
    return Registry(peers, "peer", PeerSpec)
