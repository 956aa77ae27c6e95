"""What a format of Medusa heads is: which tensor of a file is which part of which head."""

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
from medusa_core.system.registry import Registry


class TensorRole(Enum):
    """What a tensor is to its head."""

    WEIGHT = "weight"
    BIAS = "bias"
    PROJECTION = "projection"
    TOKEN_MAP = "token map"
    ONE_PROJECTION = "one projection for all heads"


class HeadsTensor(NamedTuple):
    """One tensor of a file of heads.

    Attributes:
        kind: What it is.
        head: Whose it is, from 0; 0 for what belongs to all.
        layer: Which residual layer it belongs to; of a projection, how many come before it, or −1
            where its name doesn't say.
    """

    kind: TensorRole
    head: int = 0
    layer: int = -1


class HeadsFile(NamedTuple):
    """Heads in the form of a format.

    Attributes:
        file_name: What programs that read the format look for.
        tensors: By name.
        config: The `config.json` beside them.
    """

    file_name: str
    tensors: Mapping[str, Tensor]
    config: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class HeadsFormat:
    """A registered format.

    Attributes:
        name: Its name.
        claims: Do these tensor names look like it?
        part: What a tensor is by its name, or None if the format has no such tensor.
        ignores: Is this a tensor of something else that may lie in the same file?
        write: The heads in this form, or None for a format that is only read. The second argument
            names the target.
    """

    name: str
    claims: Callable[[frozenset[str]], bool]
    part: Callable[[str], HeadsTensor | None]
    ignores: Callable[[str], bool] = lambda _: False
    write: Callable[[HeadSet, str], HeadsFile] | None = None


@cache
def format_registry() -> Registry[HeadsFormat]:
    """All formats."""
    return Registry(formats, "heads format", HeadsFormat)


def layer_part(match: re.Match[str]) -> HeadsTensor:
    """What a tensor of a residual layer is, by head, layer, and `weight` or `bias`."""
    return HeadsTensor(TensorRole(match[3]), int(match[1]), int(match[2]))


def layer_tensors(heads: HeadSet, name: str) -> dict[str, Tensor]:
    """The residual layers under the names of a format.

    Args:
        heads: The heads.
        name: With places for `head`, `layer` and `part`.
    """
    tensors = {}
    for index, head in enumerate(heads.heads):
        for layer, (weight, bias) in enumerate(head.layers):
            tensors[name.format(head=index, layer=layer, part="weight")] = weight
            if bias is not None:
                tensors[name.format(head=index, layer=layer, part="bias")] = bias
    return tensors


def check_rootless(heads: HeadSet) -> None:
    """Refuse to write heads that read the root in a format of other programs.

    Raises:
        HeadsError: They do; other programs can't run such heads.
    """
    if heads.reads_root:
        raise HeadsError(
            "These heads read the root's vector, which other programs don't give theirs.",
            "Keep them as 'rooted', or train heads without it.",
        )


def find_format(names: frozenset[str]) -> HeadsFormat:
    """The format of a file with these tensors.

    Raises:
        HeadsError: None is known.
    """
    for spec in format_registry().specs:
        if spec.claims(names):
            return spec
    listed = ", ".join(sorted(names)[:8]) or "none at all"
    raise HeadsError(
        f"Tensors that belong to no Medusa head: {listed}.",
        f"Choose heads in one of the formats {', '.join(format_registry().names)}.",
    )
