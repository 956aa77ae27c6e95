"""A card that isn't there: its tensors, its memory, its kernels' demands, its facts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from medusa_core.models.quant import card_linear
from medusa_core.runtime.backends import cuda_blocks
from medusa_core.runtime.runner import graphs
from medusa_core.system import cuda as card
from medusa_core.system.native.cuda import kernels as kernels_module
from medusa_core.system.native.cuda.kernels import Argument, Kernels
from tests.support.card.journal import Journal
from tests.support.card.quantized import kernels_for_cuda, own_globals
from tests.support.card.tape import Tape
from tests.support.card.tensor import CardFunctions, CardMode

GIB = 1 << 30
CAPABILITIES = ((6, 1), (7, 5), (8, 6), (8, 9))
ON_CARDS = tuple((each,) for each in CAPABILITIES)  # as an axis of `by_turns`
CARDS = pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda c: f"sm{c[0]}{c[1]}")
_LAUNCH_S = 1e-5
_SHARED = 46  # multiprocessors, as an RTX 3070 has


@contextmanager
def fake_cuda(
    capability: tuple[int, int] = (8, 6),
    total_bytes: int = 8 * GIB,
    *,
    graphs_pay: bool = False,
    kernels: Kernels | None = None,
    checks_kernels: bool = False,
) -> Iterator[CardMode]:
    """Fake a card for this thread while the block runs.

    Args:
        capability: Its compute capability.
        total_bytes: Its memory.
        graphs_pay: An operation in a graph takes a tenth of one outside, not ten times as long.
        kernels: Our kernels for cards; None for torch's and bitsandbytes' alone.
        checks_kernels: They are compared with the CPU's numbers first, as on a real card.

    Yields:
        The card: what was copied, what kernels were given, what memory is taken.
    """
    mode = CardMode(capability, total_bytes)

    def run_kernel(name: str, work: Callable[[], Any]) -> Any:
        mode.journal.kernels[name] += 1
        return mode.launch(work)

    mode.kernels.update(kernels_for_cuda(run_kernel))
    facts = _Facts(mode, capability, graphs_pay)
    properties = _Properties(_SHARED, *capability)
    with ExitStack() as stack:
        stack.enter_context(patch.object(graphs, "_REPEATS", 1))  # it takes no longer at times
        for fact in _FACTS:
            stack.enter_context(patch.object(card, fact, getattr(facts, fact)))
        for name, stand_in in (
            ("_lazy_init", lambda: None),
            ("get_device_properties", lambda device=None: properties),
        ):
            stack.enter_context(patch.object(torch.cuda, name, stand_in))
        stack.enter_context(_own_kernels(mode, kernels, checks_kernels))
        stack.enter_context(own_globals())
        stack.enter_context(mode)
        stack.enter_context(CardFunctions(mode))
        yield mode


@contextmanager
def _own_kernels(mode: CardMode, kernels: Kernels | None, checks: bool) -> Iterator[None]:
    """Make layers use these kernels, whose launches the card counts."""
    found = None if kernels is None else _Counted(mode, kernels)
    cached = (
        *(card_linear.working_types, card_linear._works),
        *(cuda_blocks.card_attention, cuda_blocks.fused_kernels_work),
        cuda_blocks.small_cache_works,
    )
    for function in cached:
        function.cache_clear()
    try:
        with ExitStack() as stack:
            stack.enter_context(patch.object(kernels_module, "_wrong", {}))
            for module in (card_linear, cuda_blocks):
                stack.enter_context(patch.object(module, "load_kernels", lambda device: found))
                if not checks:
                    stack.enter_context(
                        patch.object(module, "_is_correct", lambda *of, **how: True)
                    )
            yield
    finally:
        for function in cached:
            function.cache_clear()


class _Counted:
    """Kernels whose launches are work of the card."""

    def __init__(self, mode: CardMode, kernels: Kernels) -> None:
        self._mode = mode
        self._kernels = kernels

    def launch(self, name: str, grid: int, threads: int, *args: Argument) -> None:
        for argument in args:
            assert not isinstance(argument, Tensor) or argument.device.type == "cuda"
        self._mode.journal.kernels[name] += 1
        self._mode.launch(lambda: self._kernels.launch(name, grid, threads, *args))


_FACTS = (
    "num_cards",
    "capability",
    "name",
    "free_and_total_bytes",
    "release_memory",
    "wait",
    "wait_for_computing",
    "driver_version",
    "seconds_of",
    "median_seconds",
    "graph_memory",
    "record",
    "pinned",
    "copy_stream",
    "download",
)


@dataclass(frozen=True, slots=True)
class _Properties:
    """Device properties that bitsandbytes reads."""

    multi_processor_count: int
    major: int
    minor: int


class _Facts:
    """Stands in for `medusa_core.system.cuda`."""

    def __init__(self, mode: CardMode, capability: tuple[int, int], graphs_pay: bool) -> None:
        self._mode = mode
        self._capability = capability
        self._replayed_s = _LAUNCH_S / 10 if graphs_pay else _LAUNCH_S * 10

    def num_cards(self) -> int:
        return 1

    def capability(self, device: torch.device) -> tuple[int, int]:
        return self._capability

    def name(self, device: torch.device) -> str:
        return "a fake card"

    def driver_version(self) -> str:
        return "1.2"

    def free_and_total_bytes(self, device: torch.device) -> tuple[int, int]:
        memory = self._mode.memory
        return memory.total_bytes - memory.taken_bytes, memory.total_bytes

    def release_memory(self) -> None:
        """Free all cached memory."""

    def wait(self, device: torch.device) -> None:
        """Everything is done at once."""

    def wait_for_computing(self, device: torch.device) -> None:
        """Likewise."""

    def seconds_of(self, work: Callable[[], None], device: torch.device) -> float:
        journal = self._mode.journal
        before = (journal.num_launched, journal.num_replayed)
        work()
        launched, replayed = journal.num_launched - before[0], journal.num_replayed - before[1]
        return launched * _LAUNCH_S + replayed * self._replayed_s

    def median_seconds(
        self, works: Sequence[object], device: torch.device, repeats: int, ends: float
    ) -> list[float]:
        return [_LAUNCH_S] * len(works)  # all the same, so that defaults stay

    def pinned(self, num_bytes: int) -> Tensor:
        return torch.empty(num_bytes, dtype=torch.uint8)

    def download(self, tensor: Tensor) -> Callable[[], Tensor]:
        copied = tensor.cpu()  # in its place among the card's work
        return lambda: copied

    def copy_stream(self, device: torch.device) -> _CopyStream:
        return _CopyStream()

    def graph_memory(self) -> None:
        """Graphs take none."""

    def record(self, work: Callable[[], None], memory: Any) -> _Graph:
        work()
        with self._mode.recording() as tape:
            work()
        return _Graph(self._mode.journal, tape)


class _Mark:
    """A place in what a card was given to do; that of a copy knows how to get there."""

    def __init__(self, reach: Callable[[], None] | None = None) -> None:
        self._reach = reach

    def reach(self) -> None:
        """Execute the preceding work, unless it is executed immediately anyway."""
        if self._reach is not None:
            self._reach()


class _CopyStream:
    """Stream that copies as late as a card may: when it is waited for, and in order.

    So what is read before it has come, or is overwritten before it was copied, is wrong.
    """

    def __init__(self) -> None:
        self._copies: deque[tuple[_Mark, Callable[[], None]]] = deque()
        self.waited_s = self.copied_s = 0.0

    def copy(self, to: Tensor, source: Tensor, after: _Mark | None) -> _Mark:
        mark = _Mark(lambda: self._copy_until(mark))
        self._copies.append((mark, lambda: self._copy(to, source, after)))
        return mark

    def record_event(self) -> _Mark:
        return _Mark()

    def wait(self, event: _Mark, computed: _Mark) -> None:
        assert isinstance(computed, _Mark)
        event.reach()
        self.waited_s += _LAUNCH_S

    def synchronize(self, event: _Mark) -> None:
        event.reach()

    def _copy_until(self, mark: _Mark) -> None:
        while any(mark is own for own, _ in self._copies):
            _, copy = self._copies.popleft()
            copy()

    def _copy(self, to: Tensor, source: Tensor, after: _Mark | None) -> None:
        if after is not None:
            after.reach()
        to.copy_(source, non_blocking=True)
        self.copied_s += _LAUNCH_S


class _Graph:
    """A tape whose operations are counted as replayed."""

    def __init__(self, journal: Journal, tape: Tape) -> None:
        self._journal = journal
        self._tape = tape

    def replay(self) -> None:
        self._journal.num_replayed += self._tape.num_operations
        self._tape.play()
