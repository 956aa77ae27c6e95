"""Measures what asking the sources of drafts takes, level by level."""

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
_LEAST_DRAFTS = 3  # in the first round
_A_LONG_DRAFT_S = 0.05  # one is enough, be it the first
_A_LONG_STEP_S = 0.05  # its heads are larger than any cache of a processor
_LEAST_S = 1e-7  # what noise leaves of a difference
_MOST_LEVELS = 8
_READ = 8  # tokens of a text that nobody wrote


@dataclass(slots=True)
class _Timed:
    """A source that is asked.

    Attributes:
        spec: Which.
        source: It.
        levels: For how many levels it was built; None where it is asked level by level.
        seconds: Of every asking: for one level, two, ...; the last alone where `levels` is known.
        chain_s: The same behind one path of each level; empty where `levels` is known.
        memory: What it remembers of the text.
        has_text: It was given a text, and room.
        is_warm: It was asked before.
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
        """Whether it was asked, and takes so long that how it differs doesn't matter."""
        return bool(self.seconds) and self.seconds[0][-1] > _A_LONG_DRAFT_S


class SourceTimer:
    """Asks every source that serves a target, greedily or where chance chooses."""

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
            rule_name: The rule whose noise they are told.
            like: What the target says of a token. [1, (1 + taps) · hidden]
            between: Takes a step of the target, as decoding does between askings; its seconds.
            known: Sources that needn't be asked.
        """
        self._target, self._like, self._between = target, like, between
        spec = rule_registry().get(rule_name)
        self._rule, self._draws = spec.build(GenerateSettings(rule=rule_name)), spec.choice.draws
        self._step_s = 0.0
        self._dice = torch.Generator().manual_seed(0)
        self._timed = [
            timed
            for spec in source_registry().specs
            if spec.serves(target) and spec.name not in known
            for timed in _of(spec, target)
        ]
        self._places = itertools.count(_READ)  # noise is kept for its place alone

    @property
    def is_complete(self) -> bool:
        """Whether every source was asked."""
        return all(timed.seconds for timed in self._timed)

    def round(self, is_first: bool) -> Iterator[bool]:
        """Ask each source some times, piece by piece; in the first round a few times."""
        for _ in range(_LEAST_DRAFTS if is_first else _DRAFTS_IN_A_ROUND):
            for timed in list(self._timed):
                if not (is_first and timed.is_long):
                    yield from self._ask(timed)

    def quartile_s(self) -> dict[str, tuple[float, ...]]:
        """By source, the seconds of asking for one level, two, ..."""
        found: dict[str, list[float]] = {}
        for timed in self._timed:
            usual = _usual_s(timed.seconds) if timed.seconds else []
            found.setdefault(timed.spec.name, []).extend(usual[-1:] if timed.levels else usual)
        return {name: ascending(seconds) for name, seconds in found.items() if seconds}

    def usual_chain_s(self) -> dict[str, tuple[float, ...]]:
        """The same behind one path of each level; of sources for which that makes a difference."""
        usual = {timed.spec.name: _usual_s(timed.chain_s) for timed in self._timed if timed.chain_s}
        return {name: ascending(seconds) for name, seconds in usual.items() if seconds}

    def close(self) -> None:
        """Forget what was read, and give back the room for it."""
        for timed in self._timed:
            timed.has_text = False
            for remembered in timed.memory.values():
                remembered.close()
            timed.memory.clear()

    def _ask(self, timed: _Timed) -> Iterator[bool]:
        """Ask a source behind many paths, then behind one, after something cold at first."""
        try:
            if not timed.is_warm:
                timed.is_warm = True
                first = self._source_s(timed, PROBED_PATHS)
                if first[-1] > _A_LONG_DRAFT_S:
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
        """Give a source a text, where it has none."""
        if timed.has_text:
            return
        timed.has_text = True
        text = torch.randint(self._target.config.vocab_size, (_READ,), generator=self._dice)
        timed.source.begin(text.tolist())
        if isinstance(timed.source, ReadsStates):
            timed.source.resume(text.tolist(), timed.memory)
            states = self._like.expand(_READ, -1)
            timed.source.read(0, *self._apart(states))

    def _source_s(self, timed: _Timed, num_paths: int) -> list[float]:
        self._begin(timed)
        # As in decoding nothing is as it was a moment before: the processor can't have learned
        # which way the work goes, and the target takes what heads read out of its cache: askings
        # one after the other take a half to a third of that.
        states = torch.randn(self._like.shape, generator=self._dice).to(self._like)
        root_id = int(torch.randint(self._target.config.vocab_size, (1,), generator=self._dice))
        final, deep = self._apart(states)
        chance = self._rule.chance(next(self._places))
        with between_passes(self._target.runner):
            timed.source.observe(Observation([root_id], final, (0,), chance, deep))
        if self._step_s < _A_LONG_STEP_S:
            self._step_s = self._between()
        with between_passes(self._target.runner):
            return _levels_s(timed.source, root_id, timed.levels, num_paths)

    def _apart(self, states: Tensor) -> tuple[Tensor, Tensor | None]:
        size = self._target.config.hidden_size
        return states[:, :size], states[:, size:] if states.shape[1] > size else None


def source_cost_of(greedy: SourceTimer, drawn: SourceTimer) -> dict[str, SourceCost]:
    """Both kinds of askings, as far as both reached."""
    both, chains, found = (greedy.quartile_s(), drawn.quartile_s()), greedy.usual_chain_s(), {}
    for name in both[0].keys() & both[1].keys():
        chain = chains.get(name, ())
        levels = min(len(seconds) for seconds in (both[0][name], both[1][name], chain) if seconds)
        found[name] = SourceCost(both[0][name][:levels], both[1][name][:levels], chain[:levels])
    return dict(sorted(found.items()))


def _usual_s(measured: Sequence[Sequence[float]]) -> list[float]:
    """Of every asking's levels, as far as all reached: chance may filter all of a level out."""
    reached = min(map(len, measured))
    columns = zip(*(row[:reached] for row in measured), strict=True)
    return [max(_LEAST_S, quartile_s(column)) for column in columns]


