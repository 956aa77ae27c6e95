"""What a new user stumbled over in the model manager, and no longer does."""

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from app.models import load_estimate
from app.models.library_dialog import LibraryDialog
from app.models.subject import Subject
from app.theme.appearance import Appearance
from app.widgets.sizes import verdict
from medusa_core.api import HubSettings, JobState, Library, Pair, PairOffer, ReadRate, demo_model
from medusa_core.cli.plan import shape_config
from medusa_core.loading.choice import (
    ModelChoice,
    demo_choice,
)
from medusa_core.loading.memory.budget import Budget, cuda_budget
from medusa_core.loading.memory.plan import plan_memory
from medusa_core.messages import HeadsShape, WeightFormats
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.models.quant.format import Hardware
from tests.support.hub.fixtures import LoopbackHub, random_file
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import Run, show_loaded, state_of
from tests.support.window.managing import card, column, until, wait_for_tasks

GIB = 1 << 30


def test_verdicts_are_announced_at_once() -> None:
    budget = cuda_budget(24)
    config, formats = shape_config("vicuna-7b"), WeightFormats("nf4")

    def output(gib: float, how: str = "") -> str:
        here = replace(budget, total_bytes=round(gib * GIB))
        settled = resolve_formats(formats, "", budget.hardware)
        return verdict(plan_memory(config, HeadsShape(), settled, here, 2048), how)

    assert output(24, "(4-bit)").startswith("Fits (4-bit), 1")
    assert output(24).startswith("Fits, ")
    assert output(24).endswith(" GiB left")
    assert output(2).endswith("more than the 2.00 GiB here")


