"""The Python examples of the documents run, and do what the page says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from markdown_it import MarkdownIt

from docs.pages import ROOT

# The example's module joins the folder that its page names, without being written to it.
COMPARE = """
import sys
from medusa_core.speculation.drafters import sources
sources.__path__.append(sys.argv[1])
from medusa_core.api import demo_model
from medusa_core.engine.direct import generate
from medusa_core.loading.load import load_target
from medusa_core.messages import ChatMessage, GenerateSettings, Role
target = load_target(*demo_model())
messages = (ChatMessage(Role.USER, "Tell me a story about a cat."),)
plain, drafted = (
    generate(target, messages, GenerateSettings(rule="greedy", drafter=name, max_new_tokens=200))
    for name in ("none", "bigram")
)
assert drafted.token_ids == plain.token_ids
assert drafted.num_steps < plain.num_steps, (drafted.num_steps, plain.num_steps)
"""


def example(page: str) -> str:
    tokens = MarkdownIt("commonmark").parse((ROOT / "docs" / page).read_text("utf-8"))
    return next(token.content for token in tokens if token.info == "python")


def run(*arguments: str) -> str:
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_of_the_client_prints_its_answer_step_by_step() -> None:
    printed = run("-c", example("python.md"))

    assert "|" in printed
    assert "tokens in" in printed.splitlines()[-1]


def test_the_first_drafter_drafts_and_changes_no_token(tmp_path: Path) -> None:
    (tmp_path / "bigram_source.py").write_text(example("first-drafter.md"), "utf-8")

    run("-c", COMPARE, str(tmp_path))
