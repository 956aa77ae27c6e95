"""The first steps: three pages, skippable, shown once, with what fits this computer."""

from pathlib import Path

from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from app.help.steps import ModelStep
from app.help.welcome_dialog import WelcomeDialog
from app.settings.preferences import load_preferences
from app.theme.appearance import Appearance
from medusa_core.api import Budget, HubSettings, Library, PairOffer
from medusa_core.loading.memory.budget import cuda_budget
from medusa_core.models.quant.format import Hardware
from tests.support.window.fixtures import Open

GIB = 1 << 30


def library_in(folder: Path) -> Library:
    return Library(
        folder / "downloads.db",
        folder / "folders.json",
        HubSettings(cache_dir=folder / "hub", is_offline=True),
    )


def test_the_three_welcome_steps_are_shown_once_and_can_be_reopened(
    qtbot: QtBot, open_ready: Open, tmp_path: Path
) -> None:
    window, _ = open_ready()
    window.pages.start()
    (dialog,) = window.findChildren(WelcomeDialog)
    assert dialog.isVisible()
    assert dialog.steps.count() == 3
    dialog.next_button.click()
    dialog.back_button.click()
    assert dialog.steps.currentIndex() == 0
    for _ in range(2):
        dialog.next_button.click()
    lines = [line.text() for line in dialog.findChildren(QLineEdit)]
    assert any("medusa-chat" in line for line in lines)
    dialog.next_button.click()
    qtbot.waitUntil(lambda: not window.findChildren(WelcomeDialog))
    window.pages.start()
    assert not window.findChildren(WelcomeDialog)
    assert load_preferences(tmp_path).has_seen_welcome
    window.commands.action("welcome").trigger()
    (again,) = window.findChildren(WelcomeDialog)
    again.skip_button.click()
    qtbot.waitUntil(lambda: not window.findChildren(WelcomeDialog))


def test_models_that_fit_are_listed_after_the_built_in_one_and_one_is_suggested(
    qtbot: QtBot, appearance: Appearance, tmp_path: Path
) -> None:
    library = library_in(tmp_path)
    step = ModelStep(library, appearance)
    qtbot.addWidget(step)
    wanted: list[PairOffer] = []
    step.download_requested.connect(wanted.append)
    with qtbot.waitSignal(step.gguf_requested):
        step.gguf_button.click()

    def rows() -> list[str]:
        items = [step.table.item(row, 0) for row in range(step.table.rowCount())]
        return [item.text() for item in items if item is not None]

    assert rows() == ["Llama-Pebble"]
    assert not step.download_button.isEnabled()
    step.show_budget(library, Budget("RAM", Hardware("cpu"), 8 * GIB, 2 * GIB, 0, is_live=True))
    assert "Vicuna 13B v1.3 with Medusa" not in rows()
    step.download_button.click()
    assert wanted[0].download_bytes < 4e9
    step.show_budget(library, cuda_budget(8))
    step.download_button.click()
    assert wanted[1].heads.num_heads  # on a card, what has heads
