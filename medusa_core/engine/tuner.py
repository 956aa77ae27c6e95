"""Which tree an answer gets: from what a step costs here and how often heads have been right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from medusa_core.engine.costs import StepCosts
from medusa_core.engine.drafter import drafter_registry
from medusa_core.engine.governor import Governor
from medusa_core.engine.learning import Guesses, Learned, Promises, bucket_of
from medusa_core.engine.rule import rule_registry
from medusa_core.errors import EngineError
from medusa_core.messages import BestNode, GenerateSettings, Planned
from medusa_core.target import Target
from medusa_core.tree.presets import Accuracies, TreeTable
from medusa_core.tree.search import Path, grow

MOST_ROWS = 64
_ROWS = 8  # where neither heads nor costs are known


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
        self._promises: dict[tuple[str, float], Promises] = {}

    def target_for(self, settings: GenerateSettings) -> Target:
        """The target, its trees built of what was learned under these settings."""
        trees, bucket = self._target.trees, _bucket(settings)
        if trees is None:
            return self._target
        learned = self._learned.get(bucket)
        known = trees.at(bucket)
        tuned = known if learned is None else TreeTable(learned.accuracies, trees.default_rows)
        return self._target if tuned is trees else replace(self._target, trees=tuned)

    def rows(self, settings: GenerateSettings, length: int) -> int:
        """Rows of the tree, root included.

        Args:
            settings: How the answer is decoded.
            length: Committed rows that it will be decoded behind, about.
        """
        target, spec = self.target_for(settings), drafter_registry().get(settings.drafter)
        worth = spec.worth(target, _bucket(settings))
        if not worth:
            return 1
        if self.costs is None:
            return _ROWS if target.trees is None else target.trees.default_rows
        share = self._promises_of(settings).share
        depths = [depth if spec.asks_heads else 0 for depth in _order(worth).depths]
        values = [share * value for value in _order(worth).values]
        rows = self.costs.best_rows(depths, values, length)
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
                self.costs.tree_s(rows, depth, length) for rows, depth in enumerate(deepest, 2)
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

    def judge(self, settings: GenerateSettings, steps: Sequence[tuple[int, int]]) -> None:
        """Compare what the trees of an answer promised with what came true.

        Args:
            settings: How it was decoded.
            steps: Of each step with drafts its rows and how many drafts were accepted.
        """
        spec = drafter_registry().get(settings.drafter)
        promised = _order(spec.worth(self.target_for(settings), _bucket(settings))).promised
        promises = self._promises_of(settings)
        for rows, num_accepted in steps:
            if promised:
                promises.add(promised[min(rows - 1, len(promised)) - 1], num_accepted)

    def _promises_of(self, settings: GenerateSettings) -> Promises:
        return self._promises.setdefault((settings.drafter, _bucket(settings)), Promises())

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


class _Order(NamedTuple):
    """Draft nodes, the most valuable first: their depths, their values, and the sums of these."""

    depths: tuple[int, ...]
    values: tuple[float, ...]
    promised: tuple[float, ...]


@lru_cache(maxsize=16)
def _order(worth: Accuracies) -> _Order:
    order = grow(worth, MOST_ROWS - 1)
    values = tuple(value for _, value in order)
    return _Order(tuple(len(path) for path, _ in order), values, tuple(accumulate(values)))


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
