"""A card that isn't there: its tensors, its memory, its kernels' demands, its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch

from medusa_core import card
from tests.imagined_card.quantized import cuda_handles, kernels_for_cuda
from tests.imagined_card.tensor import CardFunctions, CardMode

GIB = 1 << 30
CAPABILITIES = ((6, 1), (7, 5), (8, 6), (8, 9))
_SHARED = 46  # multiprocessors, as an RTX 3070 has


@contextmanager
def imagined_card(
    capability: tuple[int, int] = (8, 6), total_bytes: int = 8 * GIB
) -> Iterator[CardMode]:
    """Let this thread have a card while the block runs.

    Args:
        capability: Its compute capability.
        total_bytes: Its memory.

    Yields:
        The card: what was copied, what kernels were given, what memory is taken.
    """
    mode = CardMode(capability, {}, total_bytes)
    mode.kernels.update(kernels_for_cuda(mode.journal.kernels))
    facts = _Facts(mode, capability)
    properties = _Properties(_SHARED, *capability)
    with ExitStack() as stack:
        for fact in _FACTS:
            stack.enter_context(patch.object(card, fact, getattr(facts, fact)))
        for name, stand_in in (
            ("_lazy_init", lambda: None),
            ("get_device_properties", lambda device=None: properties),
        ):
            stack.enter_context(patch.object(torch.cuda, name, stand_in))
        stack.enter_context(cuda_handles())
        stack.enter_context(mode)
        stack.enter_context(CardFunctions(mode))
        yield mode


_FACTS = (
    "num_cards",
    "capability",
    "name",
    "free_and_total_bytes",
    "give_back_memory",
    "wait",
    "graph_memory",
    "record",
)


@dataclass(frozen=True, slots=True)
class _Properties:
    """What bitsandbytes reads of a card."""

    multi_processor_count: int
    major: int
    minor: int


class _Facts:
    """Stands in for `medusa_core.card`."""

    def __init__(self, mode: CardMode, capability: tuple[int, int]) -> None:
        self._mode = mode
        self._capability = capability

    def num_cards(self) -> int:
        return 1

    def capability(self, device: torch.device) -> tuple[int, int]:
        return self._capability

    def name(self, device: torch.device) -> str:
        return "an imagined card"

    def free_and_total_bytes(self, device: torch.device) -> tuple[int, int]:
        memory = self._mode.memory
        return memory.total_bytes - memory.taken_bytes, memory.total_bytes

    def give_back_memory(self) -> None:
        """Nothing is kept for later."""

    def wait(self, device: torch.device) -> None:
        """Everything is done at once."""

    def graph_memory(self) -> None:
        """Graphs take none."""

    def record(self, work: Callable[[], None], memory: Any) -> _Graph:
        work()
        with self._mode.recording():
            work()
        return _Graph(work)


class _Graph:
    """Work that is done again; nothing in it may ask the host."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work

    def replay(self) -> None:
        self._work()
