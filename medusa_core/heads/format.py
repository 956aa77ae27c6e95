"""Formats of Medusa heads: which tensor of a file belongs to which head and layer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import NamedTuple

from torch import Tensor

from medusa_core.errors import HeadsError
from medusa_core.heads import formats
from medusa_core.heads.weights import HeadSet
from medusa_core.i18n import tr
from medusa_core.system.registry import Registry


class TensorRole(Enum):
    """Role of a tensor within a head."""

    WEIGHT = "weight"
    BIAS = "bias"
    PROJECTION = "projection"
    TOKEN_MAP = "token map"
    ONE_PROJECTION = "one projection for all heads"


class HeadsTensor(NamedTuple):
    """Identity of one tensor.

    Attributes:
        kind: Its role.
        head: Index of the head; 0 for tensors of all heads.
        layer: Index of the residual layer; of a projection the number of layers before it, or −1
            if the name doesn't contain it.
    """

    kind: TensorRole
    head: int = 0
    layer: int = -1


class HeadsFile(NamedTuple):
    """Heads as files of a format.

    Attributes:
        file_name: File name that readers of the format expect.
        tensors: Tensors by name.
        config: Contents of `config.json`.
    """

    file_name: str
    tensors: Mapping[str, Tensor]
    config: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class HeadsFormat:
    """A registered format.

    Attributes:
        name: Name of the format.
        claims: Whether tensor names look like this format.
        part: Returns the identity of a tensor by its name, or None.
        ignores: Whether a tensor of the same file belongs to something else.
        write: Returns the heads in this format, given the target's name; None for formats that are
            only read.
    """

    name: str
    claims: Callable[[frozenset[str]], bool]
    part: Callable[[str], HeadsTensor | None]
    ignores: Callable[[str], bool] = lambda _: False
    write: Callable[[HeadSet, str], HeadsFile] | None = None


@cache
def format_registry() -> Registry[HeadsFormat]:
    """Return all formats."""
    return Registry(formats, "heads format", HeadsFormat)


def layer_part(match: re.Match[str]) -> HeadsTensor:
    """Return the identity of a residual layer's tensor from a match of head, layer and part."""
    return HeadsTensor(TensorRole(match[3]), int(match[1]), int(match[2]))


def layer_tensors(heads: HeadSet, name: str) -> dict[str, Tensor]:
    """Return the tensors of the residual layers by their names in a format.

    Args:
        name: Template with `head`, `layer` and `part`.
    """
    tensors = {}
    for index, head in enumerate(heads.heads):
        for layer, (weight, bias) in enumerate(head.layers):
            tensors[name.format(head=index, layer=layer, part="weight")] = weight
            if bias is not None:
                tensors[name.format(head=index, layer=layer, part="bias")] = bias
    return tensors


def check_reads_no_root(heads: HeadSet) -> None:
    """Refuse to write heads that read the root's embedding in a format of other programs.

    Raises:
        HeadsError: Other programs can't run such heads.
    """
    if heads.reads_root:
        raise HeadsError(
            "These heads read the root's vector, which other programs don't give theirs.",
            "Keep them as 'rooted', or train heads without it.",
        )


def find_format(names: frozenset[str]) -> HeadsFormat:
    """Return the format of a file with these tensors.

    Raises:
        HeadsError: The format is unknown.
    """
    for spec in format_registry().specs:
        if spec.claims(names):
            return spec
    listed = ", ".join(sorted(names)[:8]) or "none at all"
    raise HeadsError(
        tr("Tensors that belong to no Medusa head: {0}.", listed),
        tr("Choose heads in one of the formats {0}.", ", ".join(format_registry().names)),
    )
