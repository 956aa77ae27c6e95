"""`medusa run` with a real model: an answer, its figures and its tree; and the same from a pipe."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.terminal.typing_at import READY, ROOT, Typist

SMOLLM = "smollm2"
QUESTION = "What is the capital of France? Answer in one short sentence."
EXACT = ("--set", "rule", "greedy", "--set", "max_new_tokens", "40", "--no-learned")


def test_a_chat_and_a_pipe_give_the_same_answer(
    real_model: Callable[[str], Path], tmp_path: Path
) -> None:
    smollm = real_model(SMOLLM)
    chat = Typist("run", str(smollm), *EXACT, "--data-dir", str(tmp_path), size=(50, 400))
    try:
        chat.wait_for(READY)
        shown = chat.ask(QUESTION)
        stats, tree = chat.ask("/stats"), chat.ask("/tree")
        chat.ask("/bye", "")
        assert chat.end() == 0
    finally:
        chat.close()
    assert "Paris" in shown
    assert re.search(r"Hydra +\d+ of \d+ draft tokens accepted", stats)
    assert "draft tokens accepted" in tree
    piped = subprocess.run(
        [sys.executable, "-m", "medusa_core", "run", str(smollm), *EXACT],
        cwd=ROOT,
        input=QUESTION,
        capture_output=True,
        text=True,
        check=True,
    )
    assert piped.stderr == ""
    assert piped.stdout.strip() in shown
