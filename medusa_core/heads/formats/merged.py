"""v1.0: heads among the tensors of their target, as `medusa_head.` plus v0.1's names."""

from __future__ import annotations

from medusa_core.heads.format import HeadsFormat, HeadsTensor
from medusa_core.heads.formats import v01

PREFIX = "medusa_head."


def _claims(names: frozenset[str]) -> bool:
    """Whether tensors of these names include Medusa heads."""
    return any(name.startswith(PREFIX) for name in names)


def _part(name: str) -> HeadsTensor | None:
    """Return the identity of a head's tensor; None for the target's."""
    return v01.part_of(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None


def _ignores(name: str) -> bool:
    """Whether a tensor belongs to the target."""
    return not name.startswith(PREFIX)


SPEC = HeadsFormat("merged", claims=_claims, part=_part, ignores=_ignores)
