"""What the engine asks of a card goes through one module."""

import re
from pathlib import Path

import medusa_core

ROOT = Path(medusa_core.__file__).parent


def test_nothing_but_the_card_module_asks_torch_of_cuda() -> None:
    asks = re.compile(r"torch\.cuda\b|from torch import cuda")
    users = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.rglob("*.py"))
        if asks.search(path.read_text(encoding="utf-8"))
    ]
    assert users == ["system/cuda.py"]
