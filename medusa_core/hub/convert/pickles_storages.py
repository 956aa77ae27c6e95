"""Do the storages of a pickle have the bytes that it declares?

torch maps them from the file. One that is shorter than declared goes on in what lies behind it, and
its tensors are converted from foreign bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from medusa_core.errors import ConversionError
from medusa_core.hub.convert.pickles import instructions
from medusa_core.hub.convert.pickles_archive import (
    ArchiveLimits,
    read_archive,
)

_ITEM_BYTES = {
    **dict.fromkeys(("torch DoubleStorage", "torch LongStorage"), 8),
    **dict.fromkeys(("torch FloatStorage", "torch IntStorage"), 4),
    **dict.fromkeys(("torch HalfStorage", "torch BFloat16Storage", "torch ShortStorage"), 2),
    **dict.fromkeys(("torch CharStorage", "torch ByteStorage", "torch BoolStorage"), 1),
}
_VALUES = frozenset({"GLOBAL", "BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1"})
_PUTS, _GETS = frozenset({"BINPUT", "LONG_BINPUT"}), frozenset({"BINGET", "LONG_BINGET"})
_KEY = re.compile(r"[0-9]{1,9}")


def check_storages(path: Path, limits: ArchiveLimits | None = None) -> None:
    """Make sure that every storage has the bytes that are declared.

    Args:
        path: A file whose pickle was inspected.
        limits: What its archive may hold.

    Raises:
        ConversionError: One hasn't, or isn't declared as torch does it.
    """
    archive = read_archive(path, limits or ArchiveLimits())
    for declared in _declared(archive.pickle, path.name):
        key, nbytes = _read(declared, path.name)
        found = archive.storages.get(key)
        if found != nbytes:
            raise ConversionError(
                f"{path.name} declares {nbytes} bytes for storage {key}, "
                f"but has {'none' if found is None else found}.",
                "It is damaged, or made to mislead: download it again, or don't use it.",
            )


def _declared(data: bytes, file_name: str) -> Iterator[tuple[object, ...] | None]:
    """What stands before each reference to a storage; None where it isn't five plain values."""
    memo: dict[object, object] = {}
    top: object = None  # of the stack; None for what is no plain value
    values: list[object] | None = None  # since the last mark, while they are all plain
    declared: tuple[object, ...] | None = None
    for opcode, argument, _ in instructions(data, file_name):
        if opcode in _PUTS:
            memo[argument] = top
            continue
        if opcode == "BINPERSID":
            yield declared
        is_tuple = opcode == "TUPLE" and values is not None
        declared = tuple(values or ()) if is_tuple else None
        top = None
        if opcode == "MARK":
            values = []
        elif opcode in _VALUES or opcode in _GETS:
            top = argument if opcode in _VALUES else memo.get(argument)
            if values is not None:
                values.append(top)
        else:
            values = None


def _read(declared: tuple[object, ...] | None, file_name: str) -> tuple[str, int]:
    """Key and bytes of a storage."""
    match declared:
        case ("storage", str(kind), str(key), str(), int(count)) if (
            kind in _ITEM_BYTES and _KEY.fullmatch(key) and count >= 0
        ):
            return key, count * _ITEM_BYTES[kind]
    raise ConversionError(
        f"{file_name} declares a storage as torch never does.",
        "Get the weights as safetensors instead.",
    )
