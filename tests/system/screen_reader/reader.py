"""The screen reader's process: it starts the window, works with it, and writes what it found.

Runs under the system's Python, inside the desktop of `session`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.system.screen_reader.program import Program
from tests.system.screen_reader.tasks import TASKS, do
from tests.system.screen_reader.visit import TOURS, visit, welcome

ROOT = Path(__file__).resolve().parents[3]


def main() -> None:
    """Arguments: the project's Python, a folder for everything, and what is wanted of it."""
    python, folder, *parts = sys.argv[1:]
    program = Program(python, ROOT, Path(folder))
    pages: dict[str, list[str]] = {}
    tasks: dict[str, str] = {}
    try:
        program.dialog("First steps")
        if not parts or "welcome" in parts:
            pages |= visit(program, "welcome", welcome)
        program.close_dialogs()
        program.wait_for_model()
        for name, tour in TOURS.items():
            if not parts or name in parts:
                pages |= visit(program, name, tour)
        for name, task in TASKS.items():
            if not parts or name in parts:
                tasks[name] = do(program, task)
    finally:
        program.close()
    pages["said by Qt"] = program.warnings()
    report = json.dumps({"pages": pages, "tasks": tasks}, ensure_ascii=False)
    Path(folder, "report.json").write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
