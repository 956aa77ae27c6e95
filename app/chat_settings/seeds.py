"""Random seeds for answers without a fixed seed."""

from __future__ import annotations

import secrets
from collections.abc import Callable

NewSeed = Callable[[], int]


def new_seed() -> int:
    """Return an unpredictable random seed."""
    return secrets.randbits(31)
