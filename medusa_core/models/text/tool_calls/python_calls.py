"""Calls that are written as Python writes them: `[name(key=value), …]`."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection

_MOST_CHARS = 1 << 16


def begins_python_call(text: str, names: Collection[str]) -> bool:
    """Does a text begin with such a call?

    Args:
        text: Without space and bracket at its beginning.
        names: Of the functions there are.
    """
    return any(text.startswith(f"{name}(") for name in names)


def python_calls(text: str, names: Collection[str]) -> list[tuple[str, str]]:
    """Names and arguments, as JSON, of the calls in a text; empty if it isn't made of such calls.

    Args:
        text: Nothing but calls, with or without brackets around them.
        names: Of the functions there are.
    """
    if len(text) > _MOST_CHARS:
        return []
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        calls = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        found = [_call(call) for call in calls]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return found if all(name in names for name, _ in found) else []


def _call(node: ast.expr) -> tuple[str, str]:
    """Name and arguments of a call.

    Raises:
        ValueError: It is none, or an argument is no literal with a name.
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
        raise ValueError("no call with named arguments")
    arguments = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ValueError("an argument has no name")
        arguments[keyword.arg] = ast.literal_eval(_JsonNames().visit(keyword.value))
    try:
        return node.func.id, json.dumps(arguments, ensure_ascii=False)
    except TypeError as error:  # a set, bytes
        raise ValueError("no JSON") from error


class _JsonNames(ast.NodeTransformer):
    """Names of JSON's values, which templates write for what isn't text."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Python's value for such a name."""
        values = {"true": True, "false": False, "null": None}
        return ast.Constant(values[node.id]) if node.id in values else node
