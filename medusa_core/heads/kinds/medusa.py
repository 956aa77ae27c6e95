"""Medusa heads in every published format."""

from __future__ import annotations

from collections.abc import Mapping

from medusa_core.heads.format import format_registry
from medusa_core.heads.formats import merged
from medusa_core.heads.kind import HeadKind
from medusa_core.heads.reader import heads_shape, read_heads
from medusa_core.messages import HeadsShape
from medusa_core.system.files.safetensors_header import TensorShapes


def _owns(names: frozenset[str]) -> bool:
    """Whether tensors of these names are Medusa heads in any format."""
    return any(spec.claims(names) for spec in format_registry().specs)


def _sizes(shapes: TensorShapes, _: Mapping[str, object]) -> HeadsShape:
    """Return the sizes of heads from their tensors."""
    return heads_shape(shapes)  # counts in published `config.json` files are often wrong


SPEC = HeadKind(
    "medusa",
    _owns,
    _sizes,
    read_heads,
    is_embedded=lambda names, _: merged.SPEC.claims(names),
)
