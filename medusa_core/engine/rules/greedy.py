"""Greedy: the target's best token, always."""

from __future__ import annotations

from torch import Tensor

from medusa_core.engine.rule import RuleSpec, check_number, descend
from medusa_core.messages import GenerateSettings
from medusa_core.tree.shape import TokenTree
from medusa_core.types import Acceptance


class Greedy:
    """Takes the best token at every node; of equals the lowest id."""

    def walk(self, tree: TokenTree, logits: Tensor, position: int) -> Acceptance:
        if logits.device.type == "cpu":
            return descend(tree, lambda node, _: _best(logits[node]), position)
        # Looking at one row at a time would wait for the device each time: bring all at once.
        best = logits.max(dim=-1)
        scores: list[float] = best.values.tolist()
        token_ids: list[int] = best.indices.tolist()

        def choose(node: int, _: int) -> int:
            check_number(scores[node])
            return token_ids[node]

        return descend(tree, choose, position)


def _best(row: Tensor) -> int:
    best = row.max(dim=0)
    check_number(best.values.item())
    return int(best.indices)


def _build(_: GenerateSettings) -> Greedy:
    return Greedy()


SPEC = RuleSpec("greedy", is_exact=True, build=_build)
