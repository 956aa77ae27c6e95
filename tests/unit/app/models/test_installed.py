"""What is here: listed, verified, deleted, and where it goes."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox

from app.models.installed_rows import cells
from app.models.library_dialog import LibraryDialog
from app.models.plan_words import measured_words
from app.widgets.sizes import (
    duration,
    on_disk,
)
from medusa_core.api import HubSettings, Library, Pair, PairOffer, demo_model, with_cache
from medusa_core.loading.choice import demo_choice
from medusa_core.messages import DrafterSpeed
from tests.support.hub.fixtures import LoopbackHub, random_file
from tests.support.hub.pairs import MIB
from tests.support.models.tiny import random_heads, write_heads, write_tiny
from tests.support.window.library_fixtures import OTHER, SPEC, Run, show_loaded
from tests.support.window.managing import card, until, wait_for_tasks


def test_installed_models_are_listed_verified_and_deleted(
    run: Run,
    dialog: LibraryDialog,
    library: Library,
    published: LoopbackHub,
    settings: HubSettings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    write_heads(published.root / "org" / "other-medusa", random_heads(OTHER))
    tab = dialog.installed

    async def work() -> None:
        card(dialog, 8)
        for repo in ("org/tiny-chat", "org/tiny-chat-medusa", "org/other-medusa"):
            dialog.download(PairOffer("", Pair(repo)))
        await until(lambda: len(tab.items) == 3)
        names = [item.name for item in tab.items]
        tab.table.selectRow(names.index("org/tiny-chat"))
        reasons = [tab.heads_box.itemText(i) for i in range(tab.heads_box.count())]
        assert reasons[1] == "org/tiny-chat-medusa"
        assert "hidden size 64 ≠ 128" in reasons[2]
        tab.verify_button.click()
        await until(lambda: "intact" in tab.status_label.text())
        chosen = tab.chosen
        assert chosen is not None
        blob = (chosen.path / "model.safetensors").resolve()
        content = bytearray(blob.read_bytes())
        content[-1] ^= 1
        blob.write_bytes(content)
        tab.verify_button.click()
        await until(lambda: "Download it again" in tab.status_label.text())
        yes = QMessageBox.StandardButton.Yes
        monkeypatch.setattr(QMessageBox, "exec", lambda _: yes)
        tab.delete_button.click()
        await until(lambda: "are free again" in tab.status_label.text())
        assert len(tab.items) == 2
        for folder in demo_model():
            tab.add_folder(str(folder))
        await until(lambda: len(tab.items) == 4)
        tab.add_folder(str(tmp_path / "state"))
        await until(lambda: "no weights" in tab.problem_label.text())
        assert tab.table.rowCount() == len(tab.rows), "its row is gone"
        await wait_for_tasks(dialog)
        await library.downloads.close()

    run(work)


def test_a_model_without_a_chat_template_is_marked(
    run: Run, library: Library, tmp_path: Path
) -> None:
    folder = write_tiny(tmp_path / "base", SPEC)
    (folder / "chat_template.jinja").unlink()
    library.add_folder(str(folder))
    library.add_folder(str(write_tiny(tmp_path / "chat", SPEC)))

    async def work() -> None:
        base, chat = await library.installed()
        assert base.is_base
        assert cells(base, None, None)[1] == "base model"
        assert cells(chat, None, None)[1] == "model"

    run(work)


def test_sizes_are_shown_in_decimal_units() -> None:
    assert [on_disk(n) for n in (13_500_000_000, 52_000_000, 900)] == ["13.5 GB", "52 MB", "1 kB"]
    assert [duration(s) for s in (5, 600, 7200 * 3)] == ["5 s", "10 min", "6.0 h"]


def test_downloads_can_have_another_folder_and_a_speed_limit(
    run: Run, dialog: LibraryDialog, library: Library, published: LoopbackHub, tmp_path: Path
) -> None:
    seen: list[str] = []
    dialog.installed.cache_changed.connect(seen.append)
    dialog.installed.cache_changed.connect(
        lambda folder: library.change_settings(with_cache(library.settings, Path(folder)))
    )
    elsewhere = tmp_path / "elsewhere"

    async def work() -> None:
        dialog.installed.use_cache(str(elsewhere))
        dialog.downloads.limit_box.setValue(50)
        assert library.settings.bytes_per_s == 50_000_000
        dialog.download(PairOffer("", Pair("org/tiny-chat")))
        await until(lambda: dialog.installed.items)
        await wait_for_tasks(dialog)
        await library.downloads.close()

    run(work)
    assert seen == [str(elsewhere)]
    assert dialog.installed.items[0].path.is_relative_to(elsewhere)


def test_cached_copies_can_be_deleted(
    run: Run, dialog: LibraryDialog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dialog.library.layers_dir = tmp_path / "layers"
    random_file(tmp_path / "layers" / "not ours.layers", MIB)
    (tmp_path / "layers" / "b.layers").write_bytes(b"MDLAYER1" + bytes(MIB))
    monkeypatch.setattr(
        "medusa_core.hub.library.library.quantized_models_dir", lambda: tmp_path / "kept"
    )
    random_file(tmp_path / "kept" / "a.safetensors", MIB)

    async def work() -> None:
        await dialog.installed.refresh()
        assert "copies for faster loading 2 MB" in dialog.installed.status_label.text()
        dialog.installed.quantized_button.click()
        await until(lambda: "are deleted" in dialog.installed.status_label.text())

    run(work)
    assert not list((tmp_path / "kept").iterdir())
    assert [path.name for path in (tmp_path / "layers").iterdir()] == ["not ours.layers"]


def test_names_are_never_interpreted_as_markup(
    run: Run, dialog: LibraryDialog, library: Library, tmp_path: Path
) -> None:
    hostile = tmp_path / "<img src='file:etc'>"
    write_tiny(hostile, SPEC)
    tab = dialog.installed

    async def work() -> None:
        tab.add_folder(str(hostile))
        await until(lambda: tab.items)
        await wait_for_tasks(dialog)

    run(work)
    item = tab.table.item(0, 0)
    assert item is not None
    assert item.text() == hostile.name
    assert "<img" not in item.toolTip()
    labels = (
        tab.status_label,
        dialog.discover.status_label,
        dialog.notice_label,
        dialog.downloads.reason_label,
        tab.details._title,
        tab.details._note,
    )
    assert all(label.textFormat() is Qt.TextFormat.PlainText for label in labels)


def test_an_import_has_its_row_at_once_and_nothing_else_is_loaded(
    run: Run, dialog: LibraryDialog, tmp_path: Path
) -> None:
    tab = dialog.installed
    wanted: list[object] = []
    tab.load_requested.connect(wanted.append)
    folders = [write_tiny(tmp_path / name, SPEC) for name in ("first", "zebra", "middle")]

    async def work() -> None:
        tab.add_folder(str(folders[0]))
        await until(lambda: tab.items and not tab._reading)
        assert tab.chosen is not None
        assert tab.chosen.path == folders[0]
        assert tab.details.action_button.isEnabled()
        tab.add_folder(str(folders[1]))
        last = tab.table.rowCount() - 1
        assert (tab.table.currentRow(), tab.chosen) == (last, None)
        shown = [tab.table.item(last, column) for column in range(2)]
        assert [item.text() for item in shown if item is not None] == ["zebra", "Reading…"]
        assert not tab.details.action_button.isEnabled()
        tab._load()
        assert wanted == []
        await tab.refresh()
        await until(lambda: not tab._reading)
        assert tab.chosen is not None
        assert tab.chosen.path == folders[1]
        tab.add_folder(str(folders[2]))
        tab.table.selectRow(0)  # the user looks at another one meanwhile
        await until(lambda: not tab._reading)
        assert tab.chosen.path == folders[0]
        await tab.refresh()
        assert tab.chosen.path == folders[0]
        await wait_for_tasks(dialog)

    run(work)


def test_a_measured_speed_replaces_the_estimate(run: Run, dialog: LibraryDialog) -> None:
    tab = dialog.installed
    speeds = (
        DrafterSpeed("none", 1.0, 548.0, 1.0, 0.0),
        DrafterSpeed("medusa", 1.6, 330.0, 0.6, 0.1),
    )

    async def work() -> None:
        card(dialog, 8)
        await tab.refresh()
        (own,) = tab.rows
        show_loaded(dialog.state, demo_choice(), speeds)
        assert tab._speeds_of(own) == speeds
        tab.heads_box.setCurrentIndex(0)
        assert tab._speeds_of(own) == (), "without heads it is another"
        await wait_for_tasks(dialog)

    run(work)
    assert measured_words(speeds) == "330 tokens/s here with drafts, 548 without (measured)."
    assert measured_words(speeds[:1]) == measured_words(()) == ""
