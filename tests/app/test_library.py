"""The model manager, driven as a user would, against a Hub on loopback."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import qasync
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QMessageBox
from pytestqt.qtbot import QtBot

from app.library.library_dialog import LibraryDialog
from app.library.sizes import duration, on_disk
from app.model_choice import ModelChoice, as_json, demo_choice, from_json
from app.model_keeper import Phase
from app.preferences import load_preferences
from app.theme.appearance import Appearance, ThemeChoice
from app.window import MainWindow
from medusa_core.api import (
    Budget,
    HubSettings,
    JobState,
    Library,
    Offer,
    Pair,
    demo_model,
    start_engine,
)
from medusa_core.memory.budget import imagined_card
from medusa_core.messages import Cancel, Fit, LoadModel, WeightFormats
from tests.app.fakes import FakeEngine, Script
from tests.core.tiny import TinySpec, random_heads, write_heads, write_tiny
from tests.hub.conftest import LoopbackHub, hub, random_file, settings

__all__ = ["hub", "settings"]

MIB = 1 << 20
SPEC = TinySpec(hidden_size=128, intermediate_size=192, seed=41)
OTHER = TinySpec(hidden_size=64, seed=42)

Run = Callable[[Callable[[], Awaitable[None]]], None]
OpenDialog = Callable[[], LibraryDialog]


@pytest.fixture
def run(qapp: QApplication) -> Iterator[Run]:
    """Runs a coroutine on one loop with Qt, as the application does."""
    qapp.setQuitOnLastWindowClosed(False)
    loop = qasync.QEventLoop(qapp)
    asyncio.set_event_loop(loop)

    def run_on_it(work: Callable[[], Awaitable[None]]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(60):
                await work()

        loop.run_until_complete(bounded())

    yield run_on_it
    loop.close()
    asyncio.set_event_loop(None)


@pytest.fixture
def published(hub: LoopbackHub) -> LoopbackHub:
    write_tiny(hub.root / "org" / "tiny-chat", SPEC)
    write_heads(hub.root / "org" / "tiny-chat-medusa", random_heads(SPEC, num_heads=4))
    return hub


@pytest.fixture
def library(settings: HubSettings, tmp_path: Path) -> Library:
    return Library(
        tmp_path / "state" / "downloads.db", tmp_path / "state" / "folders.json", settings
    )


@pytest.fixture
def dialog(qtbot: QtBot, library: Library, appearance: Appearance) -> LibraryDialog:
    opened = LibraryDialog(library, appearance)
    qtbot.addWidget(opened)
    opened.show()
    return opened


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def card(dialog: LibraryDialog, gib: float) -> Budget:
    """Plan for a card that isn't there."""
    budget = imagined_card(gib)
    dialog.discover.set_budget(budget)
    dialog.installed.set_budget(budget)
    return budget


def column(dialog: LibraryDialog, number: int) -> list[str]:
    table = dialog.discover.table
    items = [table.item(row, number) for row in range(table.rowCount())]
    return [item.text() for item in items if item is not None]


def test_the_catalog_says_what_fits_and_the_bar_follows_the_controls(
    run: Run, dialog: LibraryDialog
) -> None:
    discover = dialog.discover
    card(dialog, 8)
    titles = column(dialog, 0)
    verdicts = dict(zip(titles, column(dialog, 1), strict=True))
    assert verdicts["Vicuna 13B v1.3 with Medusa"] == "too large"
    assert verdicts["Vicuna 7B v1.3 with Medusa"].startswith(("fits", "tight"))
    discover.table.selectRow(titles.index("Vicuna 7B v1.3 with Medusa"))
    details = discover.details
    assert details.choice is not None
    assert details.choice.plan.fit is not Fit.NO
    assert [segment.name for segment in details.bar.segments][2:5] == [
        "weights",
        "heads",
        "KV cache",
    ]
    assert sum(segment.nbytes for segment in details.bar.segments) == 8 << 30
    before = details.choice.plan
    details.quant_box.setCurrentIndex(details.quant_box.findData("int8"))
    assert details.choice.plan.weights_bytes > before.weights_bytes
    assert details.choice.plan.fit is Fit.NO
    assert "missing" in details.verdict_label.text()
    details.quant_box.setCurrentIndex(details.quant_box.findData("nf4-dq"))
    details.context_box.setCurrentIndex(details.context_box.count() - 1)
    assert details.choice.plan.context_tokens == 4096
    run(dialog_work(dialog))


