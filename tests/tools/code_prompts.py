"""Writes code prompts for `train heads --data`, from functions of installed Python packages.

`python -m tests.tools.code_prompts FILE [--number N] [--seed N]`

Signatures and docstrings of Python's standard library (PSF licence) and of packages with BSD or MIT
licences; each alone, as in HumanEval, and in a sentence. No prompt of a benchmark is among them.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import random
import warnings
from collections.abc import Iterator
from pathlib import Path

PACKAGES = (
    "json",
    "more_itertools",
    "mpmath",
    "networkx",
    "numpy",
    "scipy",
    "sympy",
    "torch",
)  # the first for the standard library's folder
_SHORTEST, _LONGEST = 40, 700  # characters of a docstring
_MOST_LINES = 14
_SKIPPED = {"test", "tests", "idlelib", "lib2to3", "site-packages"}
_SENTENCES = (
    "Complete this function:\n\n```python\n{0}```",
    "Write this Python function:\n\n```python\n{0}```",
    "Implement the function below and explain briefly how it works.\n\n```python\n{0}```",
    "Write a Python function `{1}` with this description: {2}",
    "Write a Python function `{1}` and three tests for it. {2}",
    "How would you write `{1}` in Python? {2}",
)


def prompts(rng: random.Random) -> Iterator[str]:
    """Yield two prompts for each function with a docstring of suitable length."""
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        folder = Path(spec.origin).parent
        for file in sorted((folder.parent if name == "json" else folder).rglob("*.py")):
            if not _SKIPPED & set(file.parts[len(folder.parent.parts) :]):
                yield from _of_file(file, rng)


def _of_file(file: Path, rng: random.Random) -> Iterator[str]:
    """Yield prompts of a file's functions; none of a file that isn't Python 3."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old escapes in other people's strings
            tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return
    for node in ast.walk(tree):
        text = ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else None
        if not isinstance(node, ast.FunctionDef) or not text or node.name.startswith("_"):
            continue
        if node.args.args and node.args.args[0].arg in {"self", "cls"}:
            continue  # a method has too little of its context
        if _SHORTEST <= len(text) <= _LONGEST and text.count("\n") < _MOST_LINES:
            head = f"def {node.name}({ast.unparse(node.args)}):"
            body = "\n".join(f"    {line}".rstrip() for line in f'"""{text}\n"""'.splitlines())
            stub = f"{head}\n{body}\n"
            sentence = rng.choice(_SENTENCES)
            first = " ".join(text.split("\n\n")[0].split())
            yield stub
            yield sentence.format(stub, node.name, first)


def main() -> None:
    """Write the prompts as JSON lines."""
    parser = argparse.ArgumentParser(description="Write code prompts for train heads.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--number", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    found = sorted(set(prompts(rng)))
    rng.shuffle(found)
    rows = (json.dumps({"category": "code", "prompt": text}) for text in found[: options.number])
    options.file.write_text("".join(row + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
