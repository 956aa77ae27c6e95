"""How a repository packs its weights: whole numbers of few bits, groups of which share a scale.

Plain data from a `config.json`; `models/checkpoints/grouped.py` reads the tensors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medusa_core.errors import ModelError

LEAST_GROUP = 32
_LINEAR = r"model\.layers\.\d+\..+_proj\.weight"
EXPERTS = r"model\.layers\.\d+\.mlp\.experts\..+_proj\.weight"
_MOST_NAMES, _LONGEST_NAME = 10_000, 500


@dataclass(frozen=True, slots=True)
class Packing:
    """How weights are packed: weight = scale × (code − zero).

    Attributes:
        method: For people, such as "GPTQ".
        bits: Of a code; 4 or 8.
        group: Inputs that share a scale; 0 for all.
        is_symmetric: Zero is the middle of the codes.
        zero_shift: What a stored zero lacks: GPTQ's first version stores one less.
        left_out: Names of parts that stay plain numbers; those that begin with `re:` are patterns.
        blocks: The type of blocks that files hold; empty where it follows from the rest.
        names: A pattern of the tensors that are packed.
        card: The weight format in which a card takes them as they are; empty where a card's
            weights are made anew.
    """

    method: str
    bits: int
    group: int
    is_symmetric: bool
    zero_shift: int = 0
    left_out: tuple[str, ...] = ()
    blocks: str = ""
    names: str = _LINEAR
    card: str = ""

    @property
    def kind(self) -> str:
        """The type of blocks that holds the same numbers: a zero of its own takes more bits."""
        if self.blocks:
            return self.blocks
        return "q4_0" if self.bits == 4 and self.is_symmetric else "q8_0"

    @property
    def label(self) -> str:
        """In words."""
        groups = f"groups of {self.group}" if self.group else "one scale a row"
        return f"{self.method}, {self.bits} bits, {groups}"

    def type_of(self, name: str) -> str:
        """The type of blocks that a tensor becomes; empty for plain numbers.

        Args:
            name: Such as `model.layers.0.mlp.up_proj.weight`.
        """
        is_packed = re.fullmatch(self.names, name) and not self._leaves_out(
            name.removesuffix(".weight")
        )
        return self.kind if is_packed else ""

    def _leaves_out(self, name: str) -> bool:
        return any(
            re.match(one[3:], name) if one.startswith("re:") else one == name
            for one in self.left_out
        )


def checked(packing: Packing) -> Packing:
    """A packing that can be read.

    Raises:
        ModelError: It can't.
    """
    if packing.bits not in (4, 8):
        raise unsupported(packing.method, f"{packing.bits} bits", "Choose 4 bits or 8")
    if packing.bits == 8 and not packing.is_symmetric:
        raise unsupported(packing.method, "8 bits with zeros of their own", "Choose 4 bits")
    if packing.group and packing.group % LEAST_GROUP:
        raise unsupported(
            packing.method, f"groups of {packing.group}", "Choose groups of 32 to 128"
        )
    return packing


def unsupported(method: str, what: str, instead: str) -> ModelError:
    """What to say of weights that are packed in another way."""
    return ModelError(
        f"The weights are packed in a way that isn't supported ({method}: {what}).",
        f"{instead}, a GGUF file, or the unquantized version of this model.",
    )


def whole(settings: Mapping[str, Any], key: str, usual: int, method: str) -> int:
    """A whole number of a `quantization_config`.

    Raises:
        ModelError: It is something else.
    """
    value = settings.get(key)
    value = usual if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= 1 << 20:
        raise unsupported(method, f"its {key} is no whole number", "Download config.json again")
    return value


def names(value: object, method: str) -> tuple[str, ...]:
    """A list of names of a `quantization_config`.

    Raises:
        ModelError: It is something else, or one is a pattern that doesn't parse.
    """
    value = value or []
    if (
        not isinstance(value, list)
        or len(value) > _MOST_NAMES
        or not all(isinstance(one, str) and 0 < len(one) <= _LONGEST_NAME for one in value)
    ):
        raise unsupported(method, "its list of exceptions can't be read", "Choose another one")
    try:
        for one in value:
            re.compile(one.removeprefix("re:"))
    except re.error:
        raise unsupported(method, "an exception can't be read", "Choose another one") from None
    return tuple(value)
