"""Discover names the drafters of a model, and fetches the one that is picked with it."""

from pathlib import Path

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.models.library_dialog import LibraryDialog
from app.widgets.choices import NUM_CHARS, ChoiceBox, add_entry
from app.widgets.table import RowTable
from medusa_core.api import PairOffer
from medusa_core.hub.job import JobState
from tests.support.hub.fixtures import LoopbackHub
from tests.support.models.eagle_files import EagleSpec, write_eagle
from tests.support.models.gguf_heads_files import write_eagle_gguf
from tests.support.models.targets import GROUPED
from tests.support.models.tiny import write_tiny
from tests.support.window.library_fixtures import Run
from tests.support.window.managing import card, column, until, wait_for_tasks

_PADDING = 4  # of a cell
MODEL, EAGLE, WIDE = "org/Tiny-1B", "a/Tiny-1B-eagle3", "b/Tiny-1B-speculator.eagle3"


def entries(dialog: LibraryDialog) -> list[str]:
    box = dialog.discover.drafter_box
    return [box.itemText(row) for row in range(box.count())]


def pick(dialog: LibraryDialog, words: str) -> None:
    box = dialog.discover.drafter_box
    row = next(row for row, text in enumerate(entries(dialog)) if words in text)
    box.setCurrentIndex(row)
    box.activated.emit(row)


def test_the_catalog_lists_published_drafters_without_the_network(
    run: Run, dialog: LibraryDialog, hub: LoopbackHub
) -> None:
    async def work() -> None:
        card(dialog, 8)
        discover = dialog.discover
        titles = column(dialog, 0)
        kinds = dict(zip(titles, column(dialog, 3), strict=True))
        assert kinds["Qwen3 8B"] == "EAGLE, DFlash, DSpark, JetSpec"
        assert kinds["Ministral 3 8B Instruct"] == "–"
        discover.table.selectRow(titles.index("Qwen3.5 9B"))
        assert entries(dialog)[0] == "none"
        assert "MTP – lies in the files of Qwen/Qwen3.5-9B" in entries(dialog)
        assert discover.drafter_box.currentText() == "none"
        published = "Published for this model: DFlash, MTP. Choose one to download it, too."
        assert discover.drafter_label.text() == published
        assert kinds["Qwen3.5 9B"] == "DFlash, MTP"
        discover.table.selectRow(titles.index("Qwen3 8B"))
        with_head = discover.chosen
        assert with_head is not None
        assert "Published for Qwen/Qwen3-8B (799 MB). Both are downloaded together." in (
            discover.drafter_label.text()
        )
        pick(dialog, "none")
        alone = discover.chosen
        assert alone is not None
        assert (alone.title, alone.pair.heads) == ("Qwen3 8B", "")
        assert 0 < alone.download_bytes < with_head.download_bytes
        assert discover.drafter_label.text().startswith("Published for this model: EAGLE, ")
        discover.table.selectRow(titles.index("Ministral 3 8B Instruct"))
        assert discover.drafter_label.isHidden()
        await wait_for_tasks(dialog)

    run(work)
    assert not hub.log


def test_drafters_are_found_planned_and_fetched_with_a_model(
    run: Run, dialog: LibraryDialog, hub: LoopbackHub
) -> None:
    write_tiny(hub.root / MODEL, GROUPED)
    write_eagle(hub.root / EAGLE, EagleSpec("eagle3"))
    write_eagle(hub.root / WIDE, EagleSpec("eagle3", hidden=64))
    (hub.root / WIDE / "README.md").write_text(f"base_model: {MODEL}", encoding="utf-8")
    discover, wanted = dialog.discover, list[PairOffer]()
    discover.download_requested.connect(wanted.append)

    async def work() -> None:
        card(dialog, 8)
        discover.search_edit.setText("Tiny-1B")
        await until(lambda: len(discover.offers) == 3)
        await wait_for_tasks(dialog)
        assert sorted(column(dialog, 3)) == ["EAGLE", "EAGLE", "for Tiny-1B"]
        discover.table.selectRow(column(dialog, 0).index(WIDE))
        assert discover.drafter_box.isHidden()
        discover.table.selectRow(column(dialog, 0).index(MODEL))
        await wait_for_tasks(dialog)
        assert [text.split(" · ")[1:2] for text in entries(dialog)] == [[], [EAGLE], [WIDE]]
        assert all(text.endswith(" kB") for text in entries(dialog)[1:])
        pick(dialog, WIDE)
        await wait_for_tasks(dialog)
        assert "It doesn't fit this model: hidden size 64 ≠ 32." in discover.drafter_label.text()
        assert not discover.details.action_button.isEnabled()
        pick(dialog, EAGLE)
        await wait_for_tasks(dialog)
        assert discover.chosen is not None
        assert discover.chosen.heads.kind == "eagle-3"
        assert "Its makers don't name its model" in discover.drafter_label.text()
        discover.details.action_button.click()
        hub.fail_api(WIDE, "gated")
        pick(dialog, WIDE)
        await wait_for_tasks(dialog)
        assert discover.chosen.pair.heads == EAGLE, "what failed isn't taken"
        assert discover.drafter_label.text()
        await until(lambda: [job.state for job in dialog.downloads.jobs] == [JobState.READY])
        await wait_for_tasks(dialog)

    run(work)
    assert [(one.pair.model, one.pair.heads) for one in wanted] == [(MODEL, EAGLE)]


