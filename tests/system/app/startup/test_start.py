"""The start, in processes of its own: quick, without torch, and with help where it can't work."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.startup import surroundings
from app.startup.logs import (
    FILE_NAME,
    show_uncaught_errors,
)
from app.startup.streams import provide_streams, report_start_failure
from medusa_core.api import demo_model
from tests.benchmarks.stalls import StallProbe, process_age_s

ROOT = Path(__file__).resolve().parents[4]

SHOW_ONLY = """
import json, sys
from PySide6.QtWidgets import QApplication
from app.window.application import Options, build
from tests.benchmarks.stalls import process_age_s
qt = QApplication([])
application = build(Options(is_fresh=True))
application.window.show()
qt.processEvents()
print(json.dumps({
    "visible": application.window.isVisible(),
    "window_s": round(process_age_s(), 3),
    "heavy": sorted({"torch", "transformers", "tokenizers", "numpy"} & set(sys.modules)),
}))
application.close()
"""


def run(*arguments: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the repository as a user whose home is empty."""
    known = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    known |= {"HOME": str(home), "XDG_STATE_HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=known | environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_the_window_is_shown_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    shown = run("-c", SHOW_ONLY, home=tmp_path)
    assert shown.returncode == 0, shown.stderr
    figures = json.loads(shown.stdout)
    print(figures)
    assert figures["visible"]
    assert figures["heavy"] == []


def test_the_startup_probe_measures_a_real_start(tmp_path: Path) -> None:
    assert demo_model()[0].is_dir()
    probed = run("-m", "tests.benchmarks.startup", home=tmp_path)
    assert probed.returncode == 0, probed.stderr
    figures = json.loads(probed.stdout)
    print(figures)
    assert not figures["torch_at_window"]
    assert 0 < figures["window_s"] < figures["ready_s"]
    assert figures["longest_stall_ms"] >= 0
    logged = (tmp_path / "medusa-chat" / "log" / FILE_NAME).read_text()
    assert "ERROR" not in logged


@pytest.mark.slow
def test_the_tour_takes_every_screen_in_both_themes(tmp_path: Path) -> None:
    toured = run("-m", "tests.tools.tour", str(tmp_path), home=tmp_path)
    assert toured.returncode == 0, toured.stderr
    index = json.loads((tmp_path / "index.json").read_text())
    assert {entry["theme"] for entry in index} == {"light", "dark"}
    by_screen = {(entry["screen"], entry["theme"]): entry for entry in index}
    for (screen, _theme), entry in by_screen.items():
        assert (tmp_path / entry["file"]).stat().st_size > 10_000
        has_answer = screen not in ("empty", "tree-planned")
        assert (entry["answer_text"] != "") == has_answer
        assert (entry["num_accepted"] > 0) == (has_answer and screen != "plain")
    panels = {"tree-planned", "tree", "tree-table", "token-card", "steps", "equilibrium", "compare"}
    assert panels <= {screen for screen, _ in by_screen}
    assert len(by_screen) == len(index) >= 30


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="displays are Linux's affair")
def test_without_a_display_the_command_line_is_offered(tmp_path: Path) -> None:
    started = run("-m", "app", home=tmp_path, QT_QPA_PLATFORM="", WAYLAND_DISPLAY="")
    assert started.returncode == 2
    assert "There is no display" in started.stderr
    assert "medusa generate" in started.stderr
    assert "Traceback" not in started.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="displays are Linux's affair")
def test_an_unreachable_display_is_explained(tmp_path: Path) -> None:
    started = run("-m", "app", home=tmp_path, QT_QPA_PLATFORM="xcb", DISPLAY=":987")
    assert started.returncode == 2
    assert "The display :987 can't be reached." in started.stderr
    assert "apt-get" not in started.stderr
    assert surroundings.COMMAND_LINE in started.stderr


def test_a_missing_library_names_the_packages_and_an_alternative() -> None:
    reported = surroundings.qt_problem(ImportError("libEGL.so.1: cannot open shared object file"))
    assert "libEGL.so.1" in reported
    assert "libegl1" in reported or "libEGL.so.1()(64bit)" in reported or "libglvnd" in reported
    assert surroundings.COMMAND_LINE in reported


def test_a_missing_qt_names_the_installer() -> None:
    reported = surroundings.qt_problem(ModuleNotFoundError("No module named 'PySide6'"))
    assert "python3 installer run" in reported


def test_an_import_error_of_our_own_is_not_explained_as_a_missing_library() -> None:
    with pytest.raises(ImportError, match="nonsense"):
        surroundings.qt_problem(ImportError("cannot import name 'nonsense'"))


@pytest.mark.expects_errors
def test_an_uncaught_error_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    shown: list[tuple[str, str]] = []
    show_uncaught_errors(lambda message, hint: shown.append((message, hint)), tmp_path / "log")
    sys.excepthook(ValueError, ValueError("odd"), None)
    assert shown == [
        (
            "Something in the window failed: ValueError.",
            f"You can go on; the details are in {tmp_path / 'log'}.",
        )
    ]


def test_the_age_of_the_process_increases() -> None:
    first = process_age_s()
    assert 0 < first < 3600
    assert process_age_s() >= first


def test_the_stall_probe_notices_a_stall(qtbot: QtBot) -> None:
    probe = StallProbe()
    probe.start()
    time.sleep(0.2)
    qtbot.waitUntil(lambda: probe.longest_stall_ms > 150)
    probe.stop()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="displays are Linux's affair")
def test_a_missing_library_for_x11_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    for name in ("WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(surroundings, "_answers", lambda _display: True)
    monkeypatch.setattr(surroundings, "can_load", lambda file: file != "libxcb-cursor.so.0")
    reported = surroundings.screen_problem("xcb")
    assert reported is not None
    assert "without libxcb-cursor.so.0.\n" in reported
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert surroundings.screen_problem(None) is None, "Wayland needs no library of X11"
    assert surroundings.screen_problem("offscreen") is None


@pytest.mark.slow
def test_the_probe_compares_streaming_with_an_unseen_answer(tmp_path: Path) -> None:
    kept = tmp_path / "streaming.json"
    probed = run("-m", "tests.benchmarks.streaming", "--json", str(kept), home=tmp_path)
    assert probed.returncode == 0, probed.stderr
    figures = json.loads(probed.stdout)
    assert json.loads(kept.read_text()) == figures
    assert figures["streaming_tokens_per_s"] > 0
    assert 0 < figures["ratio"] < 2


def test_without_a_terminal_output_streams_discard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    provide_streams()
    sys.stdout.write("nobody reads this")
    report_start_failure("nor this")
    sys.stdout.close()
    sys.stderr.close()
