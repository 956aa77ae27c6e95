"""Which model is loaded: chosen in the header or the manager, kept for the next start."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.models.library_dialog import LibraryDialog
from app.settings.preferences import load_preferences
from app.window.main_window import MainWindow
from medusa_core.api import Library, Pair, demo_model, start_engine
from medusa_core.loading.choice import (
    ModelChoice,
    as_json,
    demo_choice,
    from_json,
)
from medusa_core.loading.state import Phase
from medusa_core.messages import Cancel, LoadModel, LoadOptions, WeightFormats
from tests.support.hub.fixtures import LoopbackHub
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import Run
from tests.support.window.managing import until, wait_for_tasks


def with_adapter(choice: ModelChoice, folder: Path) -> ModelChoice:
    return replace(choice, options=replace(choice.options, adapter_dir=folder))


def test_choices_are_remembered_unless_their_folder_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    choice = ModelChoice(
        "m", folder, None, options=LoadOptions(formats=WeightFormats("q4"), context_tokens=2048)
    )
    assert from_json(as_json(choice)) == choice
    adapted = with_adapter(choice, folder)
    assert from_json(as_json(adapted)) == adapted
    gone = with_adapter(choice, tmp_path / "gone")
    assert from_json(as_json(gone)) == choice
    demo = with_adapter(demo_choice(), folder)
    assert from_json(as_json(demo)).options.adapter_dir == folder
    folder.rmdir()
    assert from_json(as_json(choice)) == demo_choice()
    assert from_json({}) == demo_choice()


def test_the_header_lists_installed_models_and_changes_the_model(
    run: Run,
    open_ready: Open,
    library: Library,
    published: LoopbackHub,
    qtbot: QtBot,
) -> None:
    window, engine = open_ready(open_library=lambda: library)

    async def work() -> None:
        for repo in ("org/tiny-chat", "org/tiny-chat-medusa"):
            job = library.downloads.add(Pair(repo))
            await library.downloads.wait(job.id)
        assert window.models.open() is not None
        await window.models.refresh()
        await library.downloads.close()

    run(work)
    actions = {action.text(): action for action in window.page.header.model_menu.actions()}
    assert list(actions)[:2] == ["Llama-Pebble", "tiny-chat"]
    actions["tiny-chat"].trigger()
    qtbot.waitUntil(lambda: window.loaded_model.choice.name == "tiny-chat")
    requested = engine.of_kind(LoadModel)[-1]
    assert requested.model_dir.parent.name == "snapshots"
    assert requested.heads_dir is not None
    assert window.page.header.model_button.text() == "tiny-chat"


def test_an_idle_model_is_unloaded_and_reloaded_by_the_next_message(
    open_ready: Open, qtbot: QtBot, tmp_path: Path
) -> None:
    window, engine = open_ready()
    window.loaded_model.unload_after(0.0005)
    assert not window.loaded_model._idle.isActive(), "the built-in model is too small to bother"
    window.loaded_model.load(ModelChoice("m", tmp_path))
    qtbot.waitUntil(lambda: window.loaded_model.status.phase is Phase.ASLEEP)
    assert "asleep" in window.page.header.state_label.text()
    num_loads = len(engine.of_kind(LoadModel))
    window.chat.send("Are you there?")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert len(engine.of_kind(LoadModel)) == num_loads + 1
    assert window.chat.answers[-1].content.text


def test_the_last_model_is_remembered(open_ready: Open, qtbot: QtBot, tmp_path: Path) -> None:
    window, _ = open_ready()
    folder = tmp_path / "other"
    folder.mkdir()
    window.loaded_model.load(
        ModelChoice(
            "other",
            folder,
            None,
            options=LoadOptions(formats=WeightFormats("q4"), context_tokens=1024),
        )
    )
    qtbot.waitUntil(lambda: load_preferences(tmp_path).model.name == "other")
    assert load_preferences(tmp_path).model.options.formats.linears == "q4"


def test_escape_cancels_the_loading_of_a_model(open_ready: Open, tmp_path: Path) -> None:
    window, engine = open_ready()
    window.loaded_model.load(ModelChoice("m", tmp_path))
    window.commands.action("stop").trigger()
    assert engine.of_kind(Cancel), "the load is cancelled"


def test_a_model_is_found_downloaded_loaded_in_4_bits_and_talked_with(
    run: Run,
    open_window: Callable[..., MainWindow],
    library: Library,
    hub: LoopbackHub,
    qtbot: QtBot,
) -> None:
    """The whole way of a new user, with the real engine and the real model."""
    for source, name in zip(demo_model(), ("pebble", "pebble-medusa"), strict=True):
        shutil.copytree(source, hub.root / "org" / name)
    window = open_window(start_engine, open_library=lambda: library)
    qtbot.waitUntil(lambda: window.loaded_model.status.calibrated is not None, timeout=60_000)

    async def work() -> None:
        window.pages.open("models")
        dialog = window.pages.find(LibraryDialog)
        assert dialog is not None
        dialog.discover.search_edit.setText("pebble")
        await until(lambda: len(dialog.discover.offers) == 2)
        for row in (0, 1):
            dialog.tabs.setCurrentWidget(dialog.discover)
            dialog.discover.table.selectRow(row)
            await until(lambda: not dialog.discover.tasks.is_running)
            assert dialog.discover.offers[row].is_heads == bool(row)
            dialog.discover.details.action_button.click()
        await until(lambda: len(dialog.installed.items) == 2 and not dialog.tasks.is_running)
        installed = dialog.installed
        installed.table.selectRow(0)
        assert installed.heads_box.currentText() == "org/pebble-medusa"
        await until(lambda: installed.details.choice is not None)
        box = installed.details.quant_box
        box.setCurrentIndex(box.findData("q4"))
        installed.details.action_button.click()
        await until(lambda: window.loaded_model.choice.name == "pebble")
        await until(lambda: window.loaded_model.status.calibrated is not None)
        window.chat.send("What is the capital of France?")
        await until(lambda: not window.chat.is_busy)
        await wait_for_tasks(dialog)
        await library.downloads.close()

    run(work)
    loaded = window.loaded_model.status.loaded
    assert loaded is not None
    assert loaded.quant == "q4"
    assert loaded.num_heads == 4
    assert loaded.plan.weights_bytes < 10_000_000
    assert "Paris" in window.chat.answers[-1].document.text
    assert window.chat.answers[-1].content.num_accepted > 0
    assert "q4" in window.page.header.state_label.text()
