"""Which tree an answer gets: from what a step costs here and how often heads have been right."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import sub
from typing import Any, NamedTuple

from medusa_core.errors import EngineError
from medusa_core.loading.target import Target
from medusa_core.messages import AUTO_GROWTH, CHAIN, BestNode, GenerateSettings, Planned
from medusa_core.runtime.tree.search import (
    SearchPath,
    grow,
)
from medusa_core.runtime.tree.step import NO_PRICES, RowBudget
from medusa_core.runtime.tree.tables import (
    Accuracies,
    TreePresets,
)
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.forced_text import GRAMMAR
from medusa_core.speculation.drafters.growth import MOST_LEVELS
from medusa_core.speculation.drafters.lineup import drafter_registry, fixed_tree_drafter
from medusa_core.speculation.drafters.source import source_registry
from medusa_core.speculation.rules.rule import (
    rule_registry,
    settled,
)
from medusa_core.speculation.tuning.chance_trust import ChanceTrust
from medusa_core.speculation.tuning.costs import (
    ASKED_PATHS,
    MOST_ROWS,
    PassMix,
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


class Kind(NamedTuple):
    """Answers that are judged together.

    Attributes:
        drafter: Name of the drafter.
        bucket: Of the temperature.
        growth: One of `GROWTHS`.
    """

    drafter: str
    bucket: float
    growth: str


class Tuner:
    """Trees for the answers of one target."""

    def __init__(self, target: Target, costs: StepCosts | None = None) -> None:
        self._costs = costs
        self._target = target
        self._learned: dict[float, AccuracyCounts] = {}
        self._governors: dict[Kind, Governor] = {}
        self._yields: dict[Kind, Yields] = {}
        self._trusts: dict[tuple[str, float], ChanceTrust] = {}

    @property
    def costs(self) -> StepCosts | None:
        """What a step costs; None where that wasn't measured."""
        return self._costs

    @costs.setter
    def costs(self, costs: StepCosts | None) -> None:
        if costs == self._costs:
            return
        self._costs = costs  # whether drafts pay is an open question again
        self._governors.clear()
        for yields in self._yields.values():
            yields.forget_times()

    def target_for(self, settings: GenerateSettings) -> Target:
        """The target, its trees built of what was learned under these settings."""
        trees, bucket = self._target.trees, _bucket(settings)
        if trees is None:
            return self._target
        learned = self._learned.get(bucket)
        known = trees.at(bucket)
        tuned = known if learned is None else TreePresets(learned.accuracies, trees.default_rows)
        return self._target if tuned is trees else replace(self._target, trees=tuned)

    def budget(
        self, settings: GenerateSettings, length: int, drafter: DrafterSpec | None = None
    ) -> RowBudget:
        """How many rows trees may have, what these cost, and how drafts are trusted.

        Args:
            settings: How the answer is decoded.
            length: Committed rows that it will be decoded behind, about.
            drafter: Who drafts; None for the registered one that the settings name.
        """
        spec = drafter or drafter_registry().get(settings.drafter)
        trust = self.trust(settings, spec)
        return self._budget(settings, length, spec)._replace(
            lookahead=settings.lookahead,
            growth=settings.growth,
            trust=NO_PRICES if trust is None else trust.table,
        )

    def trust(self, settings: GenerateSettings, drafter: DrafterSpec) -> ChanceTrust | None:
        """How far chances are trusted; None where a tree's form is asked for, or is always one."""
        if settings.growth != AUTO_GROWTH or not drafter.weighs_rows:
            return None
        names = (*_serving(drafter, self._target), GRAMMAR.name)
        return self._trusts.setdefault((drafter.name, _bucket(settings)), ChanceTrust(names))

    def _budget(self, settings: GenerateSettings, length: int, spec: DrafterSpec) -> RowBudget:
        if not spec.drafts:
            return RowBudget(1)
        if settings.tree_rows or self.costs is None or not spec.weighs_rows:
            return RowBudget(settings.tree_rows or self.rows(settings, length, spec))
        per_s = self._tokens_per_s(settings, length)
        slowness = self._yields_of(settings).slowness
        budget = self.costs.budget(MOST_ROWS, length, per_s * slowness)
        by_level = [] if settings.growth != AUTO_GROWTH else _asked_by_level(spec)
        at_once = [name for name in spec.sources if name not in by_level]
        asking = self._asking(settings, by_level, per_s)
        source_s = self._source_s(settings, at_once)
        if len(source_s) == 1:
            return budget._replace(asking=asking)
        asking_slowness = self._yields_of(settings).asking_slowness
        source_seconds = [seconds * per_s * asking_slowness for seconds in source_s]
        levels = _levels_that_pay(
            _rounded(self._accuracies(settings, spec)), source_seconds, budget.prices
        )
        # Where nothing else drafts, whether drafts pay is the governor's to say.
        least = int(len(spec.sources) == 1)
        return budget._replace(asking=asking, levels=max(levels, least))

    def price(self, settings: GenerateSettings, length: int) -> float:
        """What time is worth, of whatever an answer's drafts cost; to be compared with itself.

        Args:
            settings: How the answer is decoded.
            length: Committed rows that it is decoded behind, about.
        """
        return 1.0 if self.costs is None else self._tokens_per_s(settings, length)

    def _tokens_per_s(self, settings: GenerateSettings, length: int) -> float:
        """How many promised tokens a second is worth."""
        assert self.costs is not None  # by the caller
        yields = self._yields_of(settings)
        # Where half of what is promised comes true, rows must promise twice their price; where more
        # does, it is what is likely anyway, and the last rows bring no more than they promise.
        return yields.tokens_per_s(self.costs.plain_s(length)) / min(1.0, yields.share)

    def _asking(
        self, settings: GenerateSettings, sources: Sequence[str], rate: float
    ) -> array[float]:
        """What asking some sources for a level costs, and how likely it is to bring something.

        Args:
            settings: How the answer is decoded.
            sources: Those that are asked level by level.
            rate: Promised tokens that a second is worth.
        """
        assert self.costs is not None  # by the caller
        draws = _bucket(settings) > 0
        wide, chain = (
            self.costs.source_s(sources, draws, is_chain=is_chain) for is_chain in (False, True)
        )
        if len(wide) == 1:
            return NO_PRICES
        yields = self._yields_of(settings)
        rate *= yields.asking_slowness
        likely = [row[0] for row in yields.depths]
        values: list[float] = []
        for level, (wide_s, chain_s) in enumerate(zip(_each(wide), _each(chain), strict=True)):
            further_s = max(0.0, wide_s - chain_s) / (ASKED_PATHS - 1)
            values += (likely[min(level, len(likely) - 1)], rate * chain_s, rate * further_s)
        return array("f", values)

    def rows(
        self, settings: GenerateSettings, length: int, drafter: DrafterSpec | None = None
    ) -> int:
        """Rows of all trees of an answer, root included, where they aren't weighed step by step.

        Args:
            settings: How the answer is decoded.
            length: Committed rows that it will be decoded behind, about.
            drafter: As of `budget`.
        """
        target = self.target_for(settings)
        spec = drafter or drafter_registry().get(settings.drafter)
        if self.costs is None:
            return _ROWS if target.trees is None else target.trees.default_rows
        share = self._yields_of(settings).share
        order = _order(_of_growth(spec.accuracies(target), settings))
        values = [share * value for value in order.values]
        source_s = self._source_s(settings, spec.sources)
        rows = self.costs.best_rows(order.depths, values, length, source_s)
        # Where no tree seems to pay, the smallest is tried: the governor knows better, later.
        return max(2, rows)

    def shared_rows(self, settings: GenerateSettings, length: int, mix: PassMix) -> int:
        """Rows of a tree, root included, where several answers decode in one pass.

        Each row of every one of them makes the pass longer for all.

        Args:
            settings: How the answer is decoded.
            length: Committed rows that it is decoded behind, about.
            mix: Which answers there are, this one among them.
        """
        spec = drafter_registry().get(settings.drafter)
        most = max(1, (MOST_ROWS - mix.plain) // max(1, mix.drafting))
        if self.costs is None or not spec.drafts:
            return most
        order = _order(self._accuracies(settings, spec))
        share = self._yields_of(settings).share
        values = [share * value for value in order.values]
        source_s = self._source_s(settings, spec.sources)
        return min(most, self.costs.best_rows(order.depths, values, length, source_s, mix))

    def _accuracies(self, settings: GenerateSettings, spec: DrafterSpec) -> Accuracies:
        """How often each rank at each depth is right; where ranks say nothing, any at a depth."""
        of_ranks = _of_growth(spec.accuracies(self.target_for(settings)), settings)
        return of_ranks or self._yields_of(settings).depths

    def _source_s(self, settings: GenerateSettings, sources: Sequence[str]) -> tuple[float, ...]:
        """What drafting no level takes, one, two, ..."""
        assert self.costs is not None  # by the caller
        return self.costs.source_s(
            sources, _bucket(settings) > 0, is_chain=settings.growth == CHAIN
        )

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
        pace = self._yields_of(settings).pace
        governor = self._governors.setdefault(_kind(settings), Governor(plain_step_s, pace))
        governor.expected_s = plain_step_s
        return governor

    def judge(
        self,
        settings: GenerateSettings,
        length: int,
        steps: Sequence[StepYield],
        drafter: DrafterSpec | None = None,
    ) -> None:
        """Learn what the trees of an answer brought, and in which time.

        Args:
            settings: How it was decoded.
            length: Committed rows that it was decoded behind, about.
            steps: Its steps, but for those that rested.
            drafter: Who drafted; None for nothing to be learned of how long that took.
        """
        if self.costs is None:
            self._yields_of(settings).add(steps, ())
            return
        asked_s = self.costs.source_s(
            drafter.sources if drafter else (), _bucket(settings) > 0, is_chain=True
        )
        self._yields_of(settings).add(steps, self.costs.steps_s(MOST_ROWS, length), asked_s)

    def learned(self) -> dict[str, Any]:
        """What was learned of acceptance, for `go_on`."""
        return {
            "heads": [[bucket, counts.to_json()] for bucket, counts in self._learned.items()],
            "drafters": [[*kind, of.to_json()] for kind, of in self._yields.items()],
            "trust": [[*of, trust.to_json()] for of, trust in self._trusts.items()],
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
        for name, bucket, growth, counts in raw["drafters"]:
            yields[Kind(str(name), float(bucket), str(growth))] = of_kind = Yields()
            of_kind.go_on(counts)
        trusts = {}
        for name, bucket, counts in raw["trust"]:
            if name in drafter_registry().names:
                drafter = drafter_registry().get(name)
                names = (*_serving(drafter, self._target), GRAMMAR.name)
                trusts[str(name), float(bucket)] = trust = ChanceTrust(names)
                trust.go_on(counts)
        self._learned, self._yields, self._trusts = learned, yields, trusts

    def _yields_of(self, settings: GenerateSettings) -> Yields:
        return self._yields.setdefault(_kind(settings), Yields())

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


def _of_growth(accuracies: Accuracies, settings: GenerateSettings) -> Accuracies:
    """In a chain the best guesses alone."""
    if settings.growth != CHAIN:
        return accuracies
    return tuple(row[:1] for row in accuracies)


def _serving(drafter: DrafterSpec, target: Target) -> tuple[str, ...]:
    """Names of a drafter's sources that serve a target, in the order in which trees grow of them.

    One that isn't registered is the drafter's own.
    """
    sources = source_registry()
    return tuple(
        name
        for name in drafter.sources
        if name not in sources.names or sources.get(name).serves(target)
    )


def _asked_by_level(drafter: DrafterSpec) -> list[str]:
    """Names of its sources that are asked for each level anew."""
    sources = source_registry()
    known = (sources.get(name) for name in drafter.sources if name in sources.names)
    return [spec.name for spec in known if not spec.drafts_at_once]


def _each(seconds: Sequence[float]) -> list[float]:
    """Of every level alone what asking takes; nothing where sources have no further one.

    Args:
        seconds: Of asking for no level, one, two, ...
    """
    each = [later - before for before, later in pairwise(seconds)]
    return (each + [0.0] * MOST_LEVELS)[:MOST_LEVELS]


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


def _kind(settings: GenerateSettings) -> Kind:
    return Kind(settings.drafter, _bucket(settings), settings.growth)


def _bucket(settings: GenerateSettings) -> float:
    return bucket_of(settings, rule_registry().get(settled(settings).rule).choice.draws)
