"""Acceptance model: probabilities that draft tokens are accepted, learned from answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from medusa_core.loading.target import Target
from medusa_core.messages import AUTO_GROWTH, CHAIN, GenerateSettings
from medusa_core.runtime.tree.tables import Accuracies, TreePresets
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.forced_text import GRAMMAR
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.source import source_registry
from medusa_core.speculation.tuning.acceptance_ratios import AcceptanceRatios
from medusa_core.speculation.tuning.step_outcome import AnswerKind, StepOutcome, temperature_of

_PRIOR_WEIGHT = 60.0  # observations that a prior counts for
_MAX_SEEN = 4000.0  # beyond, older observations fade
_PRIOR_STEPS = 20.0
_FADING = 0.99
_LEVELS = 8
_PRIOR_RATE = 0.6  # accepted drafts of a level, before anything is known

TopTokens = Sequence[Sequence[int]]


class AcceptanceModel:
    """Probabilities of acceptance, by temperature and kind of answer.

    | Input | Source | Output |
    |---|---|---|
    | accuracy of each rank of each head | the table beside the heads | prior of `target_for` |
    | the heads' top tokens, and the tokens that followed | `learn_heads` | `target_for` |
    | expected and accepted drafts of each step, its levels | `observe` | `rates` |
    | probability of each draft, and whether it was accepted | `AcceptanceRatios.learn` | `ratios` |
    | all of this from earlier runs | `load`, from the measurement files | all of it |
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._heads: dict[float, AccuracyCounts] = {}  # by temperature
        self._rates: dict[AnswerKind, AcceptanceRates] = {}
        self._ratios: dict[tuple[str, float], AcceptanceRatios] = {}  # by drafter and temperature

    @property
    def kinds(self) -> Sequence[AnswerKind]:
        """Kinds of answers with observed steps."""
        return tuple(self._rates)

    def target_for(self, settings: GenerateSettings) -> Target:
        """The target, with trees for the head accuracies learned at these settings' temperature."""
        trees, temperature = self._target.trees, temperature_of(settings)
        if trees is None:
            return self._target
        counts, tuned = self._heads.get(temperature), trees.at(temperature)
        if counts is not None:
            tuned = TreePresets(counts.accuracies, trees.default_rows)
        return self._target if tuned is trees else replace(self._target, trees=tuned)

    def num_steps(self, temperature: float) -> int:
        """Number of steps from which head accuracies were learned at a temperature."""
        counts = self._heads.get(temperature)
        return 0 if counts is None else counts.num_steps

    def rates(self, kind: AnswerKind) -> AcceptanceRates:
        """Observed acceptance of a kind of answers."""
        if kind not in self._rates:
            self._rates[kind] = AcceptanceRates()
        return self._rates[kind]

    def accuracies(self, settings: GenerateSettings, drafter: DrafterSpec) -> Accuracies:
        """Accuracy of each rank at each depth; of any draft at a depth if ranks say nothing."""
        of_ranks = in_growth(drafter.accuracies(self.target_for(settings)), settings)
        return of_ranks or self.rates(AnswerKind.of(settings)).by_level

    def ratios(self, settings: GenerateSettings, drafter: DrafterSpec) -> AcceptanceRatios | None:
        """Corrections of a drafter's probabilities; None if the form of its trees is given."""
        if settings.growth != AUTO_GROWTH or not drafter.weighs_rows:
            return None
        key = (drafter.name, temperature_of(settings))
        if key not in self._ratios:
            self._ratios[key] = AcceptanceRatios(self._sources(drafter))
        return self._ratios[key]

    def observe(self, kind: AnswerKind, outcomes: Sequence[StepOutcome]) -> None:
        """Learn from steps of an answer."""
        for outcome in outcomes:
            self.rates(kind).add(outcome)

    def learn_heads(
        self,
        settings: GenerateSettings,
        top_tokens: Sequence[tuple[int, TopTokens]],
        token_ids: Sequence[int],
    ) -> None:
        """Count which ranks of the heads were right in an answer.

        Args:
            settings: The answer's settings.
            top_tokens: Position of the first drafted token, and the heads' tokens, of each step.
            token_ids: Prompt and answer.
        """
        if self._target.trees is None or not top_tokens:
            return
        temperature = temperature_of(settings)
        if temperature not in self._heads:
            self._heads[temperature] = self._prior_counts(temperature)
        for position, tokens in top_tokens:
            followed = token_ids[position : position + len(tokens)]
            self._heads[temperature].learn(tokens, followed)

    def to_json(self) -> dict[str, Any]:
        """The counts, for `load`; rates are listed with their kind."""
        return {
            "heads": [[bucket, counts.to_json()] for bucket, counts in self._heads.items()],
            "drafters": [[*kind, rates.to_json()] for kind, rates in self._rates.items()],
            "trust": [[*key, ratios.to_json()] for key, ratios in self._ratios.items()],
        }

    def load(self, raw: Any) -> None:
        """Continue from the counts of earlier runs, of the same model and heads.

        Raises:
            KeyError: A key is missing.
            TypeError: A value has another type.
            ValueError: A value is out of range; part of the counts may have been loaded.
        """
        for bucket, counts in raw["heads"] if self._target.trees is not None else ():
            self._heads[float(bucket)] = self._prior_counts(float(bucket))
            self._heads[float(bucket)].load(counts)
        for name, bucket, growth, rates in raw["drafters"]:
            self.rates(AnswerKind(str(name), float(bucket), str(growth))).load(rates)
        for name, bucket, ratios in raw["trust"]:
            if name in drafter_registry().names:
                sources = self._sources(drafter_registry().get(name))
                self._ratios[str(name), float(bucket)] = loaded = AcceptanceRatios(sources)
                loaded.load(ratios)

    def _prior_counts(self, temperature: float) -> AccuracyCounts:
        """New counts at a temperature, from the accuracies beside the heads."""
        assert self._target.trees is not None  # by the caller
        return AccuracyCounts(self._target.trees.at(temperature).head_accuracies)

    def _sources(self, drafter: DrafterSpec) -> tuple[str, ...]:
        """Names of a drafter's sources that can draft for the target, in the order of growth.

        A source that isn't registered is the drafter's own.
        """
        sources = source_registry()
        serving = (
            name
            for name in drafter.sources
            if name not in sources.names or sources.get(name).serves(self._target)
        )
        return (*serving, GRAMMAR.name)


