"""Seeds of answers that have none of their own."""

from __future__ import annotations

import secrets
from collections.abc import Callable

NewSeed = Callable[[], int]


def new_seed() -> int:
    """A seed that nobody can foresee."""
    return secrets.randbits(31)
