"""Measures what asking the sources of drafts takes, level by level."""

from __future__ import annotations

import itertools
import logging
import time
from array import array
from collections.abc import Callable, Sequence
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
    Memory,
    Paths,
    ReadsStates,
    Source,
    SourceSpec,
    source_registry,
)
from medusa_core.speculation.rules.rule import rule_registry
from medusa_core.speculation.tuning.costs import (
    MOST_ROWS,
    Asking,
    rising,
    usual_s,
)

log = logging.getLogger(__name__)

_DRAFTS_IN_A_TURN = 8
_LEAST_DRAFTS = 3
_A_LONG_STEP_S = 0.005
_LEAST_S = 1e-7  # what noise leaves of a difference
_MOST_LEVELS = 8
_PATHS = 8  # that go on at each level, about as many as in trees that pay
_READ = 8  # tokens of a text that nobody wrote


@dataclass(slots=True)
class _Asked:
    """A source that is asked.

    Attributes:
        spec: Which.
        source: It.
        levels: For how many levels it was built; None where it is asked level by level.
        seconds: Of every asking: for one level, two, ...; the last alone where `levels` is known.
        memory: What it remembers of the text.
    """

    spec: SourceSpec
    source: Source
    levels: int | None
    seconds: list[list[float]] = field(default_factory=list)
    memory: Memory = field(default_factory=dict)


class AskingSources:
    """Asks every source that serves a target, greedily or where chance chooses."""

    def __init__(
        self, target: Target, rule_name: str, like: Tensor, between: Callable[[], float]
    ) -> None:
        """Build the sources.

        Args:
            target: The target.
            rule_name: The rule whose noise they are told.
            like: What the target says of a token. [1, (1 + taps) · hidden]
            between: Takes a step of the target, as decoding does between askings; its seconds.
        """
        self._target, self._like, self._between = target, like, between
        self._rule = rule_registry().get(rule_name).build(GenerateSettings(rule=rule_name))
        self._step_s = 0.0
        self._dice = torch.Generator().manual_seed(0)
        self._asked = [
            asked
            for spec in source_registry().specs
            if spec.serves(target)
            for asked in _of(spec, target)
        ]
        self._places = itertools.count(_READ)  # noise is kept for its place alone
        for asked in list(self._asked):
            self._begin(asked)

    def measure(self, ends: float) -> None:
        """Let each have some turns; none but the first few begins after `ends`."""
        for _ in range(_DRAFTS_IN_A_TURN):
            for asked in self._asked:
                if len(asked.seconds) >= _LEAST_DRAFTS and time.perf_counter() > ends:
                    return
                asked.seconds.append(self._asking_s(asked))

    def usual_s(self) -> dict[str, tuple[float, ...]]:
        """By source, the seconds of asking for one level, two, ...; and forget what was read."""
        found: dict[str, list[float]] = {}
        for asked in self._asked:
            reached = min(map(len, asked.seconds))  # chance may filter all of a level out
            columns = zip(*(row[:reached] for row in asked.seconds), strict=True)
            usual = [max(_LEAST_S, usual_s(column)) for column in columns]
            found.setdefault(asked.spec.name, []).extend(usual[-1:] if asked.levels else usual)
            for remembered in asked.memory.values():
                remembered.close()
        return {name: rising(seconds) for name, seconds in found.items() if seconds}

    def _begin(self, asked: _Asked) -> None:
        text = torch.randint(self._target.config.vocab_size, (_READ,), generator=self._dice)
        asked.source.begin(text.tolist())
        try:
            if isinstance(asked.source, ReadsStates):
                asked.source.resume(text.tolist(), asked.memory)
                states = self._like.expand(_READ, -1)
                asked.source.read(0, *self._apart(states))
            self._asking_s(asked)  # what is cold at first, and room for what is asked
        except OutOfMemoryError:
            log.info("no room to measure the source %s", asked.spec.name)
            self._asked.remove(asked)

    def _asking_s(self, asked: _Asked) -> list[float]:
        # As in decoding nothing is as it was a moment before: the processor can't have learned
        # which way the work goes, and the target takes what heads read out of its cache. (A target
        # of long steps has heads that are larger than that, too.)
        states = torch.randn(self._like.shape, generator=self._dice).to(self._like)
        root_id = int(torch.randint(self._target.config.vocab_size, (1,), generator=self._dice))
        final, deep = self._apart(states)
        chance = self._rule.chance(next(self._places))
        with between_passes(self._target.runner):
            asked.source.observe(Observation([root_id], final, (0,), chance, deep))
        if self._step_s < _A_LONG_STEP_S:
            self._step_s = self._between()
        with between_passes(self._target.runner):
            return _levels_s(asked.source, root_id, asked.levels)

    def _apart(self, states: Tensor) -> tuple[Tensor, Tensor | None]:
        size = self._target.config.hidden_size
        return states[:, :size], states[:, size:] if states.shape[1] > size else None


def asking_of(greedy: AskingSources, drawn: AskingSources) -> dict[str, Asking]:
    """Both kinds of askings, as far as both reached."""
    both, found = (greedy.usual_s(), drawn.usual_s()), {}
    for name in both[0].keys() & both[1].keys():
        levels = min(len(seconds[name]) for seconds in both)
        found[name] = Asking(both[0][name][:levels], both[1][name][:levels])
    return dict(sorted(found.items()))


def _of(spec: SourceSpec, target: Target) -> list[_Asked]:
    """A source, built once; or once for each number of levels where it asks for all at once."""
    if not spec.asks_at_once or target.heads is None:
        return [_Asked(spec, spec.build(target, RowBudget(MOST_ROWS)), None)]
    counts = range(1, 1 + target.heads.num_heads)
    return [
        _Asked(spec, spec.build(target, RowBudget(MOST_ROWS, levels=count)), count)
        for count in counts
    ]


def _levels_s(source: Source, root_id: int, levels: int | None) -> list[float]:
    """Seconds until the first level was known, the second, ..."""
    started = time.perf_counter()
    source.start(root_id, MOST_ROWS)
    asked_s = time.perf_counter() - started
    if levels is not None:
        return [asked_s]
    seconds: list[float] = []
    paths = Paths(1, 0, array("i"))
    for _ in range(_MOST_LEVELS):
        started = time.perf_counter()
        said = source.candidates(paths)
        asked_s += time.perf_counter() - started
        if said is None or not said.token_ids:
            break
        seconds.append(asked_s)
        paths = _below(paths, said)
    return seconds or [asked_s]


def _below(paths: Paths, said: Candidates) -> Paths:
    """Some paths that go on: the best ones behind the root, then the best one behind each."""
    counts: Sequence[int] = said.counts or [len(said.token_ids)] * paths.num
    own = [0, *itertools.accumulate(counts)] if said.counts else [0] * (paths.num + 1)
    take = _PATHS if paths.level == 0 else 1
    going = [
        (*paths.path(index), token_id)
        for index in range(paths.num)
        for token_id in said.token_ids[own[index] : own[index] + min(take, counts[index])]
    ]
    return Paths(len(going), paths.level + 1, array("i", itertools.chain.from_iterable(going)))
