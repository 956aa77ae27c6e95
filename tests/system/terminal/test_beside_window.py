"""A window and a terminal of one user at once: one history, and `ps` that knows both."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.chats.history.history import History
from medusa_core.system.running_models import RunningModel, running_models
from medusa_core.system.user_folders import places
from tests.support.terminal.fixtures import StartChat
from tests.support.terminal.typing_at import READY, ROOT

WAIT_S = 240.0
# Step costs are measured briefly, else the window takes four seconds of the processor for them.
WINDOW = """
import runpy
from medusa_core.speculation.tuning import calibration
calibration.BUDGET_S["cpu"], calibration._ROUNDS = 0.1, 1
runpy.run_module("app", run_name="__main__")
"""


@pytest.fixture
def window(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a window on a virtual display."""
    options = ["--platform", "offscreen", "--data-dir", str(tmp_path)]
    command = [sys.executable, "-c", WINDOW, *options]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    yield process
    process.kill()
    process.wait()


def programs(folder: Path, num_loaded: int) -> list[RunningModel]:
    """Return the programs, once the given number of them have a model."""
    until_s = time.monotonic() + WAIT_S
    while True:
        found = list(running_models(places(folder).running))
        if sum(bool(one.model) for one in found) == num_loaded:
            return found
        assert time.monotonic() < until_s, found
        time.sleep(0.1)


def test_window_and_terminal_are_listed_and_a_killed_window_affects_no_terminal(
    window: subprocess.Popen[bytes],
    start_chat: StartChat,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (first,) = programs(tmp_path, 1)
    assert (first.program, first.pid) == ("window", window.pid)
    chat = start_chat()
    chat.wait_for(READY)
    assert {one.program for one in programs(tmp_path, 2)} == {"window", "run"}
    listed = ("ps", "--data-dir", str(tmp_path))
    capsys.readouterr()
    assert main(listed) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["NAME", "SIZE", "DEVICE", "CONTEXT", "SINCE", "BY", "ADDRESS"]
    assert all(row.startswith("llama-pebble") for row in rows)
    assert any(row.endswith(f"run ({chat.process.pid})") for row in rows)
    chat.ask("Before.")
    os.kill(window.pid, signal.SIGKILL)
    window.wait()
    assert [one.program for one in programs(tmp_path, 1)] == ["run"]
    assert len(list(places(tmp_path).running.iterdir())) == 1
    assert main([*listed, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["running"]
    assert (one["model"], one["program"], one["context_tokens"]) == ("llama-pebble", "run", 1024)
    chat.ask("After.")
    chat.ask("/bye", "")
    assert chat.end() == 0
    capsys.readouterr()
    assert main(listed) == 0
    assert capsys.readouterr().out == "nothing is loaded\n"
    history = History(places(tmp_path).history)
    (info,) = history.conversations()
    texts = [message.text for message in history.messages(info.id)]
    assert texts[::2] == ["Before.", "After."]
    assert all(texts)
    assert history.problems() == ()
    history.close()
