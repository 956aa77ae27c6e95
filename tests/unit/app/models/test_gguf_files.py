"""GGUF files in the model manager: imported, told by their type, loaded, and chosen on the Hub."""

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog

from app.models.library_dialog import LibraryDialog
from app.widgets.sizes import on_disk
from medusa_core.api import demo_model
from medusa_core.loading.choice import (
    ModelChoice,
    as_json,
    from_json,
)
from tests.support.hub.fixtures import LoopbackHub
from tests.support.models.gguf_files import write_as_gguf
from tests.support.window.library_fixtures import Run
from tests.support.window.managing import card, until


@pytest.fixture(scope="module")
def pebble(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_as_gguf(demo_model()[0], tmp_path_factory.mktemp("gguf") / "pebble.gguf", "q4_0")


def test_an_imported_file_is_listed_with_its_type_and_loaded(
    run: Run, dialog: LibraryDialog, pebble: Path
) -> None:
    tab = dialog.installed
    wanted: list[ModelChoice] = []
    tab.load_requested.connect(wanted.append)

    async def work() -> None:
        card(dialog, 8)
        tab.add_folder(str(pebble))
        await until(lambda: any(item.path == pebble for item in tab.items))
        row = [item.path for item in tab.rows].index(pebble)
        tab.table.selectRow(row)
        shown = [tab.table.item(row, column).text() for column in range(tab.table.columnCount())]
        assert shown[1:4] == ["model", "5.9 M", "Q4_0"]
        assert shown[5] == on_disk(pebble.stat().st_size)
        verdict = tab.details.verdict_label.text()
        assert "Fits" in verdict
        assert "requantized" not in verdict, "a card multiplies Q4_0 as the file stores it"
        assert [action.text() for action in tab.import_button.menu().actions()] == [
            "Folder…",
            "GGUF file…",
        ]
        tab.details.acted.emit()
        (choice,) = wanted
        assert choice.model_dir == pebble
        assert from_json(as_json(choice)).model_dir == pebble, "the next start loads it again"

    run(work)


def test_a_repository_of_files_offers_each_with_its_size(
    run: Run, dialog: LibraryDialog, published: LoopbackHub, pebble: Path
) -> None:
    folder = published.root / "org" / "pebble-GGUF"
    folder.mkdir(parents=True)
    for name in ("pebble-Q4_0.gguf", "pebble-Q8_0.gguf"):
        (folder / name).write_bytes(pebble.read_bytes())
    tab = dialog.discover

    async def work() -> None:
        card(dialog, 8)
        tab.search_edit.setText("pebble-GGUF")  # which is looked for soon
        await until(lambda: any(offer.variants for offer in tab.offers))
        row = next(i for i, offer in enumerate(tab.offers) if offer.variants)
        tab.table.selectRow(row)
        texts = [tab.file_box.itemText(i) for i in range(tab.file_box.count())]
        assert texts[0].startswith("pebble-Q4_0 · ")
        assert tab.file_box.currentData() == "pebble-Q4_0.gguf"
        tab.file_box.setCurrentIndex(1)
        tab.file_box.activated.emit(1)
        await until(lambda: tab.chosen is not None and tab.chosen.config is not None)
        chosen = tab.chosen
        assert chosen is not None
        assert chosen.pair.file == "pebble-Q8_0.gguf"

    run(work)


def test_a_file_chosen_under_models_is_loaded(
    run: Run, dialog: LibraryDialog, pebble: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[ModelChoice] = []
    dialog.load_requested.connect(wanted.append)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(pebble), ""))

    async def work() -> None:
        card(dialog, 8)
        dialog.installed.import_file()
        await until(lambda: wanted)

    run(work)
    assert [choice.model_dir for choice in wanted] == [pebble]
