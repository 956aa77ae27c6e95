"""Windows for tests: the real widgets, with an engine of the test's choice."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.messages.answer_message import AnswerMessage
from app.engine import bridge as engine_bridge
from app.engine.bridge import (
    EngineBridge,
    EngineFactory,
)
from app.engine.loaded_model import LoadedModel
from app.settings.preferences import Preferences
from app.settings.store import SettingsStore
from app.theme.appearance import Appearance, ThemeChoice
from app.window.main_window import MainWindow
from medusa_core.api import resources_dir
from medusa_core.loading.choice import (
    ModelChoice,
    demo_choice,
)
from tests.support.window.driving import TIMEOUT_MS, ask, wait_ready
from tests.support.window.engine_events import RULES, SOURCES
from tests.support.window.fakes import FakeEngine, Script

Model = tuple[Path, Path | None]
OpenWindow = Callable[..., MainWindow]
Opened = tuple[MainWindow, FakeEngine]
Open = Callable[..., Opened]
Seen = tuple[MainWindow, AnswerMessage]


@pytest.fixture(autouse=True, scope="session")
def patience() -> None:
    """Waits end when what they wait for has come: pytest-qt's five seconds bind busy machines."""
    for wait in (QtBot.waitUntil, QtBot.waitSignal, QtBot.waitSignals):
        wait.__kwdefaults__["timeout"] = TIMEOUT_MS


@pytest.fixture
def appearance(qtbot: QtBot) -> Appearance:
    """The light theme, applied."""
    looks = Appearance(resources_dir())
    looks.use(ThemeChoice.LIGHT)
    looks.legend.learn(SOURCES, RULES)
    return looks


@contextmanager
def windows(
    looks: Appearance, folder: Path, calibrations: Path | None = None
) -> Iterator[OpenWindow]:
    """Opens windows on engines and loads the demo model in each; their engines end at the end.

    Events are shown as they come: the pauses that a bridge makes are for an engine that decodes.

    Args:
        looks: Of all of them.
        folder: Of the user's data.
        calibrations: Where step costs are kept; None keeps none.
    """
    bridges: list[EngineBridge] = []
    seeds = count(100)

    def open_on(
        start: EngineFactory,
        model: Model | None = None,
        settings: SettingsStore | None = None,
        **kept: Any,
    ) -> MainWindow:
        bridge = EngineBridge(start)
        bridges.append(bridge)
        choice = demo_choice() if model is None else ModelChoice("Other", *model)
        loaded_model = LoadedModel(bridge, choice, calibrations_dir=calibrations)
        window = MainWindow(
            bridge,
            loaded_model,
            looks,
            settings or SettingsStore(Preferences(), folder),
            make_seed=lambda: next(seeds),
            **kept,
        )
        window.show()
        bridge.start()
        loaded_model.load()
        window.serve()
        return window

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_bridge, "DRAIN_INTERVAL_S", 0.005)
        patch.setattr(engine_bridge, "LONGEST_INTERVAL_S", 0.005)
        try:
            yield open_on
        finally:
            for bridge in bridges:
                bridge.close()


@pytest.fixture
def calibrations() -> Path | None:
    """Folder of step costs for windows: none, unless a module sets one."""
    return None


@pytest.fixture
def open_window(
    qtbot: QtBot, appearance: Appearance, calibrations: Path | None, tmp_path: Path
) -> Iterator[OpenWindow]:
    """Opens a window on an engine and loads the demo model; all are closed at the end.

    What else `MainWindow` takes can be named.
    """
    with windows(appearance, tmp_path, calibrations) as open_on:

        def open_for_a_test(
            start: EngineFactory, model: Model | None = None, **kept: Any
        ) -> MainWindow:
            window = open_on(start, model, **kept)
            qtbot.addWidget(window)
            return window

        yield open_for_a_test


@contextmanager
def lasting_window(
    request: pytest.FixtureRequest, folder: Path, start: EngineFactory
) -> Iterator[MainWindow]:
    """Window for several tests, with a loaded model and measured step costs."""
    looks = Appearance(resources_dir())
    looks.use(ThemeChoice.LIGHT)
    looks.legend.learn(SOURCES, RULES)
    with windows(looks, folder) as open_on:
        window = open_on(start)
        wait_ready(QtBot(request), window)
        yield window
        window.close()
        window.deleteLater()


@pytest.fixture(scope="module")
def seen(
    qapp: QApplication, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Seen]:
    """A window with one answer, for all tests of a module that only look at it."""
    folder = tmp_path_factory.mktemp("seen")
    with lasting_window(request, folder, FakeEngine(Script()).start) as window:
        yield window, ask(QtBot(request), window, "Hello")


@pytest.fixture
def open_fake(open_window: OpenWindow) -> Callable[[Script], Opened]:
    """Opens a window on an engine that follows a script."""

    def open_scripted(
        script: Script | None = None, num_before_gate: int = 0, **kept: Any
    ) -> Opened:
        engine = FakeEngine(script or Script(), num_before_gate)
        return open_window(engine.start, **kept), engine

    return open_scripted


@pytest.fixture
def open_ready(qtbot: QtBot, open_fake: Open) -> Open:
    """Open a window with a loaded and measured model."""

    def open_and_wait(*scripted: Any, **kept: Any) -> Opened:
        window, engine = open_fake(*scripted, **kept)
        wait_ready(qtbot, window)
        return window, engine

    return open_and_wait
