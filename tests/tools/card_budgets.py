"""What the shipped kernels take of a card: `python -m tests.tools.card_budgets` records it.

For each kernel and architecture: registers of a thread, bytes of local memory (spilled registers),
bytes of code, and of products the instructions for each weight.
"""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path

from medusa_core.system.resources import native_dir
from tests.support.card.cubin import KernelResources, kernel_resources

BUDGETS = Path(__file__).resolve().parents[1] / "reference" / "card_budgets.json"
# Weights of a loop's iteration: of 16 rows and 256 columns, or of one row and twice that.
_MMA_WEIGHTS, _DOT_WEIGHTS = 16 * 256, 2 * 256


def measured() -> dict[str, dict[str, list[float]]]:
    """Return the numbers of every kernel, by cubin and name."""
    found = {}
    for path in sorted((native_dir() / "cuda").glob("*.cubin.xz")):
        kernels = kernel_resources(lzma.decompress(path.read_bytes()))
        found[path.name.partition(".")[0]] = {
            name: [of.registers, of.stack_bytes, of.code_bytes, instructions_per_weight(name, of)]
            for name, of in sorted(kernels.items())
        }
    return found


def instructions_per_weight(kernel: str, of: KernelResources) -> float:
    """Return a warp's instructions for each weight of a product, for all rows; else 0."""
    product = re.match("rows_(mma|dot)_", kernel)
    if product is None:
        return 0
    weights = _MMA_WEIGHTS if product[1] == "mma" else _DOT_WEIGHTS
    return round(of.loop_instructions / weights, 3)


if __name__ == "__main__":
    lines = []
    for file, kernels in measured().items():
        own = (f"    {json.dumps(name)}: {json.dumps(of)}" for name, of in kernels.items())
        lines.append(f"  {json.dumps(file)}: {{\n" + ",\n".join(own) + "\n  }")
    BUDGETS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")
