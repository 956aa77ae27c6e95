"""Typical acceptance: keep a draft that the target finds likely enough. Creative, not exact.

A draft token x after a node is accepted if p(x) > min(ε, δ · exp(−H(p))), where p is the target's
distribution there (after penalties and temperature; no filters) and H its entropy: the less certain
the target is, the lower the threshold. The longest accepted path wins, the likeliest of equally
long ones.

The bonus token after it is drawn from p with the seeded noise and the filters of `sample`: without
a drafter this rule *is* `sample`. With one, likely drafts are accepted more often than they would
be drawn, so that the text has another distribution.

Source: Medusa (Cai et al. 2024), section 2.3.1; there H is smoothed by 1e-5, here it is exact. As
there, δ is √ε unless it is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.messages import GenerateSettings, RuleChoice
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.step import (
    Acceptance,
    Chance,
    WalkContext,
)
from medusa_core.speculation.rules.rule import (
    RuleNumbers,
    RulePath,
    RuleSpec,
    check_finite,
)
from medusa_core.speculation.rules.sampling import Sampler
from medusa_core.speculation.rules.shaping import Shaping


@dataclass(frozen=True, slots=True)
class _Walked:
    """An accepted path.

    Attributes:
        nodes: Its nodes without the root.
        log_likelihood: Sum of its tokens' log-probabilities.
    """

    nodes: tuple[int, ...]
    log_likelihood: float


class Typical:
    """Accepts tokens above a threshold that depends on the entropy."""

    has_numbers = True

    def __init__(self, settings: GenerateSettings) -> None:
        if not 0 < settings.epsilon < 1:
            raise RequestError(
                tr("epsilon is {0}.", settings.epsilon), "Choose one between 0 and 1."
            )
        if not 0 <= settings.delta <= 100:
            raise RequestError(
                tr("delta is {0}.", settings.delta), "Choose one above 0, or 0 for √ε."
            )
        self._settings = settings
        self._delta = settings.delta or math.sqrt(settings.epsilon)
        self._shaping = Shaping(settings)
        self._sampler = Sampler(settings)

    def walk(self, tree: TokenTree, logits: Tensor, context: WalkContext) -> Acceptance:
        """Accept the longest path above the thresholds, and draw the bonus token; see `Rule`."""
        logits = logits.cpu()  # at once, or each node would wait for the GPU
        paths = self._accepted(tree, logits, context, _Walked((), 0.0))
        best = max(paths, key=lambda path: (len(path.nodes), path.log_likelihood))
        last = best.nodes[-1] if best.nodes else 0
        path = [tree.token_ids[node] for node in best.nodes]
        row = self._shaping(logits[last], context, path)
        bonus_id = self._sampler.draw(row, context.position + len(path))
        return Acceptance(best.nodes, bonus_id)

    def chance(self, position: int) -> Chance | None:
        """None: drafts are accepted by their probability, so that noise would not help."""
        return None

    def numbers(
        self, row: Tensor, context: WalkContext, path: RulePath, token_id: int
    ) -> RuleNumbers:
        """The token's probability, the entropy, and the threshold that follows from it."""
        scores = self._log_probabilities(row, context, path)
        entropy = _entropy(scores)
        return (
            ("probability", math.exp(scores[token_id])),
            ("entropy", entropy),
            ("threshold", self._threshold(entropy)),
        )

    def _accepted(
        self, tree: TokenTree, logits: Tensor, context: WalkContext, walked: _Walked
    ) -> Iterator[_Walked]:
        """Yield all accepted paths that extend an accepted path, itself first."""
        yield walked
        node = walked.nodes[-1] if walked.nodes else 0
        children = tree.shape.children[node]
        if not children:
            return
        path = [tree.token_ids[above] for above in walked.nodes]
        scores = self._log_probabilities(logits[node], context, path)
        bound = math.log(self._threshold(_entropy(scores)))
        for child in children:
            score = float(scores[tree.token_ids[child]])
            if score > bound:
                further = _Walked((*walked.nodes, child), walked.log_likelihood + score)
                yield from self._accepted(tree, logits, context, further)

    def _log_probabilities(self, row: Tensor, context: WalkContext, path: RulePath) -> Tensor:
        """[vocabulary], float64, on the CPU"""
        shaped = self._shaping(row, context, path).to(device="cpu", dtype=torch.float64)
        check_finite(float(shaped.max()))
        return torch.log_softmax(shaped / self._settings.temperature, dim=-1)

    def _threshold(self, entropy: float) -> float:
        """Probability above which a token is accepted, at an entropy in nats."""
        return min(self._settings.epsilon, self._delta * math.exp(-entropy))


def _entropy(log_probabilities: Tensor) -> float:
    """Entropy in nats; banned tokens add nothing."""
    return float(-torch.xlogy(log_probabilities.exp(), log_probabilities.exp()).sum())


SPEC = RuleSpec(
    RuleChoice(
        "typical",
        "Typical (creative, not exact)",
        "Also keeps draft tokens that are merely likely: more of them, in other words.",
        is_exact=False,
        draws=True,
        numbers=(
            ("probability", "chance after temperature and filters"),
            ("entropy", "entropy (nats)"),
            ("threshold", "needed to be accepted"),
        ),
    ),
    preference=2,
    build=Typical,
)
