"""`bench --gui`: the window measures itself in a process of its own."""

import json
import sys
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.bench import window

FIGURES = """
import json, os
print("something else first")
print(json.dumps({
    "headless_tokens_per_s": 8000.0, "streaming_tokens_per_s": 7900.0, "ratio": 0.988,
    "recording_ratio": 0.97, "recording_headless_ratio": 0.96, "panels_ratio": 1.01,
    "longest_stall_ms": 14.0, "threads": os.environ.get("OMP_NUM_THREADS"),
}))
"""


def pretend(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let a program stand for the window."""
    monkeypatch.setattr(window, "COMMAND", (sys.executable, "-c", program))


def test_the_window_is_measured_with_as_many_threads_as_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, FIGURES)
    out = tmp_path / "out.json"
    assert main(["bench", "--gui", "--threads", "1", "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "0.988" in printed
    assert "7900" in printed
    found = json.loads(out.read_text(encoding="utf-8"))
    assert (found["ratio"], found["longest_stall_ms"], found["threads"]) == (0.988, 14.0, "1")


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import sys; sys.exit('There is no screen.')", "There is no screen."),
        ("print('nonsense')", "It said nothing."),
        ("print('{\"ratio\": 1.0}')", "It said nothing."),
        ("print('[1, 2]')", "It said nothing."),
        ("", "It said nothing."),
        (FIGURES + "raise SystemExit(3)", "It said nothing."),
    ],
)
def test_a_window_that_fails_is_told_of(
    program: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, program)
    assert main(["bench", "--gui"]) == 1
    error = capsys.readouterr().err
    assert told in error
    assert "python -m app" in error


def test_the_window_is_measured_with_its_own_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--gui", "--model", "somewhere"]) == 1
    assert "--model" in capsys.readouterr().err
