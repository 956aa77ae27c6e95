"""Calls that are written as Python writes them: `[name(key=value), …]`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Mapping

_MOST_CHARS = 1 << 16
# A string, or the name of a function or an argument. JSON schemas allow names that Python doesn't,
# such as `from` and `get-time`.
_STRING_OR_NAME = re.compile(
    r"""'(?:[^'\\]|\\.)*(?:'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)"""  # an open one is scanned once
    r"""|(?<![^\s\[(,])([^\s'"()\[\]{},:=]+)(?=\s*[(=])""",
    re.DOTALL,
)
_NAME = "name_{}"  # stands for the name of that number


def begins_python_call(text: str, names: Collection[str]) -> bool:
    """Whether a text begins with a Python call of a known function, in a list or alone.

    Args:
        text: Without space and bracket at its beginning.
        names: Names of the available functions.
    """
    return any(text.startswith(f"{name}(") for name in names)


def python_calls(text: str, names: Collection[str]) -> list[tuple[str, str]]:
    """Return name and JSON arguments of each call in a text; empty if it isn't all calls.

    Args:
        text: Nothing but calls, with or without brackets around them.
        names: Names of the available functions.
    """
    if len(text) > _MOST_CHARS:
        return []
    known: list[str] = []

    def numbered(found: re.Match[str]) -> str:
        if found.group(1) is None:
            return found.group()
        known.append(found.group(1))
        return _NAME.format(len(known) - 1)

    text = _STRING_OR_NAME.sub(numbered, text.strip())
    try:
        tree = ast.parse(text, mode="eval").body
        calls = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        originals = {_NAME.format(number): name for number, name in enumerate(known)}
        found = [_call(call, originals) for call in calls]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return found if all(name in names for name, _ in found) else []


def _call(node: ast.expr, originals: Mapping[str, str]) -> tuple[str, str]:
    """Return name and JSON arguments of a call.

    Args:
        originals: Names by those that stand for them.

    Raises:
        ValueError: It isn't a call, or an argument isn't a keyword with a literal.
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
        raise ValueError("no call with named arguments")
    arguments = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ValueError("an argument has no name")
        arguments[originals.get(keyword.arg, keyword.arg)] = ast.literal_eval(
            _JsonNames().visit(keyword.value)
        )
    try:
        return originals.get(node.func.id, node.func.id), json.dumps(arguments, ensure_ascii=False)
    except TypeError as error:  # a set, bytes
        raise ValueError("no JSON") from error


class _JsonNames(ast.NodeTransformer):
    """Replace JSON's names `true`, `false` and `null` by Python's constants."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a JSON name by its constant."""
        values = {"true": True, "false": False, "null": None}
        return ast.Constant(values[node.id]) if node.id in values else node
