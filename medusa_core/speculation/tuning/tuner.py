"""Which tree an answer gets: from what a step costs here and how often heads have been right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from operator import sub
from typing import Any, NamedTuple

from medusa_core.errors import EngineError
from medusa_core.loading.target import Target
from medusa_core.messages import BestNode, GenerateSettings, Planned
from medusa_core.runtime.tree.search import (
    SearchPath,
    grow,
)
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.runtime.tree.tables import (
    Accuracies,
    TreePresets,
)
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.lineup import drafter_registry, fixed_tree_drafter
from medusa_core.speculation.rules.rule import (
    rule_registry,
    settled,
)
from medusa_core.speculation.tuning.costs import (
    MOST_ROWS,
    Sharers,
    StepCosts,
)
from medusa_core.speculation.tuning.governor import Governor
from medusa_core.speculation.tuning.learning import (
    AccuracyCounts,
    Guesses,
    StepYield,
    Yields,
    bucket_of,
)

_ROWS = 8  # where neither heads nor costs are known
_JUDGED_S = 0.002


class Tuner:
    """Trees for the answers of one target.

    Attributes:
        costs: What a step costs; None where that wasn't measured.
    """

    def __init__(self, target: Target, costs: StepCosts | None = None) -> None:
        self.costs = costs
        self._target = target
        self._learned: dict[float, AccuracyCounts] = {}
        self._governors: dict[tuple[str, float], Governor] = {}
        self._yields: dict[tuple[str, float], Yields] = {}

    def target_for(self, settings: GenerateSettings) -> Target:
        """The target, its trees built of what was learned under these settings."""
        trees, bucket = self._target.trees, _bucket(settings)
        if trees is None:
            return self._target
        learned = self._learned.get(bucket)
        known = trees.at(bucket)
        tuned = known if learned is None else TreePresets(learned.accuracies, trees.default_rows)
        return self._target if tuned is trees else replace(self._target, trees=tuned)

    def budget(self, settings: GenerateSettings, length: int) -> RowBudget:
        """How many rows trees may have, and what these cost.

        Args:
            settings: How the answer is decoded.
            length: Committed rows that it will be decoded behind, about.
        """
        return self._budget(settings, length)._replace(
            lookahead=settings.lookahead, growth=settings.growth
        )

    def _budget(self, settings: GenerateSettings, length: int) -> RowBudget:
        spec = drafter_registry().get(settings.drafter)
        if not spec.drafts:
            return RowBudget(1)
        if settings.tree_rows or self.costs is None or not spec.weighs_rows:
            return RowBudget(settings.tree_rows or self.rows(settings, length))
        yields = self._yields_of(settings)
        rate = yields.tokens_per_s(self.costs.plain_s(length))
        # Where half of what is promised comes true, rows must promise twice their price; where more
        # does, it is what is likely anyway, and the last rows bring no more than they promise.
        share = min(1.0, yields.share)
        budget = self.costs.budget(MOST_ROWS, length, rate / share * yields.slowness)
        source_s = self._source_s(settings, spec)
        if len(source_s) == 1:
            return budget
        source_seconds = [seconds * rate / share for seconds in source_s]
        levels = _levels_that_pay(
            _rounded(self._accuracies(settings, spec)), source_seconds, budget.prices
        )
        # Where nothing else drafts, whether drafts pay is the governor's to say.
        return budget._replace(levels=max(levels, int(len(spec.sources) == 1)))

    def rows(self, settings: GenerateSettings, length: int) -> int:
        """Rows of all trees of an answer, root included, where they aren't weighed step by step.

        Args:
            settings: How the answer is decoded.
            length: Committed rows that it will be decoded behind, about.
        """
        target, spec = self.target_for(settings), drafter_registry().get(settings.drafter)
        if self.costs is None:
            return _ROWS if target.trees is None else target.trees.default_rows
        share = self._yields_of(settings).share
        order = _order(spec.accuracies(target))
        values = [share * value for value in order.values]
        rows = self.costs.best_rows(order.depths, values, length, self._source_s(settings, spec))
        # Where no tree seems to pay, the smallest is tried: the governor knows better, later.
        return max(2, rows)

    def shared_rows(self, settings: GenerateSettings, length: int, sharers: Sharers) -> int:
        """Rows of a tree, root included, where several answers decode in one pass.

        Each row of every one of them makes the pass longer for all.

        Args:
            settings: How the answer is decoded.
            length: Committed rows that it is decoded behind, about.
            sharers: Which answers there are, this one among them.
        """
        spec = drafter_registry().get(settings.drafter)
        most = max(1, (MOST_ROWS - sharers.plain) // max(1, sharers.drafting))
        if self.costs is None or not spec.drafts:
            return most
        order = _order(self._accuracies(settings, spec))
        share = self._yields_of(settings).share
        values = [share * value for value in order.values]
        source_s = self._source_s(settings, spec)
        return min(most, self.costs.best_rows(order.depths, values, length, source_s, sharers))

    def _accuracies(self, settings: GenerateSettings, spec: DrafterSpec) -> Accuracies:
        """How often each rank at each depth is right; where ranks say nothing, any at a depth."""
        return spec.accuracies(self.target_for(settings)) or self._yields_of(settings).depths

    def _source_s(self, settings: GenerateSettings, spec: DrafterSpec) -> tuple[float, ...]:
        """What drafting no level takes, one, two, ..."""
        assert self.costs is not None  # by the caller
        return self.costs.source_s(spec.sources, _bucket(settings) > 0)

    def plan(self, session_id: str, request_id: str, settings: GenerateSettings) -> Planned:
        """Which fixed trees the heads get under some settings, behind a short cache.

        Raises:
            EngineError: What a step costs is not known.
        """
        if self.costs is None:
            raise EngineError("What a step costs is not known.", "Calibrate the model first.")
        bucket, length = _bucket(settings), self.costs.lengths[0]
        spec, learned = fixed_tree_drafter(), self._learned.get(bucket)
        accuracies = spec.accuracies(self.target_for(settings))
        nodes = _best_nodes(accuracies)
        deepest = accumulate((node.head for node in nodes), max)
        source_s = self.costs.source_s(spec.sources, bucket > 0)
        return Planned(
            session_id=session_id,
            request_id=request_id,
            temperature=bucket,
            num_learned=0 if learned is None else learned.num_steps,
            head_accuracies=accuracies,
            tree_rows=self.rows(replace(settings, drafter=spec.name), length),
            source=spec.sources[0],
            best_nodes=nodes,
            tree_step_s=tuple(
                self.costs.tree_s(rows, depth, length, source_s)
                for rows, depth in enumerate(deepest, 2)
            ),
        )

    def governor(self, settings: GenerateSettings, length: int) -> Governor | None:
        """Watches whether drafts pay; None where nothing can be compared.

        Answers of one drafter and temperature share it: most are too short to tell on their own.
        Nobody waits for a model whose step is shorter than two milliseconds, and what lies around
        such a step takes as long as itself: there it isn't judged.
        """
        plain_step_s = 0.0 if self.costs is None else self.costs.plain_s(length)
        if plain_step_s < _JUDGED_S:
            return None
        kind = (settings.drafter, _bucket(settings))
        governor = self._governors.setdefault(kind, Governor(plain_step_s))
        if governor.num_rested == 0:
            governor.plain_step_s = plain_step_s  # for this length
        return governor

    def judge(self, settings: GenerateSettings, length: int, steps: Sequence[StepYield]) -> None:
        """Learn what the trees of an answer brought, and in which time.

        Args:
            settings: How it was decoded.
            length: Committed rows that it was decoded behind, about.
            steps: Its steps, but for those that rested.
        """
        measured_s = () if self.costs is None else self.costs.steps_s(MOST_ROWS, length)
        self._yields_of(settings).add(steps, measured_s)

    def learned(self) -> dict[str, Any]:
        """What was learned of acceptance, for `go_on`."""
        return {
            "heads": [[bucket, counts.to_json()] for bucket, counts in self._learned.items()],
            "drafters": [[*kind, of.to_json()] for kind, of in self._yields.items()],
        }

    def go_on(self, raw: Any) -> None:
        """Go on from what was learned before, of the same model and heads.

        Raises:
            KeyError: A key is missing.
            TypeError: A value has another type.
            ValueError: It makes no sense; nothing is learned from it.
        """
        learned, yields = {}, {}
        for bucket, counts in raw["heads"] if self._target.trees is not None else ():
            assert self._target.trees is not None
            learned[float(bucket)] = AccuracyCounts(self._target.trees.at(bucket).head_accuracies)
            learned[float(bucket)].go_on(counts)
        for name, bucket, counts in raw["drafters"]:
            yields[str(name), float(bucket)] = Yields()
            yields[str(name), float(bucket)].go_on(counts)
        self._learned, self._yields = learned, yields

    def _yields_of(self, settings: GenerateSettings) -> Yields:
        return self._yields.setdefault((settings.drafter, _bucket(settings)), Yields())

    def learn(
        self,
        settings: GenerateSettings,
        guesses: Sequence[tuple[int, Guesses]],
        token_ids: Sequence[int],
    ) -> None:
        """Learn from an answer.

        Args:
            settings: How it was decoded.
            guesses: What the heads guessed, each with the place of the first guessed token.
            token_ids: The whole text.
        """
        if self._target.trees is None or not guesses:
            return
        bucket = _bucket(settings)
        if bucket not in self._learned:
            self._learned[bucket] = AccuracyCounts(self._target.trees.at(bucket).head_accuracies)
        for place, best in guesses:
            self._learned[bucket].learn(best, token_ids[place : place + len(best)])


def _levels_that_pay(
    accuracies: Accuracies, source_seconds: Sequence[float], prices: Sequence[float]
) -> int:
    """How many levels bring most beyond the price of asking for them and of their rows.

    Args:
        accuracies: How often each rank at each depth is right.
        source_seconds: Price of asking for 0, 1, 2, ... levels, in tokens.
        prices: Price of 1, 2, ... rows, in tokens.
    """
    left = []
    for count, price in enumerate(source_seconds):
        worths = accumulate(_order(accuracies[:count]).values, initial=0.0)
        left.append(max(map(sub, worths, prices)) - price)
    return left.index(max(left))


def _rounded(accuracies: Accuracies) -> Accuracies:
    """Nearly the same ones for answer after answer, of which much is known already."""
    return tuple(tuple(round(share, 2) for share in row) for row in accuracies)


class _Order(NamedTuple):
    """Draft nodes, the most valuable first: their depths and their values."""

    depths: tuple[int, ...]
    values: tuple[float, ...]


@lru_cache(maxsize=64)
def _order(accuracies: Accuracies) -> _Order:
    order = grow(accuracies, MOST_ROWS - 1)
    return _Order(tuple(len(path) for path, _ in order), tuple(value for _, value in order))


def _best_nodes(accuracies: Accuracies) -> tuple[BestNode, ...]:
    """The draft nodes of the best trees of such heads, the most valuable first."""
    places: dict[SearchPath, int] = {(): 0}
    nodes = []
    for number, (path, value) in enumerate(grow(accuracies, MOST_ROWS - 1), start=1):
        places[path] = number
        nodes.append(BestNode(places[path[:-1]], len(path), path[-1], value))
    return tuple(nodes)


def _bucket(settings: GenerateSettings) -> float:
    return bucket_of(settings, rule_registry().get(settled(settings).rule).choice.draws)