def in_growth(accuracies: Accuracies, settings: GenerateSettings) -> Accuracies:
    """The accuracies that a tree's growth can use: in a chain those of rank 0."""
    if settings.growth != CHAIN:
        return accuracies
    return tuple(row[:1] for row in accuracies)


class AccuracyCounts:
    """Counts how often each rank of each head is right, at one temperature.

    All top tokens are counted, in the tree or not (else a pruned rank could never return), against
    the tokens that followed. Depth d counts only if the tokens before it were among the heads'
    tokens, as a node of a tree has such ancestors. The temperature changes what is right.

    Attributes:
        num_steps: Number of steps, faded ones included.
    """

    def __init__(self, prior: Accuracies) -> None:
        """Start from known accuracies.

        Args:
            prior: Per head, the probability that its rank 0, 1, ... is right.
        """
        self.num_steps = 0
        self._prior = prior
        self._seen = [0.0] * len(prior)
        self._right = [[0.0] * len(row) for row in prior]

    @property
    def accuracies(self) -> Accuracies:
        """Per head, the probability that its rank 0, 1, ... is right, given the path before it."""
        return tuple(
            tuple(
                (share * _PRIOR_WEIGHT + right) / (_PRIOR_WEIGHT + seen)
                for share, right in zip(shares, rights, strict=True)
            )
            for shares, rights, seen in zip(self._prior, self._right, self._seen, strict=True)
        )

    def learn(self, top_tokens: TopTokens, followed: Sequence[int]) -> None:
        """Count the heads' tokens of one step.

        Args:
            top_tokens: Per head its best tokens, best first.
            followed: The tokens that followed, as far as they are known.
        """
        self.num_steps += 1
        for depth, (best, token_id) in enumerate(zip(top_tokens, followed, strict=False)):
            if depth == len(self._seen):
                return
            if self._seen[depth] >= _MAX_SEEN:
                self._seen[depth] /= 2
                self._right[depth] = [count / 2 for count in self._right[depth]]
            self._seen[depth] += 1
            if token_id not in best:
                return
            rank = list(best).index(token_id)
            if rank < len(self._right[depth]):
                self._right[depth][rank] += 1

    def to_json(self) -> dict[str, Any]:
        """The counts, for `load`."""
        return {"steps": self.num_steps, "seen": self._seen, "right": self._right}

    def load(self, raw: Any) -> None:
        """Continue from the counts of earlier runs.

        Raises:
            KeyError: A key is missing.
            TypeError: A value has another type.
            ValueError: The counts are of other heads, or out of range.
        """
        seen = [float(count) for count in raw["seen"]]
        right = [[float(count) for count in row] for row in raw["right"]]
        sizes = [len(row) for row in self._prior]
        is_consistent = all(
            0 <= sum(row) <= count <= _MAX_SEEN for row, count in zip(right, seen, strict=True)
        )
        if [len(row) for row in right] != sizes or not is_consistent:
            raise ValueError("the counts are of other heads")
        self.num_steps, self._seen, self._right = int(raw["steps"]), seen, right


