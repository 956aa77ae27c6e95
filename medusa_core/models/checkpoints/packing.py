"""The `quantization_config` of checkpoints whose weights are integers that share scales in groups.

Plain data of a `config.json`; `grouped.py` reads the tensors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.i18n import tr
from medusa_core.system.files.json_file import is_whole
from medusa_core.system.native.constants import BLOCK

_LINEAR = r"model\.layers\.\d+\..+_proj\.weight"
EXPERTS = r"model\.layers\.\d+\.mlp\.experts\..+_proj\.weight"
_MAX_NAMES, _MAX_NAME_CHARS = 10_000, 500


@dataclass(frozen=True, slots=True)
class Packing:
    """How weights are packed: weight = scale × (code − zero point).

    Attributes:
        method: Name in messages, such as "GPTQ".
        bits: Bits of a code; 4 or 8.
        group: Inputs that share a scale; 0 for a scale per row.
        is_symmetric: Whether the zero point is the middle of the codes.
        zero_shift: Added to stored zero points: GPTQ's first version stores one less.
        ignored: Names of layers that aren't quantized; those that begin with `re:` are patterns.
        block_type: Block type of the files; empty if it follows from the other attributes.
        pattern: Pattern of the names of quantized tensors.
        card: Weight format in which a GPU can use them unchanged; empty if they are requantized.
    """

    method: str
    bits: int
    group: int
    is_symmetric: bool
    zero_shift: int = 0
    ignored: tuple[str, ...] = ()
    block_type: str = ""
    pattern: str = _LINEAR
    card: str = ""

    @property
    def kind(self) -> str:
        """The block type that represents the weights exactly; zero points take more bits."""
        if self.block_type:
            return self.block_type
        return "q4_0" if self.bits == 4 and self.is_symmetric else "q8_0"

    @property
    def label(self) -> str:
        """Description of the format for users, such as "GPTQ, 4 bits, groups of 128"."""
        groups = f"groups of {self.group}" if self.group else "one scale a row"
        return f"{self.method}, {self.bits} bits, {groups}"

    def type_of(self, name: str) -> str:
        """Return the block type to which a tensor is converted; empty if it is unquantized.

        Args:
            name: Name of the tensor, such as `model.layers.0.mlp.up_proj.weight`.
        """
        layer = name.removesuffix(".weight")
        is_ignored = any(
            re.match(one[3:], layer) if one.startswith("re:") else one == layer
            for one in self.ignored
        )
        return "" if is_ignored or not re.fullmatch(self.pattern, name) else self.kind


def checked(packing: Packing) -> Packing:
    """Return a packing if it is supported.

    Raises:
        ModelError: It isn't supported.
    """
    if packing.bits not in (4, 8):
        raise unsupported(packing.method, tr("{0} bits", packing.bits), tr("Choose 4 bits or 8"))
    if packing.bits == 8 and not packing.is_symmetric:
        raise unsupported(packing.method, tr("8 bits with zeros of their own"), tr("Choose 4 bits"))
    if packing.group and packing.group % BLOCK:
        raise unsupported(
            packing.method, tr("groups of {0}", packing.group), tr("Choose groups of 32 to 128")
        )
    return packing


def unsupported(method: str, feature: str, instead: str) -> ModelError:
    """Make the error for weights that are packed in an unsupported way."""
    return ModelError(
        tr("The weights are packed in a way that isn't supported ({0}: {1}).", method, feature),
        tr("{0}, a GGUF file, or the unquantized version of this model.", instead),
    )


def integer(settings: Mapping[str, Any], key: str, default: int, method: str) -> int:
    """Read an integer of a `quantization_config`.

    Raises:
        ModelError: The value is something else.
    """
    value = settings.get(key)
    value = default if value is None else value
    if not is_whole(value, -1, 1 << 20):
        raise unsupported(
            method, tr("its {0} is no whole number", key), tr("Download config.json again")
        )
    return value


def layer_names(value: object, method: str) -> tuple[str, ...]:
    """Read a list of layers, or patterns of them, of a `quantization_config`.

    Raises:
        ModelError: The value is something else, or a pattern doesn't parse.
    """
    value = value or []
    if (
        not isinstance(value, list)
        or len(value) > _MAX_NAMES
        or not all(isinstance(one, str) and 0 < len(one) <= _MAX_NAME_CHARS for one in value)
    ):
        raise unsupported(
            method, tr("its list of exceptions can't be read"), tr("Choose another one")
        )
    try:
        for one in value:
            re.compile(one.removeprefix("re:"))
    except re.error:
        raise unsupported(
            method, tr("an exception can't be read"), tr("Choose another one")
        ) from None
    return tuple(value)


def names_containing(value: object, method: str) -> tuple[str, ...]:
    """Read a list of parts of layers' names, and return patterns of the names with these parts.

    Raises:
        ModelError: The value is something else.
    """
    return tuple(f"re:.*{re.escape(part)}" for part in layer_names(value, method))