def test_installed_heads_are_described(run: Run, dialog: LibraryDialog, tmp_path: Path) -> None:
    file = write_eagle_gguf(tmp_path / "x.gguf", EagleSpec("eagle3"))

    async def work() -> None:
        card(dialog, 8)
        tab = dialog.installed
        tab.add_folder(str(file), loads=True)
        await until(lambda: len(tab.items) == 1)
        await wait_for_tasks(dialog)
        tab.table.selectRow([item.name for item in tab.rows].index("x.gguf"))
        assert "Published for them/target." in tab.details._note.text()
        assert not tab.details.action_button.isEnabled()

    run(work)


def test_no_column_is_crushed_in_a_window_of_1200_pixels(run: Run, dialog: LibraryDialog) -> None:
    async def work() -> None:
        dialog.tabs.setCurrentWidget(dialog.discover)
        card(dialog, 8)
        dialog.resize(1200, 760)
        table = dialog.discover.table
        header = table.horizontalHeader()
        sizes = [header.sectionSize(number) for number in range(table.columnCount())]
        assert min(sizes) > 70
        assert sum(sizes) <= table.viewport().width()
        licences = column(dialog, 4)
        needed = table.fontMetrics().horizontalAdvance("Apache 2.0")
        assert "Apache 2.0" in licences
        assert sizes[4] > needed + 20

    run(work)


def test_no_table_of_models_scrolls_sideways_or_cuts_a_name(
    run: Run, dialog: LibraryDialog, tmp_path: Path
) -> None:
    file = write_eagle_gguf(tmp_path / "a-file-of-a-draft-model.gguf", EagleSpec("eagle3"))

    async def work() -> None:
        card(dialog, 8)
        dialog.installed.add_folder(str(file))
        await until(lambda: len(dialog.installed.items) == 1)
        await wait_for_tasks(dialog)
        for width in (1120, 900):
            dialog.resize(width, 760)
            for tab in (dialog.discover, dialog.installed):
                dialog.tabs.setCurrentWidget(tab)
                table = tab.table
                assert table.horizontalHeader().length() <= table.viewport().width()
                assert cut_cells(table) == []

    run(work)


def cut_cells(table: RowTable) -> list[str]:
    """Texts that have too little room although they are wrapped."""
    found = []
    for row in range(table.rowCount()):
        for number in range(table.columnCount()):
            item = table.item(row, number)
            assert item is not None
            place = table.visualItemRect(item).adjusted(_PADDING, 0, -_PADDING, 0)
            needed = table.fontMetrics().boundingRect(
                place, Qt.TextFlag.TextWordWrap.value, item.text()
            )
            if needed.width() > place.width() or needed.height() > place.height():
                found.append(item.text())
    return found


def test_an_opened_combo_box_is_as_wide_as_its_longest_entry(qtbot: QtBot) -> None:
    box = ChoiceBox(NUM_CHARS)
    qtbot.addWidget(box)
    add_entry(box, "none", None)
    reason = "its vocabulary has 151,936 tokens, not 49,152"
    add_entry(box, "Qwen2.5 Coder 0.5B Instruct", 1, reason)
    box.show()
    box.showPopup()
    needed = box.fontMetrics().horizontalAdvance(box.itemText(1))
    assert box.width() < needed < box.view().viewport().width()
    box.hidePopup()
