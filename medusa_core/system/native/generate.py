"""Writes `src/abi.h` and `src/abi.c`: `python -m medusa_core.system.native.generate [--check]`.

They hold what `constants.py` and `structs.py` describe, so that nobody writes a field or a number
twice. Comments are those of the Python sources.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from ctypes import Structure
from enum import IntEnum
from pathlib import Path
from types import ModuleType

from medusa_core.system.native import constants
from medusa_core.system.native.constants import ENUMS
from medusa_core.system.native.structs import DECLARATIONS, STRUCTS, c_name, entries, fields_of

SOURCES = Path(__file__).parent / "src"
_WIDTH = 108  # of a line in C
_WRITTEN = "Written by medusa_core.system.native.generate; don't edit it."
_HEADER = f"""/* Constants, structures and functions that Python and the compiled step share.
   {_WRITTEN} */

#ifndef MEDUSA_ABI_H
#define MEDUSA_ABI_H

#include <stdatomic.h>
#include <stdint.h>

"""
_TASK = """/* A task of a job, computed by a worker: 0 is the calling thread. */
typedef void Task(void *job, int32_t index, int32_t worker);

"""
_TABLE = f"""/* What Python compares when it loads a library.
   {_WRITTEN} */

#include "abi.h"

#include <stddef.h>

typedef struct {{
    const char *owner, *name, *type;
    int32_t value, size;
}} Entry;

#define FIELD(of, field, type) {{#of, #field, type, offsetof(of, field), sizeof(((of *)0)->field)}}

static const Entry entries[] = {{
"""
_TABLE_END = """};

const Entry *abi_entries(int32_t *count) {
    *count = sizeof entries / sizeof *entries;
    return entries;
}
"""


def main() -> int:
    """Write the files, or check whether they are up to date."""
    parser = argparse.ArgumentParser(
        prog="python -m medusa_core.system.native.generate", description=__doc__
    )
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    if not parser.parse_args().check:
        write()
        return 0
    for name in outdated():
        print(
            f"src/{name} isn't what structs.py and constants.py describe. Run it without --check."
        )
    return 1 if outdated() else 0


def write(folder: Path = SOURCES) -> None:
    """Write the generated sources."""
    for name, text in texts().items():
        (folder / name).write_text(text, encoding="utf-8")


def outdated(folder: Path = SOURCES) -> list[str]:
    """Return the names of generated sources that differ from their description."""
    return [
        name
        for name, text in texts().items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


def texts() -> dict[str, str]:
    """Return the generated sources by their names."""
    return {"abi.h": "".join(_header()), "abi.c": _TABLE + "".join(_table()) + _TABLE_END}


def _header() -> Iterator[str]:
    """Yield the C header: constants, enumerations, structures and declarations."""
    yield _HEADER
    comments = _comments(constants)
    for name, value in constants.shared():
        if isinstance(value, int):
            yield _line("", f"enum {{ {name} = {value} }};", comments.get(name, ""))
        else:
            numbers = value if isinstance(value, float) else f"{{{str(value)[1:-1]}}}"
            yield _line("", f"#define {name} {numbers}", comments.get(name, ""))
    for enum in ENUMS:
        yield f"\n{_comment('', enum.__doc__)}typedef enum {{\n"
        comments = _comments(enum)
        for member in enum:
            yield _line("    ", f"{member.name} = {member.value},", comments.get(member.name, ""))
        yield f"}} {enum.__name__};\n"
    yield f"\n{_TASK}"
    for struct in STRUCTS:
        yield from _struct(struct)
    yield f"{DECLARATIONS}\n#endif\n"


def _struct(struct: type[Structure]) -> Iterator[str]:
    """Yield a C structure with the comments of the Python class."""
    comments = _comments(struct)
    yield f"{_comment('', struct.__doc__)}typedef struct {c_name(struct)} {{\n"
    for name, c_type, _ in fields_of(struct):
        between = "" if c_type.endswith("*") else " "
        yield _line("    ", f"{c_type}{between}{name};", comments.get(name, ""))
    yield f"}} {c_name(struct)};\n\n"


def _table() -> Iterator[str]:
    """Yield the entries; offsets and sizes are those of the C compiler."""
    sized = {c_name(struct) for struct in STRUCTS}
    for owner, name, c_type, _, _ in entries():
        if owner not in sized:
            number = name if owner in {enum.__name__ for enum in ENUMS} else "0"
            yield f'    {{"{owner}", "{name}", "{c_type}", {number}, 0}},\n'
        elif name:
            yield f'    FIELD({owner}, {name}, "{c_type}"),\n'
        else:
            yield f'    {{"{owner}", "", "", 0, sizeof({owner})}},\n'


def _comments(described: ModuleType | type[Structure] | type[IntEnum]) -> dict[str, str]:
    """Read the comments that follow or precede the members of a module or class, by their names."""
    found: dict[str, str] = {}
    before: list[str] = []
    for line in inspect.getsource(described).splitlines():
        code, _, after = line.strip().partition("  # ")
        if code.startswith("# "):
            before.append(code.removeprefix("# "))
            continue
        if member := re.match(r"(\w+)(: | = )", code):
            found.setdefault(member[1], " ".join([*before, after]).strip())
        before = []
    return found


def _comment(indent: str, text: str | None) -> str:
    """Format a C comment of one or several lines."""
    lines = [line.strip() for line in (text or "").strip().splitlines()]
    return f"{indent}/* " + f"\n{indent}   ".join(lines).replace("\n   \n", "\n\n") + " */\n"


def _line(indent: str, code: str, comment: str) -> str:
    """A line of C with its comment, after it if there is room."""
    if not comment:
        return f"{indent}{code}\n"
    whole = f"{indent}{code} /* {comment} */"
    return f"{whole}\n" if len(whole) <= _WIDTH else f"{_folded(indent, comment)}{indent}{code}\n"


def _folded(indent: str, comment: str) -> str:
    """Format a comment in lines of at most `_WIDTH` characters."""
    lines = [""]
    for word in comment.split():
        if len(f"{indent}/* {lines[-1]} {word} */") > _WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return _comment(indent, "\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
