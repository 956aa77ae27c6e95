"""A smaller model that drafts: offered with reasons, in the plan, and remembered for its model."""

from pathlib import Path

import pytest
from PySide6.QtGui import QStandardItemModel
from pytestqt.qtbot import QtBot

from app.models.draft_box import DraftBox
from app.models.library_dialog import LibraryDialog
from app.settings.preferences import load_preferences
from medusa_core.api import Library
from medusa_core.loading.choice import (
    ModelChoice,
    demo_choice,
)
from medusa_core.messages import LoadModel, LoadOptions
from tests.support.models.tiny import TinySpec, make_tokenizer, write_tiny
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import Run
from tests.support.window.managing import card, until, wait_for_tasks

LARGE, SMALL = TinySpec(num_layers=12, seed=3), TinySpec(num_layers=1, seed=4)


@pytest.fixture
def models(library: Library, tmp_path: Path) -> dict[str, Path]:
    """Write a model, a smaller one, one with other tokens, and one with another vocabulary."""
    folders = {name: tmp_path / name for name in ("large", "small", "other", "wide")}
    write_tiny(folders["large"], LARGE)
    for name in ("small", "other"):
        write_tiny(folders[name], SMALL)
    make_tokenizer(300).save(str(folders["other"] / "tokenizer.json"))
    write_tiny(folders["wide"], TinySpec(num_layers=1, vocab_size=2000))
    for folder in folders.values():
        library.add_folder(str(folder))
    return folders


async def show(dialog: LibraryDialog, name: str) -> DraftBox:
    """The choice of draft models for one of the rows, once all were looked at."""
    tab = dialog.installed
    card(dialog, 8)
    await tab.refresh()
    tab.table.selectRow([item.name for item in tab.rows].index(name))
    await until(lambda: tab.draft_box.count() > 1)
    return tab.draft_box


def texts(box: DraftBox) -> list[str]:
    return [box.itemText(row) for row in range(box.count())]


def test_possible_draft_models_are_listed_and_others_say_why_not(
    run: Run, dialog: LibraryDialog, models: dict[str, Path]
) -> None:
    async def work() -> None:
        box = await show(dialog, "large")
        assert texts(box)[:2] == ["none", "small"]
        assert set(texts(box)[2:]) == {
            "other – its vocabulary has 300 tokens, not 320",
            "wide – its vocabulary has 2,000 tokens, not 320",
            "Llama-Pebble – its vocabulary has 4,096 tokens, not 320",
        }
        entries = box.model()
        assert isinstance(entries, QStandardItemModel)
        usable = [entries.item(row).isEnabled() for row in range(box.count())]
        assert usable == [True, True, False, False, False]
        assert box.chosen is None
        box = await show(dialog, "small")
        assert "large – it isn't smaller" in texts(box)
        await wait_for_tasks(dialog)

    run(work)


def test_a_draft_model_is_planned_shown_and_loaded(
    run: Run, dialog: LibraryDialog, models: dict[str, Path]
) -> None:
    loaded: list[ModelChoice] = []
    dialog.load_requested.connect(loaded.append)

    async def work() -> None:
        details = dialog.installed.details
        box = await show(dialog, "large")
        assert details.choice is not None
        before = details.choice.plan
        assert "draft model" not in [segment.name for segment in details.bar.segments]
        box.setCurrentIndex(1)
        after = details.choice.plan
        assert after.draft_model_bytes > 0
        assert after.heads_bytes == before.heads_bytes + after.draft_model_bytes
        assert after.kv_bytes > before.kv_bytes
        segments = {segment.name: segment.nbytes for segment in details.bar.segments}
        assert segments["draft model"] == after.draft_model_bytes
        assert sum(segments.values()) == 8 << 30
        details.action_button.click()
        await wait_for_tasks(dialog)

    run(work)
    assert [choice.options.assistant_dir for choice in loaded] == [models["small"]]


def test_a_much_smaller_model_is_proposed_as_draft_model_and_chosen_by_a_click(
    run: Run, dialog: LibraryDialog, models: dict[str, Path]
) -> None:
    async def work() -> None:
        box = await show(dialog, "large")
        proposal, item = dialog.installed.proposal, dialog.installed.chosen
        assert item is not None
        assert box.proposed is not None
        assert box.proposed.path == models["small"]
        assert not proposal.isHidden()
        assert "may make this model faster" in proposal.label.text()
        proposal.show_proposal(item, box.proposed, False)
        assert "probably no faster" in proposal.label.text(), "the ratio is about four"
        proposal.button.click()
        assert box.chosen is not None
        assert box.chosen.path == models["small"]
        assert proposal.isHidden()
        box = await show(dialog, "small")
        assert proposal.isHidden(), "nothing is so much smaller"
        await wait_for_tasks(dialog)

    run(work)


def test_a_remembered_draft_model_is_loaded_before_all_candidates_are_compared(
    run: Run, dialog: LibraryDialog, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[ModelChoice] = []
    dialog.load_requested.connect(loaded.append)

    async def work() -> None:
        tab = dialog.installed
        card(dialog, 8)
        tab.draft_box.remembered = {str(models["large"]): str(models["small"])}
        await tab.refresh()
        tab.table.selectRow([item.name for item in tab.rows].index("large"))
        assert tab.draft_box.chosen is None, "they are still compared"
        tab.details.action_button.click()
        await wait_for_tasks(dialog)

    run(work)
    assert [choice.options.assistant_dir for choice in loaded] == [models["small"]]


def test_the_draft_model_is_remembered_for_each_model(
    run: Run,
    open_ready: Open,
    dialog: LibraryDialog,
    models: dict[str, Path],
    qtbot: QtBot,
    tmp_path: Path,
) -> None:
    window, engine = open_ready()
    large, small = models["large"], models["small"]
    window.loaded_model.load(ModelChoice("large", large, options=LoadOptions(assistant_dir=small)))
    key = str(large)
    qtbot.waitUntil(lambda: load_preferences(tmp_path).draft_models == {key: str(small)})
    window.loaded_model.load(demo_choice())
    qtbot.waitUntil(lambda: load_preferences(tmp_path).model.is_demo)
    remembered = load_preferences(tmp_path)
    assert remembered.draft_models == {key: str(small)}
    actions = {action.text(): action for action in window.page.header.model_menu.actions()}
    actions["large"].trigger()
    assert engine.of_kind(LoadModel)[-1].options.assistant_dir == small
    qtbot.waitUntil(lambda: "small drafts for it." in window.page.header.model_button.toolTip())

    async def work() -> None:
        dialog.installed.draft_box.remembered = remembered.draft_models
        box = await show(dialog, "large")
        assert box.currentText() == "small"
        box.setCurrentIndex(0)
        await dialog.installed.refresh()
        assert box.currentText() == "none", "the same model keeps what is chosen"
        await wait_for_tasks(dialog)

    run(work)
    window.loaded_model.load(ModelChoice("large", large))
    qtbot.waitUntil(lambda: load_preferences(tmp_path).draft_models == {})
    assert (
        ModelChoice("gone", large).drafted_by({key: str(tmp_path / "gone")}).options.assistant_dir
        is None
    )
