"""Launches of a model's kernels, chosen by their times on its card when it is loaded.

Products are measured over enough layers of a shape that their weights exceed the card's L2 cache,
as in a step, for one row and for a tree; attention over a long conversation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import accumulate

import torch

from medusa_core.models.quant.card_linear import CardLinear, LaunchConfig
from medusa_core.runtime.backends.cuda_step import FusedDecoder
from medusa_core.system.native.cuda import MAX_SPLITS
from medusa_core.system.native.cuda.tuning import Candidates, Launch, tune

SPLITS = ((MAX_SPLITS,), (16,), (8,))  # of attention; the first is the default
_MEASURED_BYTES = 96 << 20  # the largest L2 cache of a GeForce
_MEASURED_KEYS = 4096


@torch.inference_mode()
def tune_launches(fused: FusedDecoder, context_tokens: int) -> None:
    """Launch a model's kernels as is fastest on its card; bits of results depend on it.

    Args:
        fused: Its decoding step.
        context_tokens: Longest context of the model.
    """
    groups: dict[str, list[tuple[CardLinear, int]]] = {}
    for layer, activation in fused.linears:
        shape = f"{layer.shape}, activated" if activation else layer.shape
        groups.setdefault(shape, []).append((layer, activation))
    candidates = [_of_products(fused, shape, group) for shape, group in groups.items()]
    attend = cache(partial(fused.attention_work, min(_MEASURED_KEYS, context_tokens)))
    of_attention = Candidates(
        fused.attention_shape, SPLITS, lambda launch: partial(attend(), *launch)
    )
    chosen = tune([*candidates, of_attention], fused.device)
    for shape, group in groups.items():
        for layer, _ in group:
            layer.launch = LaunchConfig(*chosen.get(shape, layer.launches[0]))
    (fused.splits,) = chosen.get(of_attention.shape, SPLITS[0])


def _of_products(
    fused: FusedDecoder, shape: str, group: list[tuple[CardLinear, int]]
) -> Candidates:
    """Return the launches of the products of one shape."""
    totals = accumulate((layer.nbytes for layer, _ in group), initial=0)
    measured = [
        pair for pair, before in zip(group, totals, strict=False) if before < _MEASURED_BYTES
    ]
    (first, activation), *_ = group

    def work(launch: Launch) -> Callable[[], None]:
        """Return products of a row and of a tree by the weights of the measured layers."""
        rows = [fused.rows_of(first, count, activation) for count in first.measured_rows]

        def multiply() -> None:
            for layer, _ in measured:
                layer.launch = LaunchConfig(*launch)
                for x, y in rows:
                    layer.multiply(x, y, activation=activation)

        return multiply

    return Candidates(
        shape,
        first.launches,
        work,
        lambda launch: first.is_correct_with(LaunchConfig(*launch)),
    )