def dialog_work(dialog: LibraryDialog) -> Callable[[], Awaitable[None]]:
    """Let what the dialog began come to its end."""

    async def work() -> None:
        await until(lambda: not dialog._work and not dialog.discover._looks)

    return work


def test_one_click_shortens_the_context_to_what_fits(dialog: LibraryDialog) -> None:
    card(dialog, 5.7)
    details = dialog.discover.details
    dialog.discover.table.selectRow(column(dialog, 0).index("Vicuna 7B v1.3 with Medusa"))
    details.quant_box.setCurrentIndex(details.quant_box.findData("nf4-dq"))
    details.context_box.setCurrentIndex(details.context_box.findData(4096))
    assert details.choice is not None
    assert details.choice.plan.fit is Fit.NO
    assert details.shorten_button.isVisible()
    details.shorten_button.click()
    assert details.choice.plan.fit is not Fit.NO
    assert not details.shorten_button.isVisible()


def test_only_what_fits_can_be_shown(dialog: LibraryDialog) -> None:
    card(dialog, 8)
    everything = len(column(dialog, 0))
    dialog.discover.fits_box.click()
    assert 0 < len(column(dialog, 0)) < everything
    assert "too large" not in column(dialog, 1)


def test_what_hardware_can_not_do_is_not_offered_and_says_why(dialog: LibraryDialog) -> None:
    from medusa_core.quant.format import Hardware

    budget = replace(imagined_card(8), hardware=Hardware("cuda", (6, 1)))
    dialog.discover.set_budget(budget)
    box = dialog.discover.details.quant_box
    item = box.model().item(box.findData("fp16"))  # type: ignore[attr-defined]
    assert not item.isEnabled()
    assert "64th" in item.toolTip()


def test_search_look_download_and_load(
    run: Run, dialog: LibraryDialog, published: LoopbackHub, qtbot: QtBot
) -> None:
    loaded: list[ModelChoice] = []
    dialog.load_requested.connect(loaded.append)

    async def work() -> None:
        card(dialog, 8)
        discover = dialog.discover
        discover.search_edit.setText("tiny-chat")
        await until(lambda: column(dialog, 0) == ["org/tiny-chat", "org/tiny-chat-medusa"])
        discover.table.selectRow(0)
        await until(lambda: discover.details.choice is not None)
        assert discover.details.verdict_label.text().startswith("fits")
        assert not [
            e for e in published.log if e["path"].endswith("model.safetensors") and e["sent"]
        ]
        for pair in (Pair("org/tiny-chat"), Pair("org/tiny-chat-medusa")):
            dialog.download(Offer("", pair))
        assert dialog.tabs.currentWidget() is dialog.downloads
        await until(lambda: [j.state for j in dialog.downloads.jobs] == [JobState.READY] * 2)
        await until(lambda: len(dialog.installed.items) == 2)
        dialog.tabs.setCurrentWidget(dialog.installed)
        installed = dialog.installed
        installed.table.selectRow(0)
        assert installed.chosen is not None
        assert installed.chosen.name == "org/tiny-chat"
        assert installed.heads_box.currentText() == "org/tiny-chat-medusa"
        installed.details.quant_box.setCurrentIndex(installed.details.quant_box.findData("nf4-dq"))
        installed.details.action_button.click()
        assert len(loaded) == 1
        await dialog_work(dialog)()

    run(work)
    (choice,) = loaded
    assert choice.name == "tiny-chat"
    assert (choice.model_dir / "config.json").is_file()
    assert choice.heads_dir is not None
    assert choice.formats.linears == "nf4-dq"


def test_a_download_survives_the_restart_of_the_application(
    run: Run,
    hub: LoopbackHub,
    settings: HubSettings,
    appearance: Appearance,
    qtbot: QtBot,
    tmp_path: Path,
) -> None:
    random_file(hub.root / "org" / "big" / "model.safetensors", 12 * MIB)
    (hub.root / "org" / "big" / "config.json").write_text("{}", encoding="utf-8")
    store = tmp_path / "state" / "downloads.db"
    slow = replace(settings, bytes_per_s=4 * MIB)

    async def first() -> None:
        library = Library(store, store.with_name("folders.json"), slow)
        dialog = LibraryDialog(library, appearance)
        qtbot.addWidget(dialog)
        dialog.show()
        dialog.download(Offer("", Pair("org/big")))
        await until(lambda: dialog.downloads.jobs[0].done_bytes > 2 * MIB)
        await until(lambda: "%" in dialog.downloads.table.item(0, 2).text())  # type: ignore[union-attr]
        dialog.close()
        await library.downloads.close()

    async def second() -> None:
        library = Library(store, store.with_name("folders.json"), settings)
        dialog = LibraryDialog(library, appearance)
        qtbot.addWidget(dialog)
        dialog.show()
        assert dialog.downloads.jobs[0].state is JobState.DOWNLOADING
        library.downloads.start()
        await until(lambda: dialog.downloads.jobs[0].state is JobState.READY)
        await until(lambda: dialog.downloads.table.item(0, 1).text() == "ready")  # type: ignore[union-attr]
        await dialog_work(dialog)()
        await library.downloads.close()

    run(first)
    run(second)
    whole = (hub.root / "org" / "big" / "model.safetensors").read_bytes()
    (blob,) = [p for p in settings.cache_dir.rglob("blobs/*") if p.stat().st_size == len(whole)]
    assert blob.read_bytes() == whole


