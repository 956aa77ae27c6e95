"""The Batch page, with a batch that follows a script."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.batch import batch_dialog, batch_form, results_model
from app.batch.batch_dialog import BatchDialog
from app.batch.results_model import ResultsModel
from app.theme.appearance import Appearance
from medusa_core.api import BatchProgress, BatchRow, OwnBatches
from medusa_core.errors import BatchError
from medusa_core.loading.choice import (
    ModelChoice,
    demo_choice,
)
from medusa_core.messages import LoadOptions, WeightFormats
from tests.support.jobs import FakeCommand, commands, tell_batch
from tests.support.window.engine_events import RULES
from tests.support.window.fixtures import Open

__all__ = ["commands"]

MODEL = ModelChoice(
    "org/tiny", Path("/models/tiny"), None, options=LoadOptions(formats=WeightFormats("q4_0"))
)


@pytest.fixture
def own(tmp_path: Path) -> OwnBatches:
    return OwnBatches(tmp_path / "batches")


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"id": "a", "prompt": "one"}\n')
    return path


@pytest.fixture
def dialog(qtbot: QtBot, own: OwnBatches, appearance: Appearance, tmp_path: Path) -> BatchDialog:
    opened = BatchDialog(own, tmp_path / "tiers", appearance)
    qtbot.addWidget(opened)
    opened.offer(MODEL, "cpu", RULES)
    opened.show()
    return opened


@pytest.fixture
def started(dialog: BatchDialog, prompts: Path, commands: list[FakeCommand]) -> BatchDialog:
    dialog.form.use_prompts(prompts)
    dialog.start_button.click()
    return dialog


def cells(model: ResultsModel, row: int) -> list[object]:
    return [model.data(model.index(row, column)) for column in range(model.columnCount())]


def test_the_form_gives_the_commands_settings(
    dialog: BatchDialog, prompts: Path, tmp_path: Path, commands: list[FakeCommand]
) -> None:
    assert not dialog.start_button.isEnabled()
    form = dialog.form
    form.use_prompts(prompts)
    assert dialog.start_button.isEnabled()
    assert [form.rule_box.itemText(n) for n in range(form.rule_box.count())] == ["Greedy", "Sample"]
    form.rule_box.setCurrentIndex(form.rule_box.findData("sample"))
    form.length_box.setValue(64)
    form.memory_box.setValue(1.5)
    form.cache_box.setChecked(True)
    dialog.start_button.click()
    assert dialog.job is not None
    spec = dialog.job.spec
    assert spec is not None
    assert spec.out == str(tmp_path / "questions-answers.jsonl")
    options = spec.options
    assert (spec.model, spec.rule, spec.max_new_tokens) == ("/models/tiny", "sample", 64)
    assert (options.formats, options.device) == (WeightFormats("q4_0", cache="q4"), "cpu")
    assert (options.memory_gib, options.tier_disk) == (1.5, tmp_path / "tiers")
    assert len(commands) == 1


def test_a_folder_and_a_policy_can_be_chosen_and_cleared(
    dialog: BatchDialog,
    prompts: Path,
    tmp_path: Path,
    commands: list[FakeCommand],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: list[Path | None] = [tmp_path / "mine.json", None]
    monkeypatch.setattr(batch_form, "choose_file", lambda *_: chosen.pop(0))
    monkeypatch.setattr(batch_form, "choose_folder", lambda *_: tmp_path / "fast")
    form = dialog.form
    form.use_prompts(prompts)
    box = form.policy_box
    assert "--policy" not in form.spec(MODEL, "").arguments
    box.activated.emit(1)
    box.activated.emit(1)  # and given up: the file stays
    assert box.currentText() == "mine.json"
    form.disk_button.click()
    form.offer_disk(tmp_path / "other")
    dialog.start_button.click()
    reported = commands[0].arguments
    assert reported[reported.index("--policy") + 1] == str(tmp_path / "mine.json")
    assert reported[reported.index("--tier-disk") + 1] == str(tmp_path / "fast")
    box.activated.emit(0)
    assert box.currentText() == "the fastest that is found"
    assert "--policy" not in form.spec(MODEL, "").arguments


def test_the_page_names_the_model_and_says_that_it_has_no_heads(
    dialog: BatchDialog, prompts: Path, commands: list[FakeCommand]
) -> None:
    dialog.offer(replace(demo_choice(), heads_dir=None), "", ())
    dialog.form.use_prompts(prompts)
    dialog.start_button.click()
    reported = commands[0].arguments
    assert reported[reported.index("--model") + 1] == str(demo_choice().model_dir)
    assert reported[reported.index("--heads") + 1] == "none", "or shipped ones would be taken"
    assert "--rule" not in reported, "no rule is known yet: the usual one"
    assert "--tier-disk" not in reported


def test_a_batch_shows_progress_and_answers_pauses_and_resumes(
    qtbot: QtBot, started: BatchDialog, prompts: Path, commands: list[FakeCommand]
) -> None:
    job, view = started.job, started.view
    assert job is not None
    out = prompts.with_name("questions-answers.jsonl")
    rows = [BatchRow("a", "Hello\nthere", 1200, "eos"), BatchRow(2, error="The line is no JSON.")]
    out.write_text("".join(json.dumps(row._asdict()) + "\n" for row in rows))
    tell_batch(job, BatchProgress("answering", 2, 1, 8, 21.0, 30.0))
    qtbot.waitUntil(lambda: view.results.rowCount() == 2)
    for words in ("2 of 8", "1 with an error", "21 tokens/s", "30 s left"):
        assert words in view.stage_label.text()
    assert view.bar.value() == 250
    assert cells(view.results, 0) == ["a", "1,200", "its end", "Hello there"]
    assert cells(view.results, 1) == ["2", "", "an error", "The line is no JSON."]
    started.pause_button.setFocus()
    started.pause_button.click()
    assert commands[0].was_stopped
    assert not started.pause_button.isEnabled()
    assert started.focusWidget() is not started.cancel_button, "a key gives nothing up"
    commands[0].code = 3
    qtbot.waitUntil(lambda: started.pause_button.text() == "Resume")
    assert started.focusWidget() is started.pause_button
    started.pause_button.click()
    assert len(commands) == 2
    tell_batch(job, BatchProgress("done", 8, 1, 8))
    commands[1].code = 0
    qtbot.waitUntil(started.again_button.isVisible)
    assert view.results.rowCount() == 2
    started.again_button.click()
    assert started.start_button.isVisible()
    assert out.exists()


def test_a_problem_is_shown_with_its_remedy(
    qtbot: QtBot, started: BatchDialog, commands: list[FakeCommand]
) -> None:
    commands[0].words, commands[0].code = "error: The disk is full.\n  Make room.", 1
    label = started.view.problem_label
    qtbot.waitUntil(lambda: label.text() == "The disk is full. Make room.")
    assert started.pause_button.text() == "Resume"


def test_a_batch_that_cannot_start_says_why_beside_the_form(
    dialog: BatchDialog, own: OwnBatches, prompts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise BatchError("The disk is full.", "Make room.")

    monkeypatch.setattr(OwnBatches, "begin", fail)
    dialog.form.use_prompts(prompts)
    assert not dialog.message_label.isVisible()
    dialog.start_button.click()
    assert dialog.message_label.isVisible()
    assert "The disk is full." in dialog.message_label.text()
    assert dialog.start_button.isEnabled()


def test_a_file_without_prompts_is_refused_before_the_model_is_unloaded(
    qtbot: QtBot, dialog: BatchDialog, own: OwnBatches, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("Buy bread.", encoding="utf-8")
    dialog.form.use_prompts(tmp_path / "notes.txt")
    with qtbot.assertNotEmitted(dialog.room_needed):
        dialog.start_button.click()
    assert 'Each line must be {"prompt"' in dialog.message_label.text()
    assert dialog.job is None
    assert not own.unfinished()


def test_enter_pauses_and_doesnt_discard(
    qtbot: QtBot, started: BatchDialog, commands: list[FakeCommand], monkeypatch: pytest.MonkeyPatch
) -> None:
    questions: list[object] = []
    monkeypatch.setattr(batch_dialog, "confirms", lambda *asked: questions.append(asked))
    started.cancel_button.setFocus()
    qtbot.keyClick(started, Qt.Key.Key_Return)
    assert commands[0].was_stopped
    assert questions == []


def test_discarding_asks_first_and_keeps_the_answers(
    started: BatchDialog, own: OwnBatches, prompts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = prompts.with_name("questions-answers.jsonl")
    out.touch()
    monkeypatch.setattr(batch_dialog, "confirms", lambda *_: False)
    started.cancel_button.click()
    assert own.unfinished()
    monkeypatch.setattr(batch_dialog, "confirms", lambda *_: True)
    started.cancel_button.click()
    assert own.unfinished() == []
    assert started.start_button.isVisible()
    assert out.exists()


def test_the_next_start_resumes_a_running_batch_but_not_a_paused_one(
    qtbot: QtBot,
    started: BatchDialog,
    own: OwnBatches,
    appearance: Appearance,
    tmp_path: Path,
    commands: list[FakeCommand],
) -> None:
    started.pause_on_exit()
    assert commands[0].was_stopped, "the program's end pauses it"

    def reopened() -> BatchDialog:
        later = BatchDialog(own, tmp_path / "tiers", appearance)
        qtbot.addWidget(later)
        later.show()
        return later

    later = reopened()
    assert later.pause_button.text() == "Resume"
    assert later.go_on()
    assert len(commands) == 2
    later.pause_button.click()
    commands[1].code = 3
    assert not reopened().go_on()


def test_the_table_shows_the_latest_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_model, "MOST_ROWS", 5)
    model = ResultsModel()
    for first in range(0, 12, 4):
        model.add([BatchRow(n, f"text {n}", 1, "eos") for n in range(first, first + 4)])
    assert [row.id for row in model.rows] == [7, 8, 9, 10, 11]
    model.add([BatchRow(n) for n in range(100)])
    assert [row.id for row in model.rows] == [95, 96, 97, 98, 99]
    role = Qt.ItemDataRole.DisplayRole
    heads = [model.headerData(n, Qt.Orientation.Horizontal, role) for n in range(4)]
    assert heads == ["Line", "Tokens", "Ended by", "Answer"]


def test_palette_and_menu_open_the_batch_page(
    open_ready: Open, tmp_path: Path, commands: list[FakeCommand]
) -> None:
    window, _ = open_ready()
    window.commands.action("batch").trigger()
    assert window.pages.find(BatchDialog) is None  # nothing of this user is kept
