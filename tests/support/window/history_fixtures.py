"""Windows that keep what is said in them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.window.main_window import MainWindow
from medusa_core.api import History
from tests.support.window.driving import wait_ready
from tests.support.window.fakes import FakeEngine, Script
from tests.support.window.fixtures import Open

OpenSaved = Callable[..., tuple[MainWindow, FakeEngine]]


@pytest.fixture
def open_saved(qtbot: QtBot, open_fake: Open, tmp_path: Path) -> Iterator[OpenSaved]:
    """Open windows one after the other on one history, like restarts of the program."""
    path = tmp_path / "history.db"
    windows: list[MainWindow] = []

    def open_one(
        script: Script | None = None, num_before_gate: int = 0
    ) -> tuple[MainWindow, FakeEngine]:
        for window in windows:
            window.close()
        window, engine = open_fake(
            script, num_before_gate, history=History(path), datastore_dir=tmp_path / "learned"
        )
        windows.append(window)
        wait_ready(qtbot, window)
        return window, engine

    yield open_one
    for window in windows:
        window.close()


def choose(window: MainWindow, title: str, entry: str) -> None:
    """Select a row and take an entry of its menu, or of a menu in it."""
    controller = window.history
    assert controller is not None
    window.sidebar.select(
        next(c.id for c in controller.history.conversations() if c.title == title)
    )
    menu = controller._menu.menu()
    actions = {a.text().partition("\t")[0]: a for a in menu.actions()}
    for action in menu.actions():
        if (inner := action.menu()) is not None:
            actions.update({a.text(): a for a in inner.actions()})  # type: ignore[attr-defined]
    actions[entry].trigger()
