"""Predict T(n) of our kernels on cards nobody here has: `python -m tests.benchmarks.card_model`.

A step takes as long as the slowest of three: reading the weights at 85 % of the card's bandwidth,
issuing the kernels' instructions at 75 % of its rate, and multiplying at 80 % of its tensor cores'.
Instructions are counted in the loops of the shipped cubins; those for Hopper and later, whose loops
can't be read, count as those for compute capability 8.9. Without tensor cores eight rows are
multiplied at a time, and blocks that run at the same time share the bytes of their weights.
Attention, norms, launches and the host are left out, so that real steps are longer. Nothing of this
was compared with a card.
"""

from __future__ import annotations

import argparse
import lzma
from dataclasses import dataclass

from medusa_core.system.native.cuda.kernels import kernel_file
from tests.support.card.cubin import kernel_resources
from tests.tools.card_budgets import instructions_per_weight

ROWS = (1, 4, 8, 16, 32, 64)
_LAST_READ = (8, 9)  # compute capability of the last cubins whose loops can be read
_BITS = 4.5  # of a weight of Q4_K


@dataclass(frozen=True, slots=True)
class Card:
    """A card by its maker's data sheet.

    Attributes:
        name: Its name.
        capability: Compute capability.
        bandwidth: Bytes a second.
        multiprocessors: Their number.
        clock: Boost clock in Hz.
        tensor_flops: Products and sums of halves into float32 a second; 0 without tensor cores.
    """

    name: str
    capability: tuple[int, int]
    bandwidth: float
    multiprocessors: int
    clock: float
    tensor_flops: float


CARDS = (
    Card("GTX 1080", (6, 1), 320e9, 20, 1.73e9, 0),
    Card("RTX 2070", (7, 5), 448e9, 36, 1.62e9, 29.9e12),
    Card("RTX 3060 Ti", (8, 6), 448e9, 38, 1.67e9, 32.4e12),
    Card("RTX 3070", (8, 6), 448e9, 46, 1.73e9, 40.6e12),
    Card("RTX 4060", (8, 9), 272e9, 24, 2.46e9, 30.2e12),
    Card("RTX 5060", (12, 0), 448e9, 30, 2.50e9, 38.4e12),
)


@dataclass(frozen=True, slots=True)
class Model:
    """A model's weights that are multiplied.

    Attributes:
        name: Its name.
        dense: Weights that every row meets.
        experts: Weights of all experts.
        num_experts: Experts of a layer; 0 for none.
        num_chosen: Experts that a row meets.
    """

    name: str
    dense: float
    experts: float = 0
    num_experts: int = 0
    num_chosen: int = 0

    def weights(self, rows: int) -> float:
        """Weights that rows meet, whose experts are chosen independently."""
        if not self.num_experts:
            return self.dense
        missed = (1 - self.num_chosen / self.num_experts) ** rows
        return self.dense + self.experts * (1 - missed)


MODELS = (
    Model("Llama-3-8B", 7.50e9),
    Model("Qwen3-30B-A3B, were it all on the card", 1.20e9, 28.99e9, 128, 8),
)


def predict(card: Card, model: Model, rows: int) -> float:
    """Return the seconds of a step."""
    weights = model.weights(rows)
    by_bytes = weights * _BITS / 8 / (0.85 * card.bandwidth)
    cubin = kernel_file("rows", min(card.capability, _LAST_READ)).read_bytes()
    resources = kernel_resources(lzma.decompress(cubin))
    has_mma = card.tensor_flops > 0
    compiled = next(n for n in ((8, 16, 32, 64) if has_mma else (1, 4, 8, 64)) if n >= rows)
    passes = 1 if has_mma else max(1, -(-rows // 8))
    kernel = f"rows_mma_q4_k_{compiled}" if has_mma else f"rows_dot_q4_k_{min(compiled, 8)}"
    per_pass = instructions_per_weight(kernel, resources[kernel])
    by_issue = weights * passes * per_pass / (0.75 * 4 * card.multiprocessors * card.clock)
    by_tensor = 2 * weights * compiled / (0.8 * card.tensor_flops) if has_mma else 0
    return max(by_bytes, by_issue, by_tensor)


def main() -> None:
    """Print a table for each model."""
    argparse.ArgumentParser(
        prog="python -m tests.benchmarks.card_model", description=__doc__
    ).parse_args()
    for model in MODELS:
        print(f"{model.name}, Q4_K: predicted ms of a step")
        print(f"{'rows':14}" + "".join(f"{rows:8}" for rows in ROWS))
        for card in CARDS:
            times = "".join(f"{1e3 * predict(card, model, rows):8.1f}" for rows in ROWS)
            print(f"{card.name:14}{times}")


if __name__ == "__main__":
    main()
