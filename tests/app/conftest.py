"""Windows for tests: the real widgets, with an engine of the test's choice."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.engine.bridge import (
    EngineBridge,
    EngineFactory,
)
from app.engine.model_keeper import ModelKeeper
from app.settings.preferences import Preferences
from app.theme.appearance import Appearance, ThemeChoice
from app.window.main_window import MainWindow
from medusa_core.api import resources_dir
from medusa_core.loading.choice import (
    ModelChoice,
    demo_choice,
)
from tests.app.engine_says import RULES, SOURCES
from tests.app.fakes import FakeEngine, Script

Model = tuple[Path, Path | None]
OpenWindow = Callable[..., MainWindow]
Opened = tuple[MainWindow, FakeEngine]
Open = Callable[..., Opened]


@pytest.fixture
def appearance(qtbot: QtBot) -> Appearance:
    """The light theme, applied."""
    looks = Appearance(resources_dir(), ThemeChoice.LIGHT)
    looks.apply()
    looks.legend.learn(SOURCES, RULES)
    return looks


@pytest.fixture
def open_window(qtbot: QtBot, appearance: Appearance, tmp_path: Path) -> Iterator[OpenWindow]:
    """Opens a window on an engine and loads the demo model; all are closed at the end.

    What else `MainWindow` takes can be named.
    """
    bridges: list[EngineBridge] = []
    seeds = count(100)

    def open_on(start: EngineFactory, model: Model | None = None, **kept: Any) -> MainWindow:
        bridge = EngineBridge(start)
        bridges.append(bridge)
        choice = demo_choice() if model is None else ModelChoice("Other", *model)
        keeper = ModelKeeper(bridge, choice)
        window = MainWindow(
            bridge,
            keeper,
            appearance,
            Preferences(),
            tmp_path,
            resources=resources_dir(),
            make_seed=lambda: next(seeds),
            **kept,
        )
        qtbot.addWidget(window)
        window.show()
        bridge.start()
        keeper.load()
        return window

    yield open_on
    for bridge in bridges:
        bridge.close()


@pytest.fixture
def open_fake(open_window: OpenWindow) -> Callable[[Script], Opened]:
    """Opens a window on an engine that follows a script."""

    def open_scripted(
        script: Script | None = None, num_before_gate: int = 0, **kept: Any
    ) -> Opened:
        engine = FakeEngine(script or Script(), num_before_gate)
        return open_window(engine.start, **kept), engine

    return open_scripted
