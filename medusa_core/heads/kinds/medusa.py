"""Medusa heads: residual layers on the target's last state, in any published format."""

from __future__ import annotations

from pathlib import Path

from medusa_core.errors import MedusaError
from medusa_core.heads.kind import HeadKind
from medusa_core.heads.reader import read_heads, read_heads_shape


def _claims(heads_dir: Path) -> bool:
    try:
        return read_heads_shape(heads_dir).num_heads > 0
    except MedusaError:
        return False


SPEC = HeadKind("medusa", _claims, read_heads_shape, read_heads)
