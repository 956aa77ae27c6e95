"""The texts that the engine tells people, read out of its source: of errors, checks and progress.

A text with values is a template, such as `{0} has no chat template.`.
"""

from __future__ import annotations

import ast
import builtins
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "resources" / "translations" / "engine_texts.json"
# What only the command line and other programs are told, in English.
_NOT_SHOWN = (
    *("bench", "training", "system/prompts.py", "system/registry.py", "engine/several.py"),
    *("models/text/tool_calls/learn.py", "models/text/tool_calls/arguments.py"),  # for the log
    *("models/text/tool_calls/round_trip.py", "models/text/tool_calls/matching.py"),
    "models/text/tool_calls/comparing.py",
    *("engine/direct.py", "cli/arguments.py", "cli/bench.py", "cli/bench_arguments.py"),
    *("cli/batch_policy.py", "cli/bench_drafters.py", "cli/bench_throughput.py"),
    *(
        "cli/generate.py",
        "cli/grammar_arguments.py",
        "cli/heads.py",
        "cli/library.py",
        "cli/load_arguments.py",
        "cli/plan.py",
        "cli/plan_throughput.py",
        "cli/program.py",
        "cli/pull.py",
        "cli/run.py",
        "cli/serve.py",
        "cli/serve_layers.py",
        "cli/settings.py",
        "cli/serving.py",
        "cli/train.py",
        "hub/gguf_choice.py",
        "hub/library/find.py",
        "system/user_folders.py",
        "server/answer",
        "server/application.py",
        "server/dialects",
        "server/guard.py",
        "server/replies.py",
        "server/served_models.py",
        "server/text_prompts.py",
        "terminal",
    ),
)
_CALLS = (
    *("DrafterKind", "Check", "Progress", "unsupported", "report", "on_measure", "_notify"),
    *("unknown_family", "broken_off", "no_connection", "unreadable_answer", "untrusted"),
    *("disk_errors", "check_shapes"),
)
_KEYWORDS = ("message", "hint", "text")
_VARIABLES = {
    *("message", "hint", "facts", "why", "what", "instead", "reason", "note", "lack", "text"),
    *("_BOTH_WAYS", "_OF_ANOTHER", "_OWN_PROGRAM", "_NOBODYS", "_MULTIMODAL"),
}
Parts = tuple[str | None, ...]  # None stands for a value


def engine_texts() -> tuple[str, ...]:
    """All templates, in alphabetical order."""
    found = set()
    package = ROOT / "medusa_core"
    for path in sorted(package.rglob("*.py")):
        if not path.relative_to(package).as_posix().startswith(_NOT_SHOWN):
            found |= set(_texts(ast.parse(path.read_text(encoding="utf-8"))))
    catalog = json.loads((ROOT / "resources" / "catalog.json").read_text(encoding="utf-8"))
    found |= {pair["note"] for pair in catalog["pairs"]}
    return tuple(sorted(found))


def _texts(module: ast.Module) -> Iterator[str]:
    constants = {
        target.id: node.value.value
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }
    for node in ast.walk(module):
        for reported in _texts_of(node):
            for parts in _alternatives(reported, constants):
                text = _template(parts)
                if _is_sentence(text):
                    yield text


def _texts_of(node: ast.AST) -> list[ast.expr]:
    """The expressions in which a text for people may stand."""
    if isinstance(node, ast.Call) and _takes_text(node):
        return [*node.args[:6], *(k.value for k in node.keywords if k.arg in _KEYWORDS)]
    if isinstance(node, ast.Assign):
        names = [name for target in node.targets for name in _names(target)]
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        return list(values) if set(names) & _VARIABLES else []
    return []


def _names(target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _takes_text(call: ast.Call) -> bool:
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    is_error = name.endswith("Error") and not hasattr(builtins, name)
    return is_error or name in _CALLS


def _alternatives(node: ast.expr, constants: Mapping[str, str]) -> list[Parts]:
    """All that a text may be made of."""
    match node:
        case ast.Constant(value=str() as text):
            return [(text,)]
        case ast.Name(id=name) if name in constants:
            return [(constants[name],)]
        case ast.JoinedStr(values=values):
            return [tuple(one.value if isinstance(one, ast.Constant) else None for one in values)]
        case ast.IfExp(body=body, orelse=orelse):
            return _alternatives(body, constants) + _alternatives(orelse, constants)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            pairs = ((a, b) for a in _alternatives(left, constants) for b in (right,))
            return [(*a, *c) for a, b in pairs for c in _alternatives(b, constants)]
    return [(None,)]


def _template(parts: Parts) -> str:
    text, number = "", 0
    for part in parts:
        text += f"{{{number}}}" if part is None else part
        number += part is None
    return text


def _is_sentence(text: str) -> bool:
    """More than a value or a name: words, and a place for them to end."""
    words = [word for word in text.split() if any(char.isalpha() for char in word)]
    return len(words) > 1
