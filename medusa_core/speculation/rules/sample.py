"""Sampling: draw from the target at each node, and descend if a child has the drawn token.

The token drawn at a node depends only on the target's logits and on its position's noise, never on
the drafts. So these may be chosen by that noise, and the text keeps its distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from medusa_core.messages import GenerateSettings, RuleChoice
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.step import (
    Acceptance,
    Chance,
    PositionNoise,
    SeededChance,
    WalkContext,
)
from medusa_core.speculation.rules.rule import (
    RuleNumbers,
    RulePath,
    RuleSpec,
    descend,
)
from medusa_core.speculation.rules.sampling import (
    LargestScores,
    Sampler,
    gumbel_noise_of,
)
from medusa_core.speculation.rules.shaping import Shaping


class Sample:
    """Draws with noise keyed by position, so that a seed gives one text with any drafter."""

    has_numbers = True

    def __init__(self, settings: GenerateSettings) -> None:
        self._seed = settings.seed
        self._temperature = settings.temperature
        self._shaping = Shaping(settings)
        self._sampler = Sampler(settings)

    def walk(self, tree: TokenTree, logits: Tensor, context: WalkContext) -> Acceptance:
        """Draw a token at each node on the way down; see `Rule`."""
        if logits.is_cuda and self._shaping.is_idle and context.grammar is None:
            return self._walk_on_card(tree, logits, context)
        rows = logits.cpu()  # at once, or each node would wait for the GPU

        def choose(node: int, path: RulePath) -> int:
            """Draw the token after a node."""
            row = self._shaping(rows[node], context, path)
            return self._sampler.draw(row, context.position + len(path))

        return descend(tree, choose)

    def _walk_on_card(self, tree: TokenTree, logits: Tensor, context: WalkContext) -> Acceptance:
        """Draw from the largest scores of each row, which a card sends in one download."""
        largest = LargestScores(logits, self._temperature)
        # While the card computes.
        positions = range(context.position, context.position + max(tree.shape.depths) + 1)
        self._sampler.prepare_noise(positions, largest.vocab_size)

        def choose(node: int, path: RulePath) -> int:
            """Draw the token after a node from its largest scores."""
            return self._sampler.draw_of_largest(largest, node, context.position + len(path))

        return descend(tree, choose)

    def chance(self, position: int) -> Chance | None:
        """The noise of the positions after the root, for drafters that draft the same tokens."""
        return _SampleChance(self._sampler, position)

    def numbers(
        self, row: Tensor, context: WalkContext, path: RulePath, token_id: int
    ) -> RuleNumbers:
        """The probability that the token was drawn with, and its Gumbel noise."""
        scores = self._sampler.log_probabilities(self._shaping(row, context, path))
        noise = gumbel_noise_of(self._seed, context.position + len(path), token_id)
        return (("probability", math.exp(scores[token_id])), ("noise", noise))


class _SampleChance(SeededChance):
    """The sampler's noise from a position on."""

    def __init__(self, sampler: Sampler, position: int) -> None:
        self._sampler, self._position = sampler, position

    def __call__(
        self, scores: Tensor, token_ids: Tensor | None, depths: Sequence[int] | None = None
    ) -> Tensor:
        """Add the noise of the positions at some depths; see `Chance`."""
        return self._sampler.shifted(scores, token_ids, self._position, depths)

    def noise(self, depth: int, vocab_size: int) -> PositionNoise:
        """Return the noise and filters of the position at a depth."""
        return self._sampler.noise(self._position + depth - 1, vocab_size)


SPEC = RuleSpec(
    RuleChoice(
        "sample",
        "Sample",
        "Draws each token by its probability.",
        is_exact=True,
        draws=True,
        numbers=(
            ("probability", "chance after temperature and filters"),
            ("noise", "noise drawn at this place"),
        ),
    ),
    preference=1,
    build=Sample,
)
