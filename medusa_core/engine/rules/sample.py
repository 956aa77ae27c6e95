"""Sample-and-walk: draw from the target at each node and descend if a child holds the draw.

The drafts are chosen without randomness of their own, so the text keeps the target's distribution.
"""

from __future__ import annotations

from torch import Tensor

from medusa_core.engine.rule import RuleSpec, descend
from medusa_core.engine.sampling import Sampler
from medusa_core.messages import GenerateSettings
from medusa_core.tree.shape import TokenTree
from medusa_core.types import Acceptance


class Sample:
    """Draws with noise keyed by position, so that a seed gives one text with any drafter."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def walk(self, tree: TokenTree, logits: Tensor, position: int) -> Acceptance:
        def choose(node: int, at: int) -> int:
            return self._sampler.draw(logits[node], at)

        return descend(tree, choose, position)


def _build(settings: GenerateSettings) -> Sample:
    return Sample(Sampler(settings))


SPEC = RuleSpec("sample", is_exact=True, build=_build)
