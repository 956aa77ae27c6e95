"""Training heads from the window, with a run that follows a script."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.models.library_dialog import LibraryDialog
from app.theme.appearance import Appearance
from app.training import train_dialog
from app.training.train_dialog import TrainDialog
from app.widgets.sizes import on_disk
from medusa_core.api import TRAINED_KINDS, HeadsNeeds, Library, OwnHeads, trained_bytes
from medusa_core.system.jobs.heads_gain import (
    FILE_NAME,
    HeadsGain,
    read_gain,
    write_gain,
)
from tests.support.jobs import FakeCommand, commands, tell
from tests.support.models.shapes import resized
from tests.support.models.tiny import random_heads, write_heads, write_tiny
from tests.support.window.library_fixtures import SPEC, Run, state_of
from tests.support.window.managing import wait_for_tasks

__all__ = ["commands"]


@pytest.fixture
def own(tmp_path: Path) -> OwnHeads:
    return OwnHeads(tmp_path / "heads")


@pytest.fixture
def dialog(qtbot: QtBot, appearance: Appearance, own: OwnHeads) -> TrainDialog:
    opened = TrainDialog(own, appearance, "/somewhere/history.db")
    qtbot.addWidget(opened)
    opened.offer("org/tiny", "/models/tiny", "q4_0", "cpu")
    opened.show()
    return opened


def test_the_form_gives_the_runs_settings(dialog: TrainDialog, commands: list[FakeCommand]) -> None:
    form = dialog.form
    form.kind_box.setCurrentIndex(form.kind_box.findData("eagle"))
    form.heads_box.setValue(5)
    form.minutes_box.setValue(90)
    form.use_files(("/data/a.jsonl", "/data/b.json"))
    dialog.start_button.click()
    assert dialog.run is not None
    spec = dialog.run.spec
    assert spec is not None
    assert (spec.model, spec.kind, spec.num_heads, spec.minutes) == ("/models/tiny", "eagle", 5, 90)
    assert (spec.data, spec.quant, spec.device) == (
        ("/data/a.jsonl", "/data/b.json"),
        "q4_0",
        "cpu",
    )
    assert spec.own_chats == "", "only if ticked"
    assert len(commands) == 1


def test_kinds_of_heads_are_described_by_cost_and_gain(dialog: TrainDialog, tmp_path: Path) -> None:
    form = dialog.form
    names = [form.kind_box.itemText(row) for row in range(form.kind_box.count())]
    assert "Hydra: small, quick to train" in names
    assert "EAGLE-3: a layer, takes longest" in names
    assert "DSpark: one pass for a whole block" in names
    assert all(kind.gist and kind.explanation for kind in TRAINED_KINDS.values() if kind.label)
    assert "MB" not in form.kind_label.text(), "of a model without known sizes"
    form.kind_box.setCurrentIndex(form.kind_box.findData("dspark"))
    assert form.kind_label.text().startswith("One pass drafts several tokens")
    assert form.spec("m", "", "").block == form.heads_box.value()


def test_the_form_says_how_large_heads_will_be(dialog: TrainDialog, tmp_path: Path) -> None:
    form = dialog.form
    write_tiny(tmp_path / "tiny", SPEC)
    large = resized("qwen3-8b", hidden_size=2048, intermediate_size=8192, vocab_size=100_000)
    dialog.offer("org/tiny", "/models/tiny", "q4_0", "cpu", large)
    for kind in ("medusa-shared", "eagle"):
        form.kind_box.setCurrentIndex(form.kind_box.findData(kind))
        size = on_disk(trained_bytes(kind, large, 4))
        assert form.kind_label.text().endswith(f"For this model they take {size}.")
        assert form.kind_box.accessibleDescription() == form.kind_label.text()
    form.kind_box.setCurrentIndex(form.kind_box.findData("medusa"))
    form.heads_box.setValue(2)
    assert on_disk(trained_bytes("medusa", large, 2)) in form.kind_label.text()


def test_a_runs_requirements_are_shown_with_its_expected_gain(dialog: TrainDialog) -> None:
    told = dialog._needs_shown(HeadsNeeds(3 * 10**9, 10**9, 21.0, 0.5, 400, 2.14))
    assert told.startswith("Peak memory 3.0 GB")
    assert told.endswith("expected: 2.1 tokens per step")


def test_joint_training_happens_only_if_ticked(
    dialog: TrainDialog, commands: list[FakeCommand]
) -> None:
    form = dialog.form
    assert not form.spec("m", "", "").joint
    form.joint_box.setChecked(True)
    assert form.spec("m", "", "").joint
    form.kind_box.setCurrentIndex(form.kind_box.findData("eagle"))
    assert not form.joint_box.isEnabled()
    assert not form.spec("m", "", "").joint, "an EAGLE head learns alone"


def test_own_chats_are_used_only_if_ticked(
    dialog: TrainDialog, commands: list[FakeCommand]
) -> None:
    dialog.form.chats_box.setChecked(True)
    dialog.start_button.click()
    assert dialog.run is not None
    assert dialog.run.spec is not None
    assert dialog.run.spec.own_chats == "/somewhere/history.db"


def test_a_run_shows_progress_pauses_and_resumes(
    qtbot: QtBot, dialog: TrainDialog, commands: list[FakeCommand]
) -> None:
    dialog.start_button.click()
    run, view = dialog.run, dialog.view
    assert run is not None
    tell(run, stage="answers", done=1, of=4, tokens_per_s=21.0)
    qtbot.waitUntil(lambda: "21 tokens/s" in view.stage_label.text())
    assert view.bar.value() == 250
    (run.out / "work" / "curve.jsonl").write_text('{"step": 10, "top1": [0.41, 0.2]}\n')
    tell(run, stage="training", done=2, of=4, seconds_left=30.0)
    qtbot.waitUntil(lambda: "30 s left" in view.stage_label.text())
    assert "41%" in view.stage_label.text()
    assert "41%" in view.plot.accessibleDescription()
    dialog.pause_button.click()
    assert commands[0].was_stopped
    assert not dialog.pause_button.isEnabled()
    assert view.stage_label.text() == "Pausing after this step…"
    dialog._poll()
    assert not dialog.pause_button.isEnabled(), "until it has stopped"
    commands[0].code = 3
    qtbot.waitUntil(lambda: dialog.pause_button.text() == "Resume")
    dialog.pause_button.click()
    assert commands[1].arguments[-2] == "--resume"
    with qtbot.waitSignal(dialog.made) as made:
        tell(run, stage="done", done=1, of=1)
        commands[1].code = 0
    assert made.args == [run.out]
    assert dialog.again_button.isVisible()
    dialog.again_button.click()
    assert dialog.start_button.isVisible()


def test_a_problem_is_shown_with_its_remedy(
    qtbot: QtBot, dialog: TrainDialog, commands: list[FakeCommand]
) -> None:
    dialog.start_button.click()
    commands[0].words, commands[0].code = "error: The disk is full.\n  Make room.", 1
    label = dialog.view.problem_label
    qtbot.waitUntil(lambda: label.text() == "The disk is full. Make room.")
    assert label.isVisible()
    assert dialog.pause_button.text() == "Resume"


def test_discarding_a_run_asks_first_and_deletes(
    dialog: TrainDialog,
    own: OwnHeads,
    commands: list[FakeCommand],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dialog.start_button.click()
    monkeypatch.setattr(train_dialog, "confirms", lambda *_: False)
    dialog.cancel_button.click()
    assert own.unfinished()
    monkeypatch.setattr(train_dialog, "confirms", lambda *_: True)
    dialog.cancel_button.click()
    assert own.unfinished() == ()
    assert dialog.start_button.isVisible()


def test_an_unfinished_run_is_offered(
    qtbot: QtBot,
    own: OwnHeads,
    appearance: Appearance,
    dialog: TrainDialog,
    commands: list[FakeCommand],
) -> None:
    dialog.start_button.click()
    dialog.pause_on_exit()
    assert commands[0].was_stopped, "the program's end pauses it"
    later = TrainDialog(own, appearance)
    qtbot.addWidget(later)
    later.show()
    assert later.pause_button.text() == "Resume"
    assert not later.start_button.isVisible()
    assert later.form.chats_box.isHidden(), "there is no history"


def test_requirements_are_estimated_before_a_run(
    qtbot: QtBot, dialog: TrainDialog, commands: list[FakeCommand]
) -> None:
    dialog.needs_button.click()
    assert not dialog.needs_button.isEnabled()
    folder = Path(commands[0].arguments[-1]).parent
    needs = HeadsNeeds(4_900_000_000, 6, 7.0, 1.5, 40, 2.1)
    (folder / "needs.json").write_text(json.dumps(asdict(needs)))
    commands[0].code = 0
    qtbot.waitUntil(lambda: "about 1.5 h" in dialog.message_label.text())
    assert not folder.exists()
    dialog.form.heads_box.setValue(3)
    assert dialog.message_label.text() == "", "that was for other heads"
    dialog.needs_button.click()
    commands[1].words, commands[1].code = "error: Too large.\n  Take less.", 1
    qtbot.waitUntil(lambda: "Too large" in dialog.message_label.text())


def test_the_loaded_model_can_be_unloaded_for_a_run(
    qtbot: QtBot, dialog: TrainDialog, commands: list[FakeCommand]
) -> None:
    dialog.room_box.setChecked(True)
    with qtbot.waitSignal(dialog.room_needed):
        dialog.start_button.click()


def test_trained_heads_are_listed_beside_their_model(
    qtbot: QtBot,
    run: Run,
    library: Library,
    appearance: Appearance,
    own: OwnHeads,
    tmp_path: Path,
    commands: list[FakeCommand],
) -> None:
    training = TrainDialog(own, appearance)
    manager = LibraryDialog(state_of(library), appearance, training=training)
    qtbot.addWidget(manager)
    manager.show()
    model = write_tiny(tmp_path / "tiny", SPEC)

    async def work() -> None:
        library.add_folder(str(model))
        await manager.installed.refresh()
        rows = [item.path for item in manager.installed.rows]
        manager.installed.table.selectRow(rows.index(model))
        assert manager.installed.heads_box.currentText() == "none"
        manager.installed.train_button.click()
        training.start_button.click()
        assert training.run is not None
        write_heads(training.run.out, random_heads(SPEC))
        tell(training.run, stage="done", done=1, of=1)
        commands[0].code = 0
        training._poll()
        await wait_for_tasks(manager)
        rows = [item.path for item in manager.installed.rows]
        manager.installed.table.selectRow(rows.index(model))
        assert manager.installed.heads_box.currentText() == training.run.out.name

    run(work)


def test_heads_without_a_gain_say_so(
    qtbot: QtBot, dialog: TrainDialog, commands: list[FakeCommand]
) -> None:
    dialog.start_button.click()
    run = dialog.run
    assert run is not None
    tell(run, stage="done", done=1, of=1)
    write_gain(run.out, HeadsGain(1.18, 0.97))
    commands[0].code = 0
    qtbot.waitUntil(lambda: "no gain (0.97× plain); train longer?" in _stage(dialog))
    assert "1.18 tokens per step" in _stage(dialog)
    dialog.offer("org/tiny", "/models/tiny", "q4_0", "cpu")
    assert dialog.run is run, "opened again, it still says what came of it"
    dialog.offer("org/other", "/models/other", "q4_0", "cpu")
    assert dialog.run is None


def _stage(dialog: TrainDialog) -> str:
    return dialog.view.stage_label.text()


def test_heads_that_make_answers_slower_are_not_preselected(
    run: Run, qtbot: QtBot, appearance: Appearance, library: Library, tmp_path: Path
) -> None:
    model = write_tiny(tmp_path / "tiny", SPEC)
    heads = write_heads(tmp_path / "tiny-heads", random_heads(SPEC, 2))
    for folder in (model, heads):
        library.add_folder(str(folder))
    opened = LibraryDialog(state_of(library), appearance)
    qtbot.addWidget(opened)
    tab = opened.installed

    async def offered() -> tuple[str, str]:
        await tab.refresh()
        tab.table.selectRow([item.path for item in tab.rows].index(model))
        return tab.heads_box.currentText(), tab.heads_box.itemText(1)

    async def work() -> None:
        assert await offered() == ("tiny-heads", "tiny-heads"), "nobody knows: they may pay"
        write_gain(heads, HeadsGain(1.18, 0.97))
        assert await offered() == ("none", "tiny-heads – no gain (0.97× plain)")
        write_gain(heads, HeadsGain(2.2, 1.4))
        assert await offered() == ("tiny-heads", "tiny-heads")
        await wait_for_tasks(opened)

    run(work)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"tau": 1, "x_plain": "NaN"}', '{"tau": null}'])
def test_an_unreadable_gain_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    assert read_gain(tmp_path) is None
    write_gain(tmp_path, HeadsGain(2.0, 1.5))
    assert read_gain(tmp_path) == HeadsGain(2.0, 1.5)


def test_enter_never_cancels_a_run(dialog: TrainDialog, commands: list[FakeCommand]) -> None:
    dialog.start_button.click()
    assert dialog.pause_button.isDefault()
    assert not dialog.cancel_button.autoDefault()


def test_disk_space_is_entered_in_the_unit_in_which_it_is_shown(dialog: TrainDialog) -> None:
    dialog.form.disk_box.setValue(5)
    assert dialog.form.spec("m", "", "").states_gib * 2**30 == pytest.approx(5e9)
