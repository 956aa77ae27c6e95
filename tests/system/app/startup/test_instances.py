"""One window for each data directory, and the window where it was."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot

from app.startup.single_instance import (
    LOCK_NAME,
    SingleInstance,
)
from app.window.geometry import (
    FILE_NAME,
    WindowState,
)
from medusa_core.api import places
from tests.support.window.fixtures import Open

ROOT = Path(__file__).resolve().parents[4]
HOLD = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from app.startup.single_instance import SingleInstance
qt = QCoreApplication([])
instance = SingleInstance(Path(sys.argv[1]))
instance.raise_requested.connect(lambda: print("raised", flush=True))
instance.open_requested.connect(lambda path: print("opened", ascii(path.name), flush=True))
print(instance.acquire(), flush=True)
qt.exec()
"""


def hold(folder: Path) -> subprocess.Popen[str]:
    """A process that is the instance of a folder."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    return holder


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kills as Linux does")
def test_a_second_start_raises_the_first_window_and_a_killed_one_leaves_no_lock(
    qtbot: QtBot, tmp_path: Path
) -> None:
    holder = hold(tmp_path)
    second, elsewhere = SingleInstance(tmp_path), SingleInstance(tmp_path / "other")
    assert not second.acquire()
    assert second.raise_other()
    assert holder.stdout is not None
    assert holder.stdout.readline() == "raised\n"
    odd = os.fsdecode(b"a \n\xff\xc3\xa4.gguf")
    assert second.raise_other(tmp_path / odd)
    assert holder.stdout.readline() == "raised\n"
    assert holder.stdout.readline() == f"opened {odd!a}\n"
    assert elsewhere.acquire(), "another data directory has an instance of its own"
    elsewhere.release()
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    assert (tmp_path / LOCK_NAME).exists()
    assert not second.raise_other()
    assert second.acquire()
    second.release()


def test_the_application_runs_without_a_lock_if_none_can_be_made(
    qtbot: QtBot, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    assert SingleInstance(tmp_path / "file" / "below").acquire()


def test_a_data_directory_holds_everything(tmp_path: Path) -> None:
    where = places(tmp_path)
    for folder in (where.config, where.data, where.state, where.log):
        assert folder.is_relative_to(tmp_path)
    assert len({where.config, where.data, where.state, where.log}) == 4


def test_the_window_opens_where_it_was_with_its_panels(
    qtbot: QtBot, open_fake: Open, tmp_path: Path
) -> None:
    window, _ = open_fake()
    insight = window.insight
    panels = {"tree": (lambda: insight.docks.is_seen(insight.tree), insight.open_tree)}
    state = WindowState(window, tmp_path, panels)
    window.setGeometry(30, 40, 720, 620)
    insight.open_tree()
    qtbot.waitUntil(lambda: insight.docks.is_seen(insight.tree))
    state.save()
    insight.close_all()
    window.setGeometry(0, 0, 700, 560)
    state.restore()
    assert window.geometry() == QRect(30, 40, 720, 620)
    qtbot.waitUntil(lambda: insight.docks.is_seen(insight.tree))


def test_a_window_that_is_off_the_screen_comes_back(qtbot: QtBot, tmp_path: Path) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    window.show()
    state = WindowState(window, tmp_path, {})
    window.setGeometry(9000, -7000, 500, 400)
    state.save()
    state.restore()
    screen = window.screen().availableGeometry()
    assert screen.intersects(QRect(window.x(), window.y(), 80, 40))


@pytest.mark.parametrize("content", ["", "[]", '{"geometry": 3, "docks": "x", "splitters": 1}'])
def test_a_broken_window_state_changes_nothing(qtbot: QtBot, tmp_path: Path, content: str) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    window.setGeometry(10, 20, 300, 200)
    (tmp_path / FILE_NAME).write_text(content)
    WindowState(window, tmp_path, {}).restore()
    assert window.size().width() == 300
    WindowState(window, tmp_path, {}).save()
    assert json.loads((tmp_path / FILE_NAME).read_text())["open"] == []