def _of(spec: SourceSpec, target: Target) -> list[_Timed]:
    """A source, built once; or once for each number of levels where it asks for all at once."""
    if not spec.drafts_at_once or target.heads is None:
        return [_Timed(spec, spec.build(target, RowBudget(MAX_ROWS)), None)]
    counts = range(1, 1 + target.heads.num_heads)
    return [
        _Timed(spec, spec.build(target, RowBudget(MAX_ROWS, levels=count)), count)
        for count in counts
    ]


def _levels_s(source: Source, root_id: int, levels: int | None, num_paths: int) -> list[float]:
    """Seconds until the first level was known, the second, ..."""
    started = time.perf_counter()
    source.start(root_id, MAX_ROWS)
    timed_s = time.perf_counter() - started
    if levels is not None:
        return [timed_s]
    seconds: list[float] = []
    paths = Paths(1, 0, array("i"))
    for _ in range(_MOST_LEVELS):
        started = time.perf_counter()
        candidates = source.candidates(paths)
        timed_s += time.perf_counter() - started
        if candidates is None or not candidates.token_ids:
            break
        seconds.append(timed_s)
        paths = _below(paths, candidates, num_paths)
    return seconds or [timed_s]


def _below(paths: Paths, candidates: Candidates, num_paths: int) -> Paths:
    """Some paths that go on: the best ones behind the root, then the best one behind each."""
    counts: Sequence[int] = candidates.counts or [len(candidates.token_ids)] * paths.num
    own = [0, *itertools.accumulate(counts)] if candidates.counts else [0] * (paths.num + 1)
    take = num_paths if paths.level == 0 else 1
    going = [
        (*paths.path(index), token_id)
        for index in range(paths.num)
        for token_id in candidates.token_ids[own[index] : own[index] + min(take, counts[index])]
    ]
    return Paths(len(going), paths.level + 1, array("i", itertools.chain.from_iterable(going)))