class AcceptanceRates:
    """Running averages of a kind of answers: accepted over expected drafts, and by level."""

    def __init__(self) -> None:
        self._expected = self._accepted = 0.0
        self._drafted_at, self._accepted_at = [0.0] * _LEVELS, [0.0] * _LEVELS

    @property
    def ratio(self) -> float:
        """Accepted over expected drafts; 1 before anything is known.

        Expectations were learned on other texts; this corrects them.
        """
        return (self._accepted + _PRIOR_WEIGHT) / (self._expected + _PRIOR_WEIGHT)

    @property
    def by_level(self) -> Accuracies:
        """Probability that a draft of level 1, 2, ... is accepted if those before it were."""
        return tuple(
            ((accepted + _PRIOR_STEPS * _PRIOR_RATE) / (drafted + _PRIOR_STEPS),)
            for accepted, drafted in zip(self._accepted_at, self._drafted_at, strict=True)
        )

    def add(self, outcome: StepOutcome) -> None:
        """Add a step."""
        # A step without drafts fades the ratio: a drafter with a low one must be tried again.
        is_drafted = outcome.expected_accepted > 0
        fading = 0.5 if self._expected >= _MAX_SEEN else 1.0 if is_drafted else _FADING
        self._expected = fading * self._expected + outcome.expected_accepted
        self._accepted = fading * self._accepted + outcome.num_accepted * is_drafted
        for level in range(outcome.levels, _LEVELS):  # levels that aren't drafted are tried again
            self._drafted_at[level] *= _FADING
            self._accepted_at[level] *= _FADING
        for level in range(min(outcome.levels, outcome.num_accepted + 1, _LEVELS)):
            if self._drafted_at[level] >= _MAX_SEEN:
                self._drafted_at[level] /= 2
                self._accepted_at[level] /= 2
            self._drafted_at[level] += 1
            self._accepted_at[level] += level < outcome.num_accepted

    def to_json(self) -> dict[str, Any]:
        """The counts, for `load`."""
        return {
            "promised": self._expected,
            "kept": self._accepted,
            "tried": self._drafted_at,
            "passed": self._accepted_at,
        }

    def load(self, raw: Any) -> None:
        """Continue from the counts of earlier runs.

        Raises:
            KeyError: A key is missing.
            TypeError: A value has another type.
            ValueError: A count is out of range.
        """
        expected, accepted = float(raw["promised"]), float(raw["kept"])
        drafted_at, accepted_at = (
            [float(count) for count in raw[key]] for key in ("tried", "passed")
        )
        pairs = zip(accepted_at, drafted_at, strict=True)
        is_consistent = all(0 <= less <= more for less, more in pairs)
        is_consistent = is_consistent and all(
            0 <= count <= 2 * _MAX_SEEN for count in (expected, accepted)
        )
        if len(drafted_at) != _LEVELS or not is_consistent:
            raise ValueError("the counts make no sense")
        self._expected, self._accepted = expected, accepted
        self._drafted_at, self._accepted_at = drafted_at, accepted_at