def test_pause_resume_cancel_and_forget(
    run: Run, dialog: LibraryDialog, library: Library, hub: LoopbackHub, settings: HubSettings
) -> None:
    random_file(hub.root / "org" / "big" / "model.safetensors", 8 * MIB)
    tab = dialog.downloads

    async def work() -> None:
        library.change_settings(replace(settings, bytes_per_s=2 * MIB))
        dialog.download(Offer("", Pair("org/big")))
        await until(lambda: tab.jobs[0].done_bytes > 0)
        tab.pause_button.click()
        await until(lambda: tab.pause_button.text() == "Resume")
        assert tab.jobs[0].state is JobState.PAUSED
        tab.pause_button.click()
        await until(lambda: tab.jobs[0].state is JobState.DOWNLOADING)
        tab.cancel_button.click()
        await until(lambda: tab.jobs[0].state is JobState.CANCELLED)
        await until(lambda: tab.forget_button.isEnabled())
        tab.forget_button.click()
        assert tab.table.rowCount() == 0
        await library.downloads.close()

    run(work)


def test_a_failed_download_says_why_and_is_tried_again(
    run: Run, dialog: LibraryDialog, library: Library, published: LoopbackHub
) -> None:
    published.set_faults(config__json={"kind": "gated"})
    tab = dialog.downloads

    async def work() -> None:
        dialog.download(Offer("", Pair("org/tiny-chat")))
        await until(lambda: tab.pause_button.text() == "Try again")
        assert "Accept its terms" in tab.reason_label.text()
        tab.pause_button.click()
        await until(lambda: tab.jobs[0].state is JobState.READY)
        await dialog_work(dialog)()
        await library.downloads.close()

    run(work)


def test_offline_nothing_is_asked(
    run: Run, dialog: LibraryDialog, library: Library, published: LoopbackHub
) -> None:
    async def work() -> None:
        dialog.offline_box.click()
        dialog.discover.search_edit.setText("tiny")
        await until(lambda: "Offline mode" in dialog.discover.status_label.text())

    run(work)
    assert published.log == []


