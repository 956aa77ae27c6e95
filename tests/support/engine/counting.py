"""A runner that counts the rows it computes."""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from medusa_core.loading.target import Target
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import PlacedTree


class CountingRunner(ResidentRunner):
    """Counts the rows of prefill and of verification."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.runner._model, target.precision)
        self.num_prefilled = 0
        self.num_verified = 0

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        self.num_prefilled += len(token_ids)
        return super().extend(token_ids, kv, only_last)

    def verify(self, *placed: PlacedTree) -> Tensor:
        self.num_verified += sum(each.tree.shape.num_nodes for each in placed)
        return super().verify(*placed)


def counted(target: Target) -> tuple[Target, CountingRunner]:
    """The target with a runner that counts."""
    runner = CountingRunner(target)
    return replace(target, runner=runner), runner
