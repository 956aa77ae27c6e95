"""Which tree an answer gets: from what a step costs here and how often heads have been right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from operator import sub
from typing import NamedTuple

from medusa_core.drafters.drafter import accuracies_of, drafter_registry
from medusa_core.errors import EngineError
from medusa_core.messages import BestNode, GenerateSettings, Planned
from medusa_core.pace.costs import StepCosts
from medusa_core.pace.governor import Governor
from medusa_core.pace.learning import Guesses, Learned, StepYield, Yields, bucket_of
from medusa_core.rules.rule import rule_registry
from medusa_core.target import Target
from medusa_core.tree.presets import Accuracies, TreeTable
from medusa_core.tree.search import Path, grow
from medusa_core.types import RowBudget

MOST_ROWS = 64
_ROWS = 8  # where neither heads nor costs are known
# Tokens between looks at what heads bring: before that is known, where they pay, where they don't.
_SAMPLES, _ENOUGH = (2, 16, 256), 16


class Tuner:
    """Trees for the answers of one target.

    Attributes:
        costs: What a step costs; None where that wasn't measured.
    """

    def __init__(self, target: Target, costs: StepCosts | None = None) -> None:
        self.costs = costs
        self._target = target
        self._learned: dict[float, Learned] = {}
        self._governors: dict[tuple[str, float], Governor] = {}
        self._yields: dict[tuple[str, float], Yields] = {}

    def target_for(self, settings: GenerateSettings) -> Target:
        """The target, its trees built of what was learned under these settings."""
        trees, bucket = self._target.trees, _bucket(settings)
        if trees is None:
            return self._target
        learned = self._learned.get(bucket)
        known = trees.at(bucket)
        tuned = known if learned is None else TreeTable(learned.accuracies, trees.default_rows)
        return self._target if tuned is trees else replace(self._target, trees=tuned)

    def budget(self, settings: GenerateSettings, length: int) -> RowBudget:
        """How many rows trees may have, and what these cost.

        Args:
            settings: How the answer is decoded.
            length: Committed rows that it will be decoded behind, about.
        """
        spec = drafter_registry().get(settings.drafter)
        if not spec.drafts:
            return RowBudget(1)
        if settings.tree_rows or self.costs is None or not spec.weighs_rows:
            return RowBudget(settings.tree_rows or self.rows(settings, length))
        yields = self._yields_of(settings)
        pace = yields.tokens_per_s(self.costs.plain_s(length))
        # Where half of what is promised comes true, rows must promise twice their price; where more
        # does, it is what is likely anyway, and the last rows bring no more than they promise.
        share = min(1.0, yields.share)
        budget = self.costs.budget(MOST_ROWS, length, pace / share * yields.slowness)
        asked = [
            self.costs.drafting_s(count, _bucket(settings) > 0) * pace / share
            for count in range(len(self.costs.draft_s) + 1)
        ]
        accuracies = _rounded(accuracies_of(self.target_for(settings)))
        num_heads, brings = _heads_that_pay(accuracies, asked, budget.prices)
        if settings.watches:
            return budget._replace(num_heads=max(1, num_heads))
        brings = yields.beside_others(share * brings, pace * yields.slowness)
        asking_s = yields.asking_s(self.costs.drafting_s(num_heads, _bucket(settings) > 0))
        asks_rarely = brings < pace * asking_s
        often = _SAMPLES[1 + asks_rarely] if yields.num_compared >= _ENOUGH else _SAMPLES[0]
        return budget._replace(num_heads=num_heads, asks_rarely=asks_rarely, sample_every=often)

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
        rows = self.costs.best_rows(order.depths, values, length, _bucket(settings) > 0)
        # Where no tree seems to pay, the smallest is tried: the governor knows better, later.
        return max(2, rows)

    def plan(self, session_id: str, request_id: str, settings: GenerateSettings) -> Planned:
        """Which trees the heads get under some settings, behind a short cache.

        Raises:
            EngineError: What a step costs is not known.
        """
        if self.costs is None:
            raise EngineError("What a step costs is not known.", "Calibrate the model first.")
        bucket, length = _bucket(settings), self.costs.lengths[0]
        trees, learned = self.target_for(settings).trees, self._learned.get(bucket)
        accuracies = () if trees is None else trees.head_accuracies
        nodes = _best_nodes(accuracies)
        deepest = accumulate((node.head for node in nodes), max)
        return Planned(
            session_id=session_id,
            request_id=request_id,
            temperature=bucket,
            num_learned=0 if learned is None else learned.num_steps,
            head_accuracies=accuracies,
            tree_rows=self.rows(replace(settings, drafter="medusa"), length),
            best_nodes=nodes,
            tree_step_s=tuple(
                self.costs.tree_s(rows, depth, length, bucket > 0)
                for rows, depth in enumerate(deepest, 2)
            ),
        )

    def governor(self, settings: GenerateSettings, length: int) -> Governor | None:
        """Watches whether drafts pay; None where nothing can be compared.

        Answers of one drafter and temperature share it: most are too short to tell on their own.
        """
        if self.costs is None:
            return None
        kind = (settings.drafter, _bucket(settings))
        plain_step_s = self.costs.plain_s(length)
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
            self._learned[bucket] = Learned(self._target.trees.at(bucket).head_accuracies)
        for place, best in guesses:
            self._learned[bucket].learn(best, token_ids[place : place + len(best)])


def _heads_that_pay(
    accuracies: Accuracies, asked: Sequence[float], prices: Sequence[float]
) -> tuple[int, float]:
    """How many heads bring most beyond their own price, `asked`, and that of their rows.

    And what these bring, the price of their rows left out, where nothing else drafts.
    """
    brings = []
    for count in range(len(asked)):
        worths = accumulate(_order(accuracies[:count]).values, initial=0.0)
        brings.append(max(map(sub, worths, prices)))
    left = list(map(sub, brings, asked))
    count = left.index(max(left))
    return count, brings[count]


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
    places: dict[Path, int] = {(): 0}
    nodes = []
    for number, (path, value) in enumerate(grow(accuracies, MOST_ROWS - 1), start=1):
        places[path] = number
        nodes.append(BestNode(places[path[:-1]], len(path), path[-1], value))
    return tuple(nodes)


def _bucket(settings: GenerateSettings) -> float:
    return bucket_of(settings, rule_registry().get(settings.rule).draws)