def test_a_pickle_is_converted_only_with_consent(
    run: Run,
    dialog: LibraryDialog,
    library: Library,
    hub: LoopbackHub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    folder = hub.root / "org" / "pickled-medusa"
    folder.mkdir(parents=True)
    torch.save(random_heads(SPEC), folder / "medusa_lm_head.pt")
    (folder / "config.json").write_text("{}", encoding="utf-8")
    offer = Offer("", Pair("org/pickled-medusa"), is_pickled=True)

    async def work() -> None:
        no = QMessageBox.StandardButton.No
        monkeypatch.setattr(QMessageBox, "question", lambda *_: no)
        dialog.download(offer)
        assert dialog.downloads.jobs == ()
        yes = QMessageBox.StandardButton.Yes
        monkeypatch.setattr(QMessageBox, "question", lambda *_: yes)
        dialog.download(offer)
        await until(lambda: dialog.downloads.jobs[0].state.is_over)
        assert dialog.downloads.jobs[0].state is JobState.READY, dialog.downloads.jobs[0].reason
        await until(lambda: dialog.installed.items)
        assert dialog.installed.items[0].heads.num_heads == 3
        await dialog_work(dialog)()
        await library.downloads.close()

    run(work)


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
            dialog.download(Offer("", Pair(repo)))
        await until(lambda: len(tab.items) == 3)
        names = [item.name for item in tab.items]
        tab.table.selectRow(names.index("org/tiny-chat"))
        reasons = [tab.heads_box.itemText(i) for i in range(tab.heads_box.count())]
        assert reasons[1] == "org/tiny-chat-medusa"
        assert "hidden size 64 ≠ 128" in reasons[2]
        tab.verify_button.click()
        await until(lambda: "is whole" in tab.status_label.text())
        chosen = tab.chosen
        assert chosen is not None
        blob = (chosen.folder / "model.safetensors").resolve()
        content = bytearray(blob.read_bytes())
        content[-1] ^= 1
        blob.write_bytes(content)
        tab.verify_button.click()
        await until(lambda: "Download it again" in tab.status_label.text())
        yes = QMessageBox.StandardButton.Yes
        monkeypatch.setattr(QMessageBox, "question", lambda *_: yes)
        tab.delete_button.click()
        await until(lambda: "are free again" in tab.status_label.text())
        assert len(tab.items) == 2
        for folder in demo_model():
            tab.add_folder(str(folder))
        await until(lambda: len(tab.items) == 4)
        tab.add_folder(str(tmp_path / "state"))
        assert "no weights" in tab.status_label.text()
        await dialog_work(dialog)()
        await library.downloads.close()

    run(work)


def test_a_token_is_kept_and_used(
    run: Run,
    dialog: LibraryDialog,
    library: Library,
    published: LoopbackHub,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))

    async def work() -> None:
        dialog.token_edit.setText("hf_secret")
        dialog._token_button.click()
        assert dialog.token_edit.text() == ""
        await library.search("tiny")
        found = await library.look_at(Offer("", Pair("org/tiny-chat")))
        assert found.config is not None

    run(work)
    assert (tmp_path / "home" / "token").stat().st_mode & 0o777 == 0o600
    assert all(entry["auth"] for entry in published.log)


def test_the_dialog_follows_the_theme(dialog: LibraryDialog, appearance: Appearance) -> None:
    card(dialog, 8)
    before = [segment.colour for segment in dialog.discover.details.bar.segments]
    appearance.choose(ThemeChoice.DARK)
    assert [s.colour for s in dialog.discover.details.bar.segments] != before


def test_choices_are_remembered_and_gone_folders_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    choice = ModelChoice("m", folder, None, WeightFormats("nf4"), 2048)
    assert from_json(as_json(choice)) == choice
    folder.rmdir()
    assert from_json(as_json(choice)) == demo_choice()
    assert from_json({}) == demo_choice()


def test_sizes_are_in_the_units_that_people_know() -> None:
    assert [on_disk(n) for n in (13_500_000_000, 52_000_000, 900)] == ["13.5 GB", "52 MB", "1 kB"]
    assert [duration(s) for s in (5, 600, 7200 * 3)] == ["5 s", "10 min", "6.0 h"]


def test_the_header_lists_what_is_here_and_changes_the_model(
    run: Run,
    open_window: Callable[..., MainWindow],
    library: Library,
    published: LoopbackHub,
    qtbot: QtBot,
) -> None:
    engine = FakeEngine(Script())
    window = open_window(engine.start)
    qtbot.waitUntil(lambda: window.keeper.status.calibrated is not None)
    window._open_library = lambda: library

    async def work() -> None:
        for repo in ("org/tiny-chat", "org/tiny-chat-medusa"):
            job = library.downloads.add(Pair(repo))
            await library.downloads.wait(job.id)
        await window.offer_installed()
        await library.downloads.close()

    run(work)
    actions = {action.text(): action for action in window.page.header.model_menu.actions()}
    assert list(actions)[:2] == ["Llama-Pebble", "tiny-chat"]
    actions["tiny-chat"].trigger()
    qtbot.waitUntil(lambda: window.keeper.choice.name == "tiny-chat")
    asked = engine.of_kind(LoadModel)[-1]
    assert asked.model_dir.parent.name == "snapshots"
    assert asked.heads_dir is not None
    assert window.page.header.model_button.text() == "tiny-chat"


