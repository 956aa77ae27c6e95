"""Measure the seconds of drafting with each source, level by level."""

from __future__ import annotations

import itertools
import logging
import time
from array import array
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from medusa_core.errors import OutOfMemoryError
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.runtime.runner.choice import between_passes
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    ReadsStates,
    Source,
    SourceMemory,
    SourceSpec,
    source_registry,
)
from medusa_core.speculation.rules.rule import rule_registry
from medusa_core.speculation.tuning.step_costs import (
    MAX_ROWS,
    PROBED_PATHS,
    SourceCost,
    ascending,
    quartile_s,
)

log = logging.getLogger(__name__)

_DRAFTS_IN_A_ROUND = 8
_FIRST_DRAFTS = 3  # in the first round
_LONG_DRAFT_S = 0.05  # one measurement is enough, even a cold one
_LONG_STEP_S = 0.05  # such a model's heads don't fit into the processor's cache anyway
_MIN_S = 1e-7  # differences may be lost in noise
_MAX_LEVELS = 8
_TEXT_TOKENS = 8  # length of a random text


@dataclass(slots=True)
class _Timed:
    """A source under measurement.

    Attributes:
        spec: Its registry entry.
        source: The source.
        levels: Number of levels that it drafts at once; None if it is queried level by level.
        seconds: Cumulative seconds of 1, 2, ... levels of each draft; only the last if `levels` is
            given.
        chain_s: As `seconds`, with one path per level; empty if `levels` is given.
        memory: Its state of the text.
        has_text: It was given a text.
        is_warm: It has drafted before.
    """

    spec: SourceSpec
    source: Source
    levels: int | None
    seconds: list[list[float]] = field(default_factory=list)
    chain_s: list[list[float]] = field(default_factory=list)
    memory: SourceMemory = field(default_factory=dict)
    has_text: bool = False
    is_warm: bool = False

    @property
    def is_long(self) -> bool:
        """Whether a draft takes so long that its variation doesn't matter."""
        return bool(self.seconds) and self.seconds[0][-1] > _LONG_DRAFT_S


class SourceTimer:
    """Measures drafts of every source that can draft for a target, under one rule."""

    def __init__(
        self,
        target: Target,
        rule_name: str,
        like: Tensor,
        between: Callable[[], float],
        known: Container[str] = (),
    ) -> None:
        """Build the sources.

        Args:
            target: The target.
            rule_name: The rule whose noise the sources apply.
            like: Hidden state of a token. [1, (1 + taps) · hidden]
            between: Runs a step of the target, as decoding does between drafts; its seconds.
            known: Names of sources that needn't be measured.
        """
        self._target, self._like, self._between = target, like, between
        spec = rule_registry().get(rule_name)
        self._rule, self._draws = spec.build(GenerateSettings(rule=rule_name)), spec.choice.draws
        self._step_s = 0.0
        self._generator = torch.Generator().manual_seed(0)
        self._timed = [
            timed
            for spec in source_registry().specs
            if spec.serves(target) and spec.name not in known
            for timed in _build(spec, target)
        ]
        self._positions = itertools.count(_TEXT_TOKENS)  # noise is cached for one position

    @property
    def is_complete(self) -> bool:
        """Whether every source was measured."""
        return all(timed.seconds for timed in self._timed)

    def round(self, is_first: bool) -> Iterator[bool]:
        """Draft with each source some times, piece by piece; fewer times in the first round."""
        for _ in range(_FIRST_DRAFTS if is_first else _DRAFTS_IN_A_ROUND):
            for timed in list(self._timed):
                if not (is_first and timed.is_long):
                    yield from self._draft(timed)

    def seconds(self) -> dict[str, tuple[float, ...]]:
        """By source, cumulative seconds of 1, 2, ... levels."""
        found: dict[str, list[float]] = {}
        for timed in self._timed:
            seconds = _by_level(timed.seconds) if timed.seconds else []
            found.setdefault(timed.spec.name, []).extend(seconds[-1:] if timed.levels else seconds)
        return {name: ascending(seconds) for name, seconds in found.items() if seconds}

    def chain_seconds(self) -> dict[str, tuple[float, ...]]:
        """Cumulative seconds of 1, 2, ... levels with one path each, by source, if that differs."""
        found = {
            timed.spec.name: _by_level(timed.chain_s) for timed in self._timed if timed.chain_s
        }
        return {name: ascending(seconds) for name, seconds in found.items() if seconds}

    def close(self) -> None:
        """Release the sources' state of the text."""
        for timed in self._timed:
            timed.has_text = False
            for remembered in timed.memory.values():
                remembered.close()
            timed.memory.clear()

    def _draft(self, timed: _Timed) -> Iterator[bool]:
        """Draft after many paths per level, then after one; the first draft is cold."""
        try:
            if not timed.is_warm:
                timed.is_warm = True
                first = self._source_s(timed, PROBED_PATHS)
                if first[-1] > _LONG_DRAFT_S:
                    timed.seconds.append(first)
                    yield True
        except OutOfMemoryError:
            log.info("no room to measure the source %s", timed.spec.name)
            self._timed.remove(timed)
            return
        if not timed.is_long:
            timed.seconds.append(self._source_s(timed, PROBED_PATHS))
            yield True
        if timed.levels is None and not self._draws:
            timed.chain_s.append(self._source_s(timed, 1))
            yield True

    def _begin(self, timed: _Timed) -> None:
        """Give a source a text, if it has none."""
        if timed.has_text:
            return
        timed.has_text = True
        text = torch.randint(
            self._target.config.vocab_size, (_TEXT_TOKENS,), generator=self._generator
        )
        timed.source.begin(text.tolist())
        if isinstance(timed.source, ReadsStates):
            timed.source.resume(text.tolist(), timed.memory)
            states = self._like.expand(_TEXT_TOKENS, -1)
            timed.source.read(0, *self._split(states))

    def _source_s(self, timed: _Timed, num_paths: int) -> list[float]:
        """Draft once after a random observation; cumulative seconds by level."""
        self._begin(timed)
        # As in decoding, inputs change and a step of the target comes between: without these,
        # branch prediction and the processor's cache make drafts two to three times as fast.
        states = torch.randn(self._like.shape, generator=self._generator).to(self._like)
        root_id = int(
            torch.randint(self._target.config.vocab_size, (1,), generator=self._generator)
        )
        final, deep = self._split(states)
        chance = self._rule.chance(next(self._positions))
        with between_passes(self._target.runner):
            timed.source.observe(Observation([root_id], final, (0,), chance, deep))
        if self._step_s < _LONG_STEP_S:
            self._step_s = self._between()
        with between_passes(self._target.runner):
            return _levels_s(timed.source, root_id, timed.levels, num_paths)

    def _split(self, states: Tensor) -> tuple[Tensor, Tensor | None]:
        """Split states into the final ones and those of the tapped layers, if any."""
        size = self._target.config.hidden_size
        return states[:, :size], states[:, size:] if states.shape[1] > size else None


