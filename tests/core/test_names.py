"""A public name means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What each file of its kind has: a protocol between files, not a name to be found by.
_BY_PROTOCOL = {"add_arguments", "build", "main", "run"}
# Functions of one name in two modules. This list may shrink; give a new function a name of its own.
SHARED = {
    "as_json",
    "cells",
    "clean",
    "config_of",
    "describe",
    "describe_step",
    "embedding_bytes",
    "files_of",
    "forecast",
    "from_json",
    "gain_text",
    "grouped",
    "in_order",
    "look_of",
    "memory_now",
    "model_key",
    "options_of",
    "part_of",
    "peak_bytes",
    "progress_line",
    "rank_shares",
    "read_bytes",
    "reader_of",
    "row_of",
    "rows_of",
    "run_convert",
    "run_import",
    "run_throughput",
    "save_picture",
    "search",
    "settings_of",
    "shape_config",
    "size_of",
    "text_of",
    "title_of",
    "unpack",
    "verdict",
    "verify",
    "version_of",
    "whole",
    "words_of",
}


def test_no_class_has_the_name_of_another() -> None:
    twice = {name: places for name, places in _places(_classes_in).items() if len(places) > 1}
    assert not twice


def test_few_functions_have_the_name_of_another() -> None:
    twice = {name for name, places in _places(_functions_in).items() if len(places) > 1}
    assert twice - _BY_PROTOCOL == SHARED, "new names to change, or old ones to take off the list"


def _places(names_in: object) -> dict[str, list[str]]:
    found = defaultdict(list)
    for package in ("medusa_core", "app"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in names_in(ast.parse(path.read_text(encoding="utf-8"))):
                if not name.startswith("_"):
                    found[name].append(str(path.relative_to(ROOT)))
    return found


def _classes_in(tree: ast.Module) -> list[str]:
    """Classes and types with a name: an assignment in CamelCase."""
    names = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        names += [one.id for one in targets if isinstance(one, ast.Name) and _is_type(one.id)]
    return names


def _is_type(name: str) -> bool:
    return name[:1].isupper() and not name.isupper()


def _functions_in(tree: ast.Module) -> list[str]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return [node.name for node in tree.body if isinstance(node, kinds)]