def test_a_model_that_rests_gives_its_memory_back_and_wakes_with_the_next_message(
    open_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    engine = FakeEngine(Script())
    window = open_window(engine.start)
    qtbot.waitUntil(lambda: window.keeper.status.calibrated is not None)
    window.keeper.unload_after(0.0005)
    qtbot.wait(100)
    assert window.keeper.status.phase is Phase.READY, "the built-in model is too small to bother"
    window.keeper.load(ModelChoice("m", tmp_path))
    qtbot.waitUntil(lambda: window.keeper.status.phase is Phase.ASLEEP)
    assert "asleep" in window.page.header.state_label.text()
    num_loads = len(engine.of_kind(LoadModel))
    window.chat.send("Are you there?")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert len(engine.of_kind(LoadModel)) == num_loads + 1
    assert window.chat.answers[-1].has_text


def test_the_last_model_is_remembered(
    open_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    window = open_window(FakeEngine(Script()).start)
    qtbot.waitUntil(lambda: window.keeper.status.calibrated is not None)
    folder = tmp_path / "other"
    folder.mkdir()
    window.keeper.load(ModelChoice("other", folder, None, WeightFormats("nf4"), 1024))
    qtbot.waitUntil(lambda: load_preferences(tmp_path).model.name == "other")
    assert load_preferences(tmp_path).model.formats.linears == "nf4"


def test_downloads_can_go_elsewhere_and_at_a_limit(
    run: Run, dialog: LibraryDialog, library: Library, published: LoopbackHub, tmp_path: Path
) -> None:
    seen: list[str] = []
    dialog.installed.cache_changed.connect(seen.append)
    elsewhere = tmp_path / "elsewhere"

    async def work() -> None:
        dialog.installed.use_cache(str(elsewhere))
        dialog.downloads.limit_box.setValue(50)
        assert library.settings.bytes_per_s == 50_000_000
        dialog.download(Offer("", Pair("org/tiny-chat")))
        await until(lambda: dialog.installed.items)
        await dialog_work(dialog)()
        await library.downloads.close()

    run(work)
    assert seen == [str(elsewhere)]
    assert dialog.installed.items[0].folder.is_relative_to(elsewhere)


def test_quantized_copies_can_be_deleted(
    run: Run, dialog: LibraryDialog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("medusa_core.library.kept_models_dir", lambda: tmp_path / "kept")
    random_file(tmp_path / "kept" / "a.safetensors", MIB)

    async def work() -> None:
        await dialog.installed.refresh()
        assert "quantized copies 1 MB" in dialog.installed.status_label.text()
        dialog.installed.kept_button.click()
        await until(lambda: "are deleted" in dialog.installed.status_label.text())

    run(work)
    assert not list((tmp_path / "kept").iterdir())


def test_escape_stops_a_model_that_is_being_loaded(
    open_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    engine = FakeEngine(Script())
    window = open_window(engine.start)
    qtbot.waitUntil(lambda: window.keeper.status.calibrated is not None)
    window.keeper.load(ModelChoice("m", tmp_path))
    window.stop()
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
    window = open_window(start_engine)
    qtbot.waitUntil(lambda: window.keeper.status.calibrated is not None, timeout=60_000)
    window._open_library = lambda: library

    async def work() -> None:
        window.show_models()
        dialog = window.models
        assert dialog is not None
        dialog.discover.search_edit.setText("pebble")
        await until(lambda: len(dialog.discover.offers) == 2)
        for row in (0, 1):
            dialog.tabs.setCurrentWidget(dialog.discover)
            dialog.discover.table.selectRow(row)
            await until(lambda: not dialog.discover._looks)
            assert dialog.discover.offers[row].is_heads == bool(row)
            dialog.discover.details.action_button.click()
        await until(lambda: len(dialog.installed.items) == 2 and not dialog._work)
        installed = dialog.installed
        installed.table.selectRow(0)
        assert installed.heads_box.currentText() == "org/pebble-medusa"
        await until(lambda: installed.details.choice is not None)
        box = installed.details.quant_box
        box.setCurrentIndex(box.findData("nf4"))
        installed.details.action_button.click()
        await until(lambda: window.keeper.choice.name == "pebble")
        await until(lambda: window.keeper.status.calibrated is not None)
        window.chat.send("What is the capital of France?")
        await until(lambda: not window.chat.is_busy)
        await dialog_work(dialog)()
        await library.downloads.close()

    run(work)
    loaded = window.keeper.status.loaded
    assert loaded is not None
    assert loaded.quant == "nf4"
    assert loaded.num_heads == 4
    assert loaded.plan.weights_bytes < 10_000_000
    assert "Paris" in window.chat.answers[-1].document.text
    assert window.chat.answers[-1].num_accepted > 0
    assert "nf4" in window.page.header.state_label.text()


def test_names_are_never_taken_for_markup(
    run: Run, dialog: LibraryDialog, library: Library, tmp_path: Path
) -> None:
    hostile = tmp_path / "<img src='file:etc'>"
    write_tiny(hostile, SPEC)
    tab = dialog.installed

    async def work() -> None:
        tab.add_folder(str(hostile))
        await until(lambda: tab.items)
        await dialog_work(dialog)()

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
