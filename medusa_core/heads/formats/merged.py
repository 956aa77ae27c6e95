"""v1.0: heads among the tensors of their target, as `medusa_head.` plus v0.1's names."""

from __future__ import annotations

from medusa_core.heads.format import HeadsFormat, HeadsTensor
from medusa_core.heads.formats import v01

PREFIX = "medusa_head."


def _claims(names: frozenset[str]) -> bool:
    return any(name.startswith(PREFIX) for name in names)


def _part(name: str) -> HeadsTensor | None:
    return v01.part_of(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None


def _ignores(name: str) -> bool:
    return not name.startswith(PREFIX)


SPEC = HeadsFormat("merged", claims=_claims, part=_part, ignores=_ignores)
