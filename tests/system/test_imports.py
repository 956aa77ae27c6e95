"""Who may import whom: the packages in fresh processes, test modules by their source."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

LIGHT = """
import sys
import medusa_core.api
from medusa_core import errors, messages
from medusa_core.runtime.tree import step
heavy = {"torch", "transformers", "tokenizers", "numpy", "jinja2", "PySide6", "app", "qasync"}
print(sorted(heavy & set(sys.modules)))
from medusa_core.runtime.runner.choice import runner_registry
runner_registry()
print("transformers" in sys.modules)
"""

LAZY = """
import sys, threading
from medusa_core.api import start_engine
engine = start_engine(print)
print("torch" in sys.modules)
engine.close()
print(threading.active_count())
"""

ONE_COMMAND = """
import sys
from medusa_core.__main__ import main
try:
    main(["doctor", "--help"])
except SystemExit:
    pass
print(sorted({"medusa_core.bench", "medusa_core.training", "numpy"} & set(sys.modules)))
"""

STATE = """
import importlib, pkgutil, sys
from app import state
names = [each.name for each in pkgutil.walk_packages(state.__path__, "app.state.")]
for name in names:
    importlib.import_module(name)
print(len(names) > 0, {"PySide6.QtWidgets", "PySide6.QtGui"} & set(sys.modules))
"""


def run(code: str) -> list[str]:
    """Lines that a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def names_imported_by(path: Path) -> Iterator[str]:
    """Dotted names of all that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)


def test_the_public_api_loads_neither_torch_nor_qt_and_runners_no_transformers() -> None:
    assert run(LIGHT) == ["[]", "False"]


def test_starting_the_engine_loads_no_torch_until_there_is_work() -> None:
    assert run(LAZY) == ["False", "1"]


def test_a_command_imports_only_its_own_module() -> None:
    assert run(ONE_COMMAND)[-1] == "[]"


def test_the_state_of_the_window_imports_no_widgets() -> None:
    assert run(STATE) == ["True set()"]


def test_no_module_imports_a_test_module() -> None:
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / "tests").rglob("*.py")
        for name in names_imported_by(path)
        if name.startswith("tests.") and ".test_" in name
    ]
    assert found == [], "what several test modules need belongs in tests/support"
