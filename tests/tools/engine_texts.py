"""The engine's texts that the window translates, read out of its source.

They are the templates of `tr`, and the literal messages and hints of errors.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "medusa_core"
# Shown by the command line, by other programs and in the log alone, in English.
NOT_TRANSLATED = (
    *("bench", "terminal", "server/answer", "server/dialects"),
    *("training/heads_config.py", "training/heads_eval.py", "training/ngrams.py"),
    *("training/phrase_counts.py", "training/streams_trainee.py"),
    *("server/application.py", "server/guard.py", "server/replies.py"),
    *("server/served_embedding.py", "server/served_models.py", "server/text_prompts.py"),
    *("engine/direct.py", "engine/several.py", "system/prompts.py", "system/registry.py"),
    *("system/user_folders.py", "hub/gguf_choice.py", "hub/library/find.py"),
    *("models/text/tool_calls/learn.py", "chats/tool_calls/arguments.py"),
    *("models/text/tool_calls/round_trip.py", "chats/tool_calls/matching.py"),
    "models/text/tool_calls/comparing.py",
    "cli",
)
_FIELD = re.compile(r"\{[^{}]*\}")


def engine_texts() -> tuple[str, ...]:
    """Return all templates of texts in alphabetical order."""
    found = {text for path in translated_files() for text in texts_of(parse(path))}
    catalog = json.loads((ROOT / "resources" / "catalog.json").read_text(encoding="utf-8"))
    found |= {pair["note"] for pair in catalog["pairs"]}
    return tuple(sorted(found))


def translated_files() -> tuple[Path, ...]:
    """The engine's modules with texts for the window."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return tuple(
        path
        for path in paths
        if not path.relative_to(PACKAGE).as_posix().startswith(NOT_TRANSLATED)
    )


def parse(path: Path) -> ast.Module:
    """Parse a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def texts_of(module: ast.Module) -> Iterator[str]:
    """The templates in a module."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            for argument in text_arguments(node):
                text = argument.value if isinstance(argument, ast.Constant) else None
                if isinstance(text, str) and has_words(text):
                    yield text


def text_arguments(call: ast.Call) -> Iterator[ast.expr]:
    """The argument of `tr`, or the message and the hint of an error; each branch of a choice."""
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    arguments = call.args[:1] if name == "tr" else []
    if name.endswith("Error") and not name.startswith("_") and not hasattr(builtins, name):
        keywords = [word.value for word in call.keywords if word.arg in ("message", "hint")]
        arguments = [*call.args[:2], *keywords]
    for argument in arguments:
        is_choice = isinstance(argument, ast.IfExp)
        yield from (argument.body, argument.orelse) if is_choice else (argument,)


def has_words(template: str) -> bool:
    """Return whether a template has words besides its values."""
    return any(char.isalpha() for char in _FIELD.sub("", template))
