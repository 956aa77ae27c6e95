"""What the shipped kernels take of a card: `python -m tests.tools.card_budgets` records it.

For each source and architecture: the most registers of a thread, bytes of local memory (spilled
registers) and bytes of code of any kernel.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

from medusa_core.system.resources import native_dir
from tests.support.card.cubin import kernel_resources

BUDGETS = Path(__file__).resolve().parents[1] / "reference" / "card_budgets.json"


def measured() -> dict[str, list[int]]:
    """Return registers, local memory and code of the largest kernel of every cubin."""
    found = {}
    for path in sorted((native_dir() / "cuda").glob("*.cubin.xz")):
        kernels = kernel_resources(lzma.decompress(path.read_bytes())).values()
        found[path.name.partition(".")[0]] = [max(column) for column in zip(*kernels, strict=True)]
    return found


if __name__ == "__main__":
    lines = (f"  {json.dumps(name)}: {json.dumps(numbers)}" for name, numbers in measured().items())
    BUDGETS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")
