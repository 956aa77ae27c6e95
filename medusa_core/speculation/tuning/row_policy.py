"""Row policy: how many rows and levels of drafts an answer gets, and whether it drafts at all."""

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
from medusa_core.runtime.tree.search import SearchPath, grow
from medusa_core.runtime.tree.step import NO_COSTS, RowBudget
from medusa_core.runtime.tree.tables import Accuracies
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.lineup import drafter_registry, fixed_tree_drafter
from medusa_core.speculation.drafters.source import source_registry
from medusa_core.speculation.tuning.acceptance_model import AcceptanceModel, TopTokens, in_growth
from medusa_core.speculation.tuning.acceptance_ratios import AcceptanceRatios
from medusa_core.speculation.tuning.cost_model import CostModel, checked_speed_up
from medusa_core.speculation.tuning.governor import Governor
from medusa_core.speculation.tuning.step_costs import (
    ALONE,
    MAX_ROWS,
    PROBED_PATHS,
    PassMix,
    StepCosts,
)
from medusa_core.speculation.tuning.step_outcome import AnswerKind, StepOutcome, temperature_of
from medusa_core.system.native.constants import MAX_LEVELS

_DEFAULT_ROWS = 8  # without heads and measured costs
_MIN_JUDGED_S = 0.002


class RowPolicy:
    """Decides how the answers of one target draft.

    | Input | Source |
    |---|---|
    | seconds of steps of n rows, and of drafting n levels | `CostModel` |
    | tokens per second of similar answers | `CostModel` |
    | probability that a draft of a rank, level or source is accepted | `AcceptanceModel` |
    | accepted over expected drafts of similar answers | `AcceptanceModel` |
    | fixed tree size, form of trees, temperature | the answer's settings |
    | rows of other answers in the pass | `PassMix`, from the scheduler |

    | Decision | Rule |
    |---|---|
    | `budget`: costs of rows and levels in tokens, for trees grown step by step | seconds times
      tokens per second: a row must yield more tokens than its time does on average |
    | `rows`, `shared_rows`: size of fixed trees, and of trees in shared passes | the most expected
      tokens per second |
    | `governor`: when drafting pauses | observed tokens per second below plain decoding's |
    """

    def __init__(self, target: Target, costs: StepCosts | None = None) -> None:
        self._target = target
        self._cost_model = CostModel(costs)
        self._acceptance = AcceptanceModel(target)
        self._governors: dict[AnswerKind, Governor] = {}

    @property
    def costs(self) -> StepCosts | None:
        """The measured costs of steps; None if there are none."""
        return self._cost_model.costs

    @costs.setter
    def costs(self, costs: StepCosts | None) -> None:
        """Replace the measured costs; whether drafts are profitable is open again."""
        if costs != self._cost_model.costs:
            self._cost_model.set_costs(costs)
            self._governors.clear()

    def target_for(self, settings: GenerateSettings) -> Target:
        """The target, with trees for the head accuracies learned under these settings."""
        return self._acceptance.target_for(settings)

    def acceptance_ratios(
        self, settings: GenerateSettings, drafter: DrafterSpec
    ) -> AcceptanceRatios | None:
        """Corrections of a drafter's probabilities; None if the form of its trees is given."""
        return self._acceptance.ratios(settings, drafter)

    def budget(
        self, settings: GenerateSettings, length: int, drafter: DrafterSpec | None = None
    ) -> RowBudget:
        """Maximum rows of an answer's trees, the costs of rows and levels, and corrections.

        Args:
            settings: The answer's settings.
            length: Approximate number of cached rows.
            drafter: The drafter; None for the registered one that the settings name.
        """
        spec = drafter or drafter_registry().get(settings.drafter)
        ratios = self.acceptance_ratios(settings, spec)
        return self._row_costs(settings, length, spec)._replace(
            lookahead=settings.lookahead,
            growth=settings.growth,
            acceptance_ratios=NO_COSTS if ratios is None else ratios.table,
        )

    def _row_costs(self, settings: GenerateSettings, length: int, spec: DrafterSpec) -> RowBudget:
        """Maximum rows, and the costs of rows and levels in tokens; see `budget`."""
        if not spec.drafts:
            return RowBudget(1)
        if settings.tree_rows or self.costs is None or not spec.weighs_rows:
            return RowBudget(settings.tree_rows or self.rows(settings, length, spec))
        tokens_per_s = self.tokens_per_s(settings, length)
        speed = self._cost_model.speed(AnswerKind.of(settings))
        budget = self.costs.budget(MAX_ROWS, length, tokens_per_s * speed.row_factor)
        by_level = [] if settings.growth != AUTO_GROWTH else _level_sources(spec)
        at_once = [name for name in spec.sources if name not in by_level]
        budget = budget._replace(draft_costs=self._draft_costs(settings, by_level, tokens_per_s))
        draft_s = self._draft_s(settings, at_once)
        if len(draft_s) == 1:
            return budget
        level_costs = [seconds * tokens_per_s * speed.draft_factor for seconds in draft_s]
        # Rounded, so that nearly equal accuracies of one answer after another hit the cache.
        accuracies = _rounded(self._acceptance.accuracies(settings, spec))
        levels = _profitable_levels(accuracies, level_costs, budget.row_costs)
        # If nothing else drafts, it is the governor that decides whether to draft.
        least = int(len(spec.sources) == 1)
        return budget._replace(levels=max(levels, least))

    def tokens_per_s(self, settings: GenerateSettings, length: int) -> float:
        """Tokens per second that a row of drafts must exceed to be profitable; 1 without costs.

        Args:
            settings: The answer's settings.
            length: Approximate number of cached rows.
        """
        if self.costs is None:
            return 1.0
        kind = AnswerKind.of(settings)
        # Divide by the acceptance ratio, capped at 1: an over-confident drafter must clear a higher
        # bar, an under-confident one gets no discount, as its last rows yield no more than it says.
        ratio = min(1.0, self._acceptance.rates(kind).ratio)
        return self._cost_model.tokens_per_s(kind, length) / ratio

    def _draft_costs(
        self, settings: GenerateSettings, sources: Sequence[str], tokens_per_s: float
    ) -> array[float]:
        """`RowBudget.draft_costs`: acceptance rate and costs of drafting, level by level.

        Args:
            settings: The answer's settings.
            sources: Names of the sources that are queried level by level.
            tokens_per_s: Tokens per second that drafts must exceed, to convert seconds to tokens.
        """
        assert self.costs is not None  # by the caller
        kind = AnswerKind.of(settings)
        draws = kind.temperature > 0
        wide, chain = (
            self.costs.source_s(sources, draws, is_chain=is_chain) for is_chain in (False, True)
        )
        if len(wide) == 1:
            return NO_COSTS
        rate = tokens_per_s * self._cost_model.speed(kind).draft_factor
        accepted = [row[0] for row in self._acceptance.rates(kind).by_level]
        values: list[float] = []
        levels = zip(_per_level(wide), _per_level(chain), strict=True)
        for level, (wide_s, chain_s) in enumerate(levels):
            path_s = max(0.0, wide_s - chain_s) / (PROBED_PATHS - 1)
            values += (accepted[min(level, len(accepted) - 1)], rate * chain_s, rate * path_s)
        return array("f", values)

    def rows(
        self, settings: GenerateSettings, length: int, drafter: DrafterSpec | None = None
    ) -> int:
        """Rows of fixed trees, root included.

        Args:
            settings: The answer's settings.
            length: Approximate number of cached rows.
            drafter: Drafter; None for that of the settings.
        """
        target = self.target_for(settings)
        spec = drafter or drafter_registry().get(settings.drafter)
        if self.costs is None:
            return _DEFAULT_ROWS if target.trees is None else target.trees.default_rows
        accuracies = in_growth(spec.accuracies(target), settings)
        # If no tree seems profitable, the smallest is tried: later the governor decides.
        return max(2, self._best_rows(settings, length, spec, accuracies))

    def shared_rows(self, settings: GenerateSettings, length: int, mix: PassMix) -> int:
        """Rows of a tree, root included, if several answers decode in one pass.

        Each of their rows makes the pass longer for all.

        Args:
            settings: The answer's settings.
            length: Approximate number of cached rows.
            mix: The answers of the pass, this one included.
        """
        spec = drafter_registry().get(settings.drafter)
        max_rows = max(1, (MAX_ROWS - mix.plain) // max(1, mix.drafting))
        if self.costs is None or not spec.drafts:
            return max_rows
        accuracies = self._acceptance.accuracies(settings, spec)
        return min(max_rows, self._best_rows(settings, length, spec, accuracies, mix))

    def _best_rows(
        self,
        settings: GenerateSettings,
        length: int,
        spec: DrafterSpec,
        accuracies: Accuracies,
        mix: PassMix = ALONE,
    ) -> int:
        """The most profitable number of rows of a fixed tree; arguments as in `shared_rows`."""
        assert self.costs is not None  # by the caller
        nodes = _nodes_by_value(accuracies)
        ratio = self._acceptance.rates(AnswerKind.of(settings)).ratio
        values = [ratio * value for value in nodes.values]
        draft_s = self._draft_s(settings, spec.sources)
        return self.costs.best_rows(nodes.depths, values, length, draft_s, mix)

    def _draft_s(self, settings: GenerateSettings, sources: Sequence[str]) -> tuple[float, ...]:
        """Cumulative draft seconds; index k is the time for k levels."""
        assert self.costs is not None  # by the caller
        draws, is_chain = temperature_of(settings) > 0, settings.growth == CHAIN
        return self.costs.source_s(sources, draws, is_chain=is_chain)

    def plan(self, session_id: str, request_id: str, settings: GenerateSettings) -> Planned:
        """The fixed trees that the heads would use under some settings, with few cached rows.

        Raises:
            EngineError: The costs of steps weren't measured.
        """
        if self.costs is None:
            raise EngineError("What a step costs is not known.", "Calibrate the model first.")
        temperature, length = temperature_of(settings), self.costs.lengths[0]
        spec = fixed_tree_drafter()
        accuracies = spec.accuracies(self.target_for(settings))
        nodes = _best_nodes(accuracies)
        max_depths = accumulate((node.head for node in nodes), max)
        draft_s = self.costs.source_s(spec.sources, temperature > 0)
        return Planned(
            session_id=session_id,
            request_id=request_id,
            temperature=temperature,
            num_learned=self._acceptance.num_steps(temperature),
            head_accuracies=accuracies,
            tree_rows=self.rows(replace(settings, drafter=spec.name), length),
            source=spec.sources[0],
            best_nodes=nodes,
            tree_step_s=tuple(
                self.costs.tree_s(rows, depth, length, draft_s)
                for rows, depth in enumerate(max_depths, 2)
            ),
        )

    def governor(self, settings: GenerateSettings, length: int) -> Governor | None:
        """The governor that pauses unprofitable drafting; None if steps can't be compared.

        Answers of one kind share it: most are too short to judge on their own. Steps shorter than
        two milliseconds aren't judged: the work around them takes as long, and nobody waits.
        """
        plain_step_s = 0.0 if self.costs is None else self.costs.plain_s(length)
        if plain_step_s < _MIN_JUDGED_S:
            return None
        kind = AnswerKind.of(settings)
        if kind not in self._governors:
            speed_up = self._cost_model.speed(kind).speed_up
            self._governors[kind] = Governor(plain_step_s, speed_up)
        self._governors[kind].expected_s = plain_step_s
        return self._governors[kind]

    def observe(
        self,
        settings: GenerateSettings,
        length: int,
        outcomes: Sequence[StepOutcome],
        drafter: DrafterSpec | None = None,
    ) -> None:
        """Learn from steps of an answer.

        Args:
            settings: The answer's settings.
            length: Approximate number of cached rows.
            outcomes: Its steps, without those of paused drafting.
            drafter: The drafter; None learns nothing of the time of drafting.
        """
        kind = AnswerKind.of(settings)
        self._acceptance.observe(kind, outcomes)
        self._cost_model.observe(kind, length, outcomes, drafter)

    def learn_heads(
        self,
        settings: GenerateSettings,
        top_tokens: Sequence[tuple[int, TopTokens]],
        token_ids: Sequence[int],
    ) -> None:
        """Count which ranks of the heads were right; see `AcceptanceModel.learn_heads`."""
        self._acceptance.learn_heads(settings, top_tokens, token_ids)

    def to_json(self) -> dict[str, Any]:
        """What was learned, for `load`; seconds are of the moment and aren't kept."""
        learned = self._acceptance.to_json()
        for drafter, temperature, growth, rates in learned["drafters"]:
            speed = self._cost_model.speed(AnswerKind(drafter, temperature, growth))
            rates["pace"] = speed.speed_up or 1.0
        return learned

    def load(self, raw: Any) -> None:
        """Continue from what was learned in earlier runs, of the same model and heads.

        Raises:
            KeyError: A key is missing.
            TypeError: A value has another type.
            ValueError: A value is out of range; nothing was loaded.
        """
        acceptance = AcceptanceModel(self._target)
        acceptance.load(raw)
        speed_ups = {
            AnswerKind(str(name), float(bucket), str(growth)): checked_speed_up(rates["pace"])
            for name, bucket, growth, rates in raw["drafters"]
        }
        self._cost_model.load(speed_ups)
        self._acceptance = acceptance


def _profitable_levels(
    accuracies: Accuracies, level_costs: Sequence[float], row_costs: Sequence[float]
) -> int:
    """The number of levels with the most expected tokens beyond the costs of drafts and rows.

    Args:
        accuracies: Accuracy of each rank at each depth.
        level_costs: Cost of drafting 0, 1, 2, ... levels, in tokens.
        row_costs: Cost of 1, 2, ... rows, in tokens.
    """
    gains = []
    for levels, level_cost in enumerate(level_costs):
        expected = accumulate(_nodes_by_value(accuracies[:levels]).values, initial=0.0)
        gains.append(max(map(sub, expected, row_costs)) - level_cost)
    return gains.index(max(gains))


def _level_sources(drafter: DrafterSpec) -> list[str]:
    """Names of a drafter's sources that are queried level by level."""
    sources = source_registry()
    known = (sources.get(name) for name in drafter.sources if name in sources.names)
    return [spec.name for spec in known if not spec.drafts_at_once]


def _per_level(cumulative_s: Sequence[float]) -> list[float]:
    """Convert cumulative draft seconds to seconds per level, padded with zeros."""
    each = [later - before for before, later in pairwise(cumulative_s)]
    return (each + [0.0] * MAX_LEVELS)[:MAX_LEVELS]


def _rounded(accuracies: Accuracies) -> Accuracies:
    """Accuracies with two decimals."""
    return tuple(tuple(round(share, 2) for share in row) for row in accuracies)


class _NodesByValue(NamedTuple):
    """Depths and acceptance probabilities of draft nodes, the most probable first."""

    depths: tuple[int, ...]
    values: tuple[float, ...]


@lru_cache(maxsize=64)
def _nodes_by_value(accuracies: Accuracies) -> _NodesByValue:
    """The most probable draft nodes of heads with such accuracies."""
    nodes = grow(accuracies, MAX_ROWS - 1)
    return _NodesByValue(tuple(len(path) for path, _ in nodes), tuple(value for _, value in nodes))


def _best_nodes(accuracies: Accuracies) -> tuple[BestNode, ...]:
    """The draft nodes of the best trees of such heads, the most probable first."""
    indices: dict[SearchPath, int] = {(): 0}
    nodes = []
    for index, (path, value) in enumerate(grow(accuracies, MAX_ROWS - 1), start=1):
        indices[path] = index
        nodes.append(BestNode(indices[path[:-1]], len(path), path[-1], value))
    return tuple(nodes)
