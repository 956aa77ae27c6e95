"""A model that is named when the window is started, as a file manager does by "Open with"."""

import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app import __main__ as program
from app.engine.bridge import EngineBridge
from app.engine.loaded_model import LoadedModel
from app.settings.preferences import Preferences
from app.settings.store import SettingsStore
from app.theme.appearance import Appearance
from app.window.application import EXIT_RESTART, Application, Options
from app.window.main_window import MainWindow
from medusa_core.api import Library, demo_model
from medusa_core.loading.choice import DEMO_NAME, demo_choice
from medusa_core.messages import LoadModel
from tests.support.models.tiny import write_tiny
from tests.support.window.driving import errors
from tests.support.window.fakes import FakeEngine
from tests.support.window.library_fixtures import SPEC, Run
from tests.support.window.managing import until


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_model_named_at_start_is_loaded_or_else_the_last_one(
    qtbot: QtBot,
    appearance: Appearance,
    library: Library,
    run: Run,
    tmp_path: Path,
    is_whole: bool,
) -> None:
    model = tmp_path / "cut.gguf"
    model.write_bytes(b"GGUF")
    if is_whole:
        model = write_tiny(tmp_path / "tiny", SPEC)
    engine = FakeEngine()
    bridge = EngineBridge(engine.start)
    loaded_model = LoadedModel(bridge, demo_choice(), opening=model)
    window = MainWindow(
        bridge,
        loaded_model,
        appearance,
        SettingsStore(Preferences(), tmp_path),
        open_library=lambda: library,
    )
    qtbot.addWidget(window)
    application = Application(bridge, loaded_model, appearance, window)
    name = window.page.header.model_button
    assert name.text() == model.name, "not the model of the last start"

    async def work() -> None:
        application.open()
        await until(lambda: engine.of_kind(LoadModel))

    run(work)
    (load,) = engine.of_kind(LoadModel)
    assert isinstance(load, LoadModel)
    assert load.model_dir == (model if is_whole else demo_model()[0])
    assert (DEMO_NAME in name.text()) is not is_whole, "what is loaded"
    assert len(errors(window)) == (0 if is_whole else 1)
    application.close()


def test_a_missing_model_named_at_start_is_reported_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "none.gguf"
    monkeypatch.setattr(sys, "argv", ["medusa-chat", "--platform", "offscreen", str(wrong)])
    assert program.main() == program.EXIT_UNUSABLE
    assert f"There is no model {wrong}." in capsys.readouterr().err


def test_a_restarted_window_loads_the_model_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Options] = []

    def run_and_fail(options: Options) -> int:
        opened.append(options)
        return EXIT_RESTART

    commands: list[list[str]] = []
    monkeypatch.setattr("app.window.application.run", run_and_fail)
    monkeypatch.setattr(program.os, "execv", lambda _, command: commands.append(command))
    monkeypatch.setattr(sys, "platform", "linux")
    model = tmp_path / "a model.gguf"
    model.write_bytes(b"")
    monkeypatch.setattr(sys, "argv", ["medusa-chat", "--platform", "offscreen", str(model)])
    program.main()
    assert [one.model for one in opened] == [model]
    assert commands[0][3:] == ["--continue", "--platform", "offscreen"]
