"""Pickles of tensors, looked at without being opened: what would opening them call?

torch keeps tensors in a zip whose `data.pkl` names the functions that put them together. Naming
`os.system` there is enough to run it. So its names are read by `pickletools`, which runs nothing,
and compared with a list before any unpickler sees the file.
"""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from medusa_core.errors import ConversionError
from medusa_core.hub.convert.pickles_archive import (
    ArchiveLimits,
    read_archive,
)

# All that a state dict saved by torch calls.
ALLOWED_NAMES = frozenset(
    {
        "collections.OrderedDict",
        "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_parameter",
        *(
            f"torch.{kind}Storage"
            for kind in (
                *("Double", "Float", "Half", "BFloat16"),
                *("Long", "Int", "Short", "Char", "Byte", "Bool"),
            )
        ),
    }
)
# Those of protocol 2 that torch writes. None of them reaches a name except GLOBAL.
_ALLOWED_OPCODES = frozenset(
    [
        "PROTO",
        "STOP",
        "MARK",
        "GLOBAL",
        "REDUCE",
        "BUILD",
        "BINPERSID",
        "NONE",
        "NEWTRUE",
        "NEWFALSE",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG1",
        "BINFLOAT",
        "BINUNICODE",
        "EMPTY_TUPLE",
        "TUPLE",
        "TUPLE1",
        "TUPLE2",
        "TUPLE3",
        "EMPTY_LIST",
        "APPEND",
        "APPENDS",
        "EMPTY_DICT",
        "SETITEM",
        "SETITEMS",
        "BINPUT",
        "LONG_BINPUT",
        "BINGET",
        "LONG_BINGET",
    ]
)
_TEXTS = frozenset(
    [
        "UNICODE",
        "BINUNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE8",
        "STRING",
        "BINSTRING",
        "SHORT_BINSTRING",
    ]
)
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_MOST_OPCODES = 4_000_000


@dataclass(frozen=True, slots=True)
class PickleFacts:
    """What was seen of a pickle of tensors.

    Attributes:
        nbytes: Size of its file.
        names: What opening it calls; all of it is on the list.
    """

    nbytes: int
    names: frozenset[str]


def inspect_pickle(path: Path, limits: ArchiveLimits | None = None) -> PickleFacts:
    """Make sure that a file of tensors calls nothing but what rebuilds tensors.

    Args:
        path: A file that torch saved.
        limits: What its archive may hold.

    Raises:
        ConversionError: It calls something else, or isn't what torch saves.
    """
    names, opcodes = _walk(read_archive(path, limits or ArchiveLimits()).pickle, path.name)
    if foreign := sorted(names - ALLOWED_NAMES):
        raise ConversionError(
            f"{path.name} would call {', '.join(foreign[:4])} when it is opened.",
            "Tensors need nothing of the kind. Don't open this file with any program.",
            name=foreign[0],
        )
    if unusual := sorted(opcodes - _ALLOWED_OPCODES):
        raise ConversionError(
            f"{path.name} uses pickle instructions that torch doesn't write for tensors: "
            f"{', '.join(unusual[:4])}.",
            "Get the weights as safetensors instead.",
            name=unusual[0],
        )
    return PickleFacts(path.stat().st_size, names)


def _walk(data: bytes, file_name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Names that the pickle reaches, and the instructions that it is made of."""
    names: set[str] = set()
    opcodes: set[str] = set()
    texts = _Texts()
    end = -1
    for number, (opcode, argument, position) in enumerate(instructions(data, file_name)):
        if number >= _MOST_OPCODES:
            raise ConversionError(
                f"{file_name} has more than {_MOST_OPCODES:,} pickle instructions.",
                "Get the weights as safetensors instead.",
            )
        opcodes.add(opcode)
        end = position
        if opcode in ("GLOBAL", "INST"):
            names.add(str(argument).replace(" ", "."))
        elif opcode == "STACK_GLOBAL":
            names.add(texts.as_name())
        texts.follow(opcode, argument)
    if end != len(data) - 1:
        raise ConversionError(
            f"{file_name}: something follows the end of its pickle.",
            "Get the weights as safetensors instead.",
        )
    return frozenset(names), frozenset(opcodes)


def instructions(data: bytes, file_name: str) -> Iterator[tuple[str, object, int]]:
    """Name, argument and place of each instruction of a pickle; none is run.

    Raises:
        ConversionError: It is damaged.
    """
    try:
        for opcode, argument, position in pickletools.genops(data):
            yield opcode.name, argument, position or 0
    # A damaged pickle fails in as many ways as there are kinds of arguments.
    except (ValueError, IndexError, KeyError, OverflowError, MemoryError) as error:
        raise ConversionError(
            f"{file_name} is damaged: its pickle can't be read ({error}).",
            "Download the file again.",
        ) from error


class _Texts:
    """The last texts on the stack: STACK_GLOBAL takes a module and a name from there."""

    def __init__(self) -> None:
        self._last: list[str] = []
        self._memo: dict[int, str] = {}

    def as_name(self) -> str:
        """What STACK_GLOBAL would reach, as far as it can be told without running the pickle."""
        return ".".join(self._last) or "something unnamed"

    def follow(self, opcode: str, argument: object) -> None:
        """Take note of one instruction."""
        if opcode in _TEXTS:
            self._push(str(argument))
        elif opcode in _GETS and argument in self._memo:
            self._push(self._memo[int(str(argument))])
        elif opcode in _PUTS and self._last:
            self._memo[int(str(argument))] = self._last[-1]
        elif opcode == "MEMOIZE" and self._last:
            self._memo[len(self._memo)] = self._last[-1]

    def _push(self, text: str) -> None:
        self._last = [*self._last[-1:], text]
