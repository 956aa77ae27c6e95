"""What is wrong with a page for those who can't see it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tests.system.screen_reader.bus import Node

# What keys reach through what they lie in: cells by arrows, an inner list by its box.
INNER = {
    "list item",
    "table cell",
    "tree item",
    "page tab",
    "menu item",
    "check menu item",
    "radio menu item",
    "scroll bar",
    "table column header",
    "table row header",
    "popup menu",
}
WITHOUT_MEANING = {"filler", "unknown", "invalid", "frame", "redundant object", "viewport"}
PICTURES = {"image", "chart", "canvas", "icon"}
_CODE = re.compile(r"\bQ[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w*(Box|Edit|Button|View|Panel|Widget)\b|\.py\b")
_MARKUP = re.compile(r"</?(qt|span|b|br|p|a|html|i)\b[^>]*>", re.IGNORECASE)
_WORD = re.compile(r"\w")


def faults(page: Node, reached: Iterable[str] = ()) -> list[str]:
    """Return all accessibility faults of a page.

    Args:
        page: A window or a part of it.
        reached: Keys of what Tab came to, as `key_of` gives them; empty leaves this law out.
    """
    nodes, found = list(_walk(page, ())), []
    keys = set(reached)
    for node, parents in nodes:
        found += [f"{law}: {node} in {_place(parents)}" for law in _broken(node, parents)]
        if keys and _takes_tab(node, parents) and key_of(node) not in keys:
            found.append(f"Tab never comes here: {node} in {_place(parents)}")
    return found


def key_of(node: Node) -> str:
    """Return the key that distinguishes an object from others of its page."""
    return f"{node.role}|{node.name or node.own_name}"


def _walk(node: Node, parents: tuple[Node, ...]) -> Iterable[tuple[Node, tuple[Node, ...]]]:
    yield node, parents
    for child in node.children:
        if child.is_seen or child.role == "table column header":
            yield from _walk(child, (*parents, node))


def _broken(node: Node, parents: Sequence[Node]) -> Iterable[str]:
    role, name = node.role, node.name
    is_operated = node.has("FOCUSABLE") or bool({"Press", "Toggle"} & set(node.actions))
    is_inner = role in INNER or _is_inner_list(node, parents)
    is_inner |= role == "page tab list" and not node.children
    is_inner |= _is_frame_of_another(node)
    if is_operated and not is_inner and not name:
        yield "no name"
    if is_operated and not is_inner and name and not _WORD.search(name):
        yield "a name without a word"
    if is_operated and not is_inner and role in WITHOUT_MEANING:
        yield "no role"
    if _CODE.search(name) and role not in ("text", "label", "terminal"):
        yield "a name out of the code"
    if role in PICTURES and not (name and node.description):
        yield "a picture without a description"
    if role in ("table", "tree", "tree table"):
        yield from _headless(node)
    if role in ("dialog", "frame", "alert") and not name and not parents:
        yield "a window without a title"
    if role == "progress bar" and not name:
        yield "progress of what"
    if node.description and _MARKUP.search(node.description):
        yield f"markup is read ({node.description[:40]!r})"


def _headless(table: Node) -> Iterable[str]:
    heads = [child for child in table.children if child.role == "table column header"]
    cells = [child for child in table.children if child.role == "table cell"]
    if not heads and cells:
        yield "a table without headers"
    if any(not head.own_name for head in heads):
        yield "a column without a header"


def _is_frame_of_another(node: Node) -> bool:
    """Return whether keyboard focus goes to an inner object: tabs above pages, the line edit of a
    field.
    """
    inner = {child.role for child in node.children if child.has("FOCUSABLE")}
    return node.role in ("filler", "panel") and bool(inner & {"page tab list", "text"})


def _is_inner_list(node: Node, parents: Sequence[Node]) -> bool:
    return node.role == "list" and bool(parents) and parents[-1].role == "combo box"


def _takes_tab(node: Node, parents: Sequence[Node]) -> bool:
    is_inner = node.role in INNER or _is_inner_list(node, parents) or _is_frame_of_another(node)
    inner_of_field = any(parent.role in ("spin button", "combo box") for parent in parents)
    return (
        node.has("FOCUSABLE")
        and node.has("ENABLED")
        and not is_inner
        and not inner_of_field
        and (node.role != "label" or bool(node.text))  # other labels are only clicked
    )


def _place(parents: Sequence[Node]) -> str:
    named = [str(parent) for parent in parents if parent.name]
    return " / ".join(named[-2:])