def source_cost_of(greedy: SourceTimer, drawn: SourceTimer) -> dict[str, SourceCost]:
    """Combine drafts under both rules, up to the levels that both reached."""
    both, chains, found = (greedy.seconds(), drawn.seconds()), greedy.chain_seconds(), {}
    for name in both[0].keys() & both[1].keys():
        chain = chains.get(name, ())
        levels = min(len(seconds) for seconds in (both[0][name], both[1][name], chain) if seconds)
        found[name] = SourceCost(both[0][name][:levels], both[1][name][:levels], chain[:levels])
    return dict(sorted(found.items()))


def _by_level(measured: Sequence[Sequence[float]]) -> list[float]:
    """Lower quartiles by level, up to the levels that all drafts reached (noise may end one)."""
    reached = min(map(len, measured))
    columns = zip(*(row[:reached] for row in measured), strict=True)
    return [max(_MIN_S, quartile_s(column)) for column in columns]


def _build(spec: SourceSpec, target: Target) -> list[_Timed]:
    """Build a source; once for each number of levels if it drafts all at once."""
    if not spec.drafts_at_once or target.heads is None:
        return [_Timed(spec, spec.build(target, RowBudget(MAX_ROWS)), None)]
    counts = range(1, 1 + target.heads.num_heads)
    return [
        _Timed(spec, spec.build(target, RowBudget(MAX_ROWS, levels=count)), count)
        for count in counts
    ]


def _levels_s(source: Source, root_id: int, levels: int | None, num_paths: int) -> list[float]:
    """Draft once; returns cumulative seconds of 1, 2, ... levels."""
    started = time.perf_counter()
    source.start(root_id, MAX_ROWS)
    timed_s = time.perf_counter() - started
    if levels is not None:
        return [timed_s]
    seconds: list[float] = []
    paths = Paths(1, 0, array("i"))
    for _ in range(_MAX_LEVELS):
        started = time.perf_counter()
        candidates = source.candidates(paths)
        timed_s += time.perf_counter() - started
        if candidates is None or not candidates.token_ids:
            break
        seconds.append(timed_s)
        paths = _next_paths(paths, candidates, num_paths)
    return seconds or [timed_s]


def _next_paths(paths: Paths, candidates: Candidates, num_paths: int) -> Paths:
    """Paths of the next level: the best ones after the root, then the best one after each path."""
    counts: Sequence[int] = candidates.counts or [len(candidates.token_ids)] * paths.num
    own = [0, *itertools.accumulate(counts)] if candidates.counts else [0] * (paths.num + 1)
    take = num_paths if paths.level == 0 else 1
    continued = [
        (*paths.path(index), token_id)
        for index in range(paths.num)
        for token_id in candidates.token_ids[own[index] : own[index] + min(take, counts[index])]
    ]
    return Paths(
        len(continued), paths.level + 1, array("i", itertools.chain.from_iterable(continued))
    )