def test_a_computer_without_a_card_is_offered_small_models_first(
    run: Run, dialog: LibraryDialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[str] = []

    def measure(_device: str, quant: str) -> ReadRate:
        timed.append(quant)
        return ReadRate(((1, 10e9), (16, 5e9)))

    monkeypatch.setattr(load_estimate, "measure_read_rate", measure)
    fresh = dialog.discover

    async def work() -> None:
        card(dialog, 24)
        first = next(one for one in dialog.discover.offers if one.is_earlier)
        assert first.title == "Qwen3 8B", "of earlier ones, who has heads"
        assert not dialog.discover.offers[0].is_earlier
        assert dialog.discover.offers[0].download_bytes > 4e9
        assert fresh.details.forecast_label.text() == "", "a fake card can't be timed"
        processor = Budget("RAM", Hardware("cpu"), 16 * GIB, 2 * GIB, 0, is_live=True)
        fresh._budget = None
        fresh.set_budget(processor)
        assert "1.2B" in column(dialog, 0)[0]
        assert fresh.chosen is not None
        assert 2e9 < fresh.chosen.download_bytes < 4e9
        label = fresh.details.forecast_label
        await until(lambda: "tokens/s here (an estimate). No drafter chosen" in label.text())
        row = column(dialog, 0).index("Vicuna 7B v1.3 with Medusa")
        fresh.table.selectRow(row)
        await until(lambda: "with its heads" in label.text())
        await wait_for_tasks(dialog)

    run(work)
    assert len(set(timed)) == 1, "both are loaded in one format, which is timed"


@pytest.mark.expects_errors
def test_an_unexpected_failure_of_an_estimate_is_logged_and_shown(
    run: Run,
    dialog: LibraryDialog,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = [ReadRate(((1, 10e9), (16, 5e9)))]

    def measure(_device: str, _quant: str) -> ReadRate:
        if not answers:
            raise KeyError("odd")
        return answers.pop()

    monkeypatch.setattr(load_estimate, "measure_read_rate", measure)
    details = dialog.discover.details

    async def work() -> None:
        dialog.discover._budget = None
        dialog.discover.set_budget(
            Budget("RAM", Hardware("cpu"), 16 * GIB, 2 * GIB, 0, is_live=True)
        )
        label = details.forecast_label
        await until(lambda: "(an estimate)" in label.text())
        details.context_box.setCurrentIndex(0)
        await until(lambda: "an unexpected error occurred (KeyError: 'odd')" in label.text())
        assert details.action_button.isEnabled()
        answers.append(ReadRate(((1, 10e9), (16, 5e9))))
        details.context_box.setCurrentIndex(1)
        await until(lambda: "(an estimate)" in label.text())
        await wait_for_tasks(dialog)

    run(work)
    (record,) = [one for one in caplog.records if one.name == load_estimate.__name__]
    assert record.exc_info is not None
    assert "in measure" in (record.exc_text or ""), "the traceback"


def test_the_built_in_model_is_listed_loaded_and_never_deleted(
    run: Run, dialog: LibraryDialog
) -> None:
    loaded: list[ModelChoice] = []
    dialog.load_requested.connect(loaded.append)
    tab = dialog.installed

    async def work() -> None:
        card(dialog, 8)
        await tab.refresh()
        assert "Nothing is downloaded yet" in tab.status_label.text()
        tab.table.selectRow(0)
        assert tab.chosen is not None
        assert tab.chosen.is_built_in
        assert not tab.delete_button.isEnabled()
        tab.details.action_button.click()
        await wait_for_tasks(dialog)

    run(work)
    assert (loaded[0].model_dir, loaded[0].heads_dir) == demo_model()
    assert loaded[0].is_demo


def test_deleting_the_loaded_model_warns_unloads_and_forgets_its_download(
    run: Run,
    dialog: LibraryDialog,
    library: Library,
    published: LoopbackHub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requested: list[str] = []
    loaded: list[ModelChoice] = []
    dialog.load_requested.connect(loaded.append)
    yes = QMessageBox.StandardButton.Yes

    def answer(box: QMessageBox) -> object:
        requested.append(f"{box.text()} {box.informativeText()}")
        assert box.defaultButton() is box.button(QMessageBox.StandardButton.No)
        return yes

    monkeypatch.setattr(QMessageBox, "exec", answer)
    tab = dialog.installed

    async def work() -> None:
        dialog.download(PairOffer("", Pair("org/tiny-chat")))
        await until(lambda: tab.items)
        show_loaded(dialog.state, ModelChoice("", tab.items[0].path))
        tab.table.selectRow(0)
        assert "loaded" in tab.table.item(0, 1).text()  # type: ignore[union-attr]
        tab.delete_button.click()
        await until(lambda: not tab.items)
        await wait_for_tasks(dialog)
        await library.downloads.close()

    run(work)
    (text,) = requested
    assert "It is loaded now" in text
    assert loaded == [demo_choice()]
    assert library.downloads.jobs == ()


def test_search_results_get_their_sizes_as_they_arrive(
    run: Run, dialog: LibraryDialog, published: LoopbackHub
) -> None:
    async def work() -> None:
        card(dialog, 8)
        dialog.discover.search_edit.setText("tiny-chat")
        await until(lambda: len(column(dialog, 1)) == 2 and "–" not in column(dialog, 1)[0])
        await wait_for_tasks(dialog)

    run(work)
    assert column(dialog, 1)[0].startswith("Fits")


def test_without_a_network_the_recommendations_are_searched(
    run: Run, qtbot: QtBot, appearance: Appearance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    nowhere = HubSettings(endpoint="http://127.0.0.1:9", cache_dir=tmp_path)
    library = Library(tmp_path / "downloads.db", tmp_path / "folders.json", nowhere)
    dialog = LibraryDialog(state_of(library), appearance)
    qtbot.addWidget(dialog)
    everything = column(dialog, 0)

    async def search(words: str) -> list[str]:
        dialog.discover.search_edit.setText(words)
        dialog.discover.status_label.clear()
        dialog.discover.status_label.setToolTip("")
        await until(lambda: "Are you online?" in dialog.discover.status_label.toolTip())
        return column(dialog, 0)

    async def work() -> None:
        found = await search("vicuna 7b")
        assert found
        assert all("Vicuna 7B" in name for name in found)
        assert len(found) < len(everything)
        assert "Offline: showing our recommendations." in dialog.discover.status_label.text()
        assert await search("no such model") == []
        assert "recommend" not in dialog.discover.status_label.text()

    run(work)


def test_the_chosen_weights_stay_with_their_row(dialog: LibraryDialog) -> None:
    from app.models.subject import Subject

    card(dialog, 24)
    details = dialog.discover.details
    config = shape_config("vicuna-7b")
    details.show_subject(Subject("one", "", config, HeadsShape()))
    details.quant_box.setCurrentIndex(details.quant_box.findData("int8"))
    details.show_subject(Subject("two", "", None, HeadsShape()))
    details.show_subject(Subject("two", "", config, HeadsShape()))
    assert details.quant_box.currentIndex() == 0


def test_on_a_disk_that_cannot_be_written_the_manager_opens_and_says_so(
    qtbot: QtBot, appearance: Appearance, settings: HubSettings, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "state"
    library = Library(below / "downloads.db", below / "folders.json", settings)
    dialog = LibraryDialog(state_of(library), appearance)
    qtbot.addWidget(dialog)
    assert "won't be remembered" in dialog.notice_label.text()
    assert "Move the file away" not in dialog.notice_label.text()


def test_downloads_wait_while_offline_and_go_on_afterwards(
    run: Run, open_fake: Open, library: Library, hub: LoopbackHub, settings: HubSettings
) -> None:
    random_file(hub.root / "org" / "big" / "model.safetensors", 8 << 20)
    (hub.root / "org" / "big" / "config.json").write_text("{}", encoding="utf-8")
    window, _ = open_fake(open_library=lambda: library)

    async def work() -> None:
        library.change_settings(replace(settings, bytes_per_s=2 << 20))
        assert window.models.open() is library
        job = library.downloads.add(Pair("org/big"))
        await until(lambda: library.downloads.jobs[0].done_bytes > 0)
        window.settings.set(is_offline=True)
        await library.downloads.wait(job.id)
        assert library.downloads.jobs[0].state is JobState.PAUSED
        library.change_settings(replace(library.settings, bytes_per_s=0))
        window.settings.set(is_offline=False)
        await until(lambda: library.downloads.jobs[0].state is JobState.READY)
        await library.downloads.close()

    run(work)


def test_missing_parts_of_a_multimodal_model_are_named(dialog: LibraryDialog) -> None:
    config = replace(shape_config("gemma-3-4b"), is_multimodal=True)
    details = dialog.discover.details
    details.set_budget(cuda_budget(24))
    details.show_subject(Subject("Gemma", "", config, HeadsShape()))
    assert "pictures can't be shown" in details.verdict_label.text()
    details.show_subject(Subject("Plain", "", replace(config, is_multimodal=False), HeadsShape()))
    assert "pictures" not in details.verdict_label.text()
