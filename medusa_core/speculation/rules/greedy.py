"""Greedy decoding: the target's most likely token."""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.messages import RuleChoice
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.step import (
    Acceptance,
    Chance,
    WalkContext,
)
from medusa_core.speculation.rules.best_walk import (
    BestWalk,
    best_walk,
)
from medusa_core.speculation.rules.rule import (
    RuleNumbers,
    RulePath,
    RuleSpec,
    check_finite,
    descend,
    not_finite_error,
)
from medusa_core.speculation.rules.shaping import Shaping, numbers_of


class Greedy:
    """Chooses the most likely token at every node; of equally likely ones the lowest id."""

    def __init__(self, shaping: Shaping) -> None:
        self._shaping = shaping
        self._best_walk: BestWalk | None = None
        self.has_numbers = not shaping.is_idle

    def walk(self, tree: TokenTree, logits: Tensor, context: WalkContext) -> Acceptance:
        """Follow the most likely token of each node; see `Rule`."""
        if not self._shaping.is_idle or context.grammar is not None:
            rows = logits.cpu()
            return descend(tree, lambda node, path: _best(self._shaping(rows[node], context, path)))
        if self._best_walk is None:
            self._best_walk = best_walk(logits)
        if self._best_walk is not None:
            met = self._best_walk(tree, logits, context.traces)
            if met is None:
                raise not_finite_error()
            return met
        # Looking at one row at a time would wait for the device each time: bring all at once. A
        # float64 holds every token's number.
        best = logits.max(dim=-1)
        scores, token_ids = torch.stack([best.values.double(), best.indices.double()]).tolist()

        def choose(node: int, _: RulePath) -> int:
            """The most likely token after a node, from the downloaded maxima."""
            check_finite(scores[node])
            return int(token_ids[node])

        return descend(tree, choose)

    def chance(self, position: int) -> Chance | None:
        """None: greedy decoding has no noise."""
        return None

    def numbers(
        self, row: Tensor, context: WalkContext, path: RulePath, token_id: int
    ) -> RuleNumbers:
        """The lead of the best token's logit over the second best."""
        best, second = self._shaping(row, context, path).topk(2).values.tolist()
        return (("margin", best - second),)


def _best(row: Tensor) -> int:
    """The token of the largest logit; raises `NumericsError` if that is NaN or infinite."""
    scores = numbers_of(row)
    best = int(scores.argmax())
    check_finite(float(scores[best]))
    return best


SPEC = RuleSpec(
    RuleChoice(
        "greedy",
        "Greedy",
        "Takes the likeliest token each time.",
        is_exact=True,
        draws=False,
        numbers=(("margin", "lead over the next best"),),
    ),
    preference=0,
    build=lambda settings: Greedy(Shaping(settings)),
)
