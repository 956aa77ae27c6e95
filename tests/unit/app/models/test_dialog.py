"""The model manager, driven as a user would, against a Hub on loopback."""

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from app.models.library_dialog import LibraryDialog
from app.theme.appearance import Appearance, ThemeChoice
from medusa_core.api import HubSettings, JobState, Library, Pair, PairOffer, with_offline
from medusa_core.loading.choice import ModelChoice
from medusa_core.loading.memory.budget import cuda_budget
from medusa_core.messages import Fit
from tests.support.hub.fixtures import LoopbackHub, random_file
from tests.support.hub.pairs import MIB
from tests.support.models.tiny import random_heads
from tests.support.window.library_fixtures import SPEC, Run, state_of
from tests.support.window.managing import card, column, until, wait_for_tasks


def test_the_catalog_says_what_fits_and_the_memory_bar_follows_the_controls(
    run: Run, dialog: LibraryDialog
) -> None:
    discover = dialog.discover
    card(dialog, 8)
    titles = column(dialog, 0)
    verdicts = dict(zip(titles, column(dialog, 1), strict=True))
    assert verdicts["Vicuna 13B v1.3 with Medusa"].startswith("Too large: needs")
    assert verdicts["Vicuna 7B v1.3 with Medusa"].startswith(("Fits (4-bit)", "Just fits (4-bit)"))
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
    assert "more than the 8.00 GiB here" in details.verdict_label.text()
    details.quant_box.setCurrentIndex(details.quant_box.findData("nf4-dq"))
    details.context_box.setCurrentIndex(details.context_box.count() - 1)
    assert details.choice.plan.context_tokens == 4096
    run(lambda: wait_for_tasks(dialog))


def test_one_click_shortens_the_context_to_what_fits(dialog: LibraryDialog) -> None:
    dialog.tabs.setCurrentWidget(dialog.discover)
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


def test_models_that_dont_fit_can_be_hidden(dialog: LibraryDialog) -> None:
    card(dialog, 8)
    everything = len(column(dialog, 0))
    dialog.discover.fits_box.click()
    assert 0 < len(column(dialog, 0)) < everything
    assert not any(words.startswith("Too large") for words in column(dialog, 1))


def test_unsupported_weight_formats_are_not_offered_and_say_why(dialog: LibraryDialog) -> None:
    from medusa_core.models.quant.format import Hardware

    budget = replace(cuda_budget(8), hardware=Hardware("cuda", (6, 1)))
    dialog.discover.set_budget(budget)
    box = dialog.discover.details.quant_box
    item = box.model().item(box.findData("fp16"))  # type: ignore[attr-defined]
    assert not item.isEnabled()
    assert "64th" in item.toolTip()


def test_a_model_is_searched_downloaded_and_loaded(
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
        assert discover.details.verdict_label.text().startswith("Fits")
        assert not [
            e for e in published.log if e["path"].endswith("model.safetensors") and e["sent"]
        ]
        for pair in (Pair("org/tiny-chat"), Pair("org/tiny-chat-medusa")):
            dialog.download(PairOffer("", pair))
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
        await wait_for_tasks(dialog)

    run(work)
    (choice,) = loaded
    assert choice.name == "tiny-chat"
    assert (choice.model_dir / "config.json").is_file()
    assert choice.heads_dir is not None
    assert choice.options.formats.linears == "nf4-dq"


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
        dialog = LibraryDialog(state_of(library), appearance)
        qtbot.addWidget(dialog)
        dialog.show()
        dialog.download(PairOffer("", Pair("org/big")))
        await until(lambda: dialog.downloads.jobs[0].done_bytes > 2 * MIB)
        await until(lambda: "%" in dialog.downloads.table.item(0, 2).text())  # type: ignore[union-attr]
        dialog.close()
        await library.downloads.close()

    async def second() -> None:
        library = Library(store, store.with_name("folders.json"), settings)
        dialog = LibraryDialog(state_of(library), appearance)
        qtbot.addWidget(dialog)
        dialog.show()
        assert dialog.downloads.jobs[0].state is JobState.DOWNLOADING
        library.downloads.start()
        await until(lambda: dialog.downloads.jobs[0].state is JobState.READY)
        await until(lambda: dialog.downloads.table.item(0, 1).text() == "ready")  # type: ignore[union-attr]
        await wait_for_tasks(dialog)
        await library.downloads.close()

    run(first)
    run(second)
    whole = (hub.root / "org" / "big" / "model.safetensors").read_bytes()
    (blob,) = [p for p in settings.cache_dir.rglob("blobs/*") if p.stat().st_size == len(whole)]
    assert blob.read_bytes() == whole


def test_downloads_can_be_paused_resumed_cancelled_and_removed(
    run: Run, dialog: LibraryDialog, library: Library, hub: LoopbackHub, settings: HubSettings
) -> None:
    random_file(hub.root / "org" / "big" / "model.safetensors", 8 * MIB)
    tab = dialog.downloads

    async def work() -> None:
        library.change_settings(replace(settings, bytes_per_s=2 * MIB))
        dialog.download(PairOffer("", Pair("org/big")))
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


def test_a_failed_download_says_why_and_can_be_tried_again(
    run: Run, dialog: LibraryDialog, library: Library, published: LoopbackHub
) -> None:
    published.set_faults(config__json={"kind": "gated"})
    tab = dialog.downloads

    async def work() -> None:
        dialog.download(PairOffer("", Pair("org/tiny-chat")))
        await until(lambda: tab.pause_button.text() == "Try again")
        assert "Accept its terms" in tab.reason_label.text()
        tab.pause_button.click()
        await until(lambda: tab.jobs[0].state is JobState.READY)
        await wait_for_tasks(dialog)
        await library.downloads.close()

    run(work)


def test_offline_no_request_is_sent(
    run: Run, dialog: LibraryDialog, library: Library, published: LoopbackHub
) -> None:
    dialog.offline_chosen.connect(
        lambda on: library.change_settings(with_offline(library.settings, on))
    )

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
    offer = PairOffer("", Pair("org/pickled-medusa"), is_pickled=True)

    async def work() -> None:
        no = QMessageBox.StandardButton.No
        monkeypatch.setattr(QMessageBox, "exec", lambda _: no)
        dialog.download(offer)
        assert dialog.downloads.jobs == ()
        yes = QMessageBox.StandardButton.Yes
        monkeypatch.setattr(QMessageBox, "exec", lambda _: yes)
        dialog.download(offer)
        await until(lambda: dialog.downloads.jobs[0].state.is_over)
        assert dialog.downloads.jobs[0].state is JobState.READY, dialog.downloads.jobs[0].reason
        await until(lambda: dialog.installed.items)
        assert dialog.installed.items[0].heads.num_heads == 3
        await wait_for_tasks(dialog)
        await library.downloads.close()

    run(work)


def test_the_dialog_follows_the_theme(dialog: LibraryDialog, appearance: Appearance) -> None:
    card(dialog, 8)
    before = [segment.colour for segment in dialog.discover.details.bar.segments]
    appearance.use(ThemeChoice.DARK)
    assert [s.colour for s in dialog.discover.details.bar.segments] != before


def test_a_download_list_that_cant_be_written_is_reported(run: Run, dialog: LibraryDialog) -> None:
    dialog.library.downloads._store._database.rows("PRAGMA query_only = ON")
    dialog.download(PairOffer("Something", Pair("org/something")))
    assert "can't be opened or written" in dialog.notice_label.text()
    assert dialog.library.downloads.jobs == ()
    run(lambda: wait_for_tasks(dialog))
