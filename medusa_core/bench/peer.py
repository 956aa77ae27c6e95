"""Peers: other programs that a benchmark compares with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from medusa_core.bench import peers
from medusa_core.bench.contestant import Contestant
from medusa_core.loading.target import Target
from medusa_core.system.registry import Registry


@dataclass(frozen=True, slots=True)
class PeerOptions:
    """Arguments of a peer.

    Attributes:
        model_dir: Folder of the weights.
        target: The loaded target, for its dtype, device, tokenizer and EOS ids.
        max_new_tokens: Upper limit of an answer's tokens.
        assistant_dir: Folder of a smaller model with the same tokenizer, or None.
    """

    model_dir: Path
    target: Target
    max_new_tokens: int
    assistant_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class PeerSpec:
    """A registered peer.

    Attributes:
        name: Name on the command line.
        build: Constructor.
    """

    name: str
    build: Callable[[PeerOptions], Contestant]


@cache
def peer_registry() -> Registry[PeerSpec]:
    """Return all peers."""
    return Registry(peers, "peer", PeerSpec)
