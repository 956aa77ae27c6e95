"""What goes wrong takes neither the window nor the text down, and something helps."""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.chat.error_board import ErrorTopic
from app.chat.error_card import ErrorCard
from app.help.diagnostics import DiagnosticsDialog
from app.startup.crash import (
    LAST_DUMP_NAME,
    CrashGuard,
)
from app.startup.logs import (
    FILE_NAME,
    start_logging,
)
from app.theme.appearance import Appearance
from app.window.application import continue_or_explain
from medusa_core.api import compose_report, places
from medusa_core.cli.plan import shape_config
from medusa_core.doctor.check import Check
from medusa_core.loading.memory.budget import cuda_budget
from medusa_core.loading.memory.recommend import smaller_choices
from medusa_core.loading.state import (
    ModelStatus,
    Phase,
)
from medusa_core.messages import Event, Failed, Fit, HeadsShape, WeightFormats
from tests.support.window.driving import ask, errors, wait_ready
from tests.support.window.fakes import FakeEngine, Script
from tests.support.window.fixtures import Open, OpenWindow
from tests.support.window.library_fixtures import Run, run
from tests.support.window.managing import until

__all__ = ["run"]
ROOT = Path(__file__).resolve().parents[4]

CRASH = """
import os, signal, sys
from pathlib import Path
from app.startup.crash import CrashGuard
guard = CrashGuard(Path(sys.argv[1]), Path(sys.argv[1]))
print(guard.begin(), flush=True)
if sys.argv[2] == "segv":
    os.kill(os.getpid(), signal.SIGSEGV)
if sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
guard.end()
"""


def buttons(card: ErrorCard) -> dict[str, QPushButton]:
    return {button.text(): button for button in card.findChildren(QPushButton)}


@pytest.mark.skipif(sys.platform == "win32", reason="ends processes as POSIX does")
def test_a_crash_is_noticed_at_the_next_start_with_pythons_traceback(tmp_path: Path) -> None:
    def start(ending: str) -> str:
        command = [sys.executable, "-c", CRASH, str(tmp_path), ending]
        reported = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return reported.stdout.strip()

    assert [start(ending) for ending in ("clean", "segv", "kill", "clean", "clean")] == [
        "False",
        "False",
        "True",
        "True",
        "False",
    ]
    assert "Segmentation fault" in (tmp_path / LAST_DUMP_NAME).read_text()


def test_after_a_crash_the_diagnostics_are_offered_and_previewed(
    open_ready: Open, run: Run
) -> None:
    window, _ = open_ready()
    continue_or_explain(window, has_crashed=True, continues=True)
    (card,) = errors(window)

    async def work() -> None:
        buttons(card)["Show diagnostics"].click()
        dialog = window.pages.find(DiagnosticsDialog)
        assert dialog is not None
        await until(lambda: dialog.preview.toPlainText())
        assert dialog.table.rowCount() > 10
        assert "Llama-Pebble: ready" in dialog.preview.toPlainText()

    run(work)
    assert errors(window) == []


def test_a_report_is_saved_as_previewed_without_home_folders_and_tokens(
    qtbot: QtBot, run: Run, appearance: Appearance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    log = tmp_path / "a.log"
    log.write_text(
        "2026-01-01 10:00:00,000 INFO app: fine\n"
        "2026-01-01 10:00:01,000 ERROR app: /home/someone/x Bearer abcdefghijklmnopqrst\n"
        "Traceback: last line\n"
    )
    found = (Check("Disk", False, "/home/someone/models is full.", "Make room."),)
    dialog = DiagnosticsDialog(
        lambda: found,
        lambda checks: compose_report(checks, "Pebble", ModelStatus(), {"Last errors": log}),
        appearance,
    )
    qtbot.addWidget(dialog)

    async def work() -> None:
        dialog.look()
        await until(lambda: dialog.save_button.isEnabled() and dialog.preview.toPlainText())

    run(work)
    dialog.save(tmp_path / "report.txt")
    saved = (tmp_path / "report.txt").read_text()
    assert saved == dialog.preview.toPlainText()
    assert "FAIL Disk: ~/models is full." in saved
    assert "Traceback: last line" in saved
    assert "INFO" not in saved
    assert "someone" not in saved
    assert "abcdefghij" not in saved


def test_a_report_omits_text_quoted_from_a_template(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(
        "2026-01-01 10:00:00,000 ERROR app: Generate failed\n"
        "medusa_core.errors.TemplateError: No a secret\nof two lines\n"
        "2026-01-01 10:00:01,000 ERROR app: another failure\n"
    )
    for failed in (
        Failed("", "", "TemplateError", "The template refuses a secret.", "Ask for no secret."),
        Failed("", "", "ModelError", "This model is no model.", ""),
    ):
        report = compose_report((), "Pebble", ModelStatus(Phase.FAILED, failed=failed), {"A": log})
        assert "medusa_core.errors.TemplateError\n2026-01-01 10:00:01" in report
        assert "another failure" in report
        assert failed.kind in report
        assert ("This model is no model." in report) is (failed.kind == "ModelError")
        assert "secret" not in report
        assert "two lines" not in report


@pytest.mark.skipif(sys.platform == "win32", reason="modes as POSIX has them")
def test_folders_and_logs_are_readable_by_their_user_only(tmp_path: Path) -> None:
    where = places(tmp_path / "all")
    where.log.mkdir(parents=True)
    where.log.chmod(0o755)
    (where.log / FILE_NAME).touch()
    where.make_private()
    with restored_logging():
        path = start_logging(where.log, is_verbose=False)
        for _ in range(12):
            logging.getLogger().info("x" * 100_000)
    modes = {path.stat().st_mode & 0o777 for path in where.log.iterdir()}
    assert path in where.log.iterdir()
    assert len(list(where.log.iterdir())) == 2
    assert modes == {0o600}
    for folder in (where.config, where.data, where.state, where.log):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_folders_that_cannot_be_made_are_left_to_their_writers(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    places(tmp_path / "file").make_private()


@contextmanager
def restored_logging() -> Iterator[None]:
    """Handlers and level of the root logger are afterwards as they were."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        yield
    finally:
        for handler in root.handlers[:]:
            root.removeHandler(handler)
            handler.close()
        for handler in before:
            root.addHandler(handler)
        root.setLevel(level)


def test_no_log_above_debug_has_messages(qtbot: QtBot, open_ready: Open, tmp_path: Path) -> None:
    with restored_logging():
        path = start_logging(tmp_path / "log", is_verbose=False)
        window, _ = open_ready(Script(answer="A marvellous answer."))
        ask(qtbot, window, "A secret question")
        logging.getLogger("app").warning("something happened")
    reported = path.read_text()
    assert "something happened" in reported
    assert "secret" not in reported
    assert "marvellous" not in reported


def test_logs_rotate(tmp_path: Path) -> None:
    with restored_logging():
        start_logging(tmp_path, is_verbose=False)
        for _ in range(40):
            logging.getLogger().info("x" * 100_000)
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 3
    assert sum(sizes) <= 3_100_000


def test_a_lost_device_offers_to_save_and_restart(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready(Script(decode_error="The card is lost.", loses_device=True))
    window.chat.send("hello")
    qtbot.waitUntil(lambda: bool(errors(window)))
    with qtbot.waitSignal(window.closed):
        buttons(errors(window)[0])["Save and restart"].click()
    assert window.wants_restart


def test_out_of_memory_offers_smaller_choices(qtbot: QtBot, open_ready: Open, run: Run) -> None:
    window, engine = open_ready()

    async def work() -> None:
        failed = Failed("s", "r", "OutOfMemoryError", "No memory is left.", "")
        window.chat.errors.show_failure(failed, ErrorTopic.MODEL)
        await until(lambda: buttons(errors(window)[0]))

    run(work)
    offered = buttons(errors(window)[0])
    assert offered
    next(iter(offered.values())).click()
    qtbot.waitUntil(lambda: len(engine.of_kind(type(engine.commands[0]))) == 2)


def test_smaller_choices_need_less_memory_and_fit_if_anything_does() -> None:
    config, heads, budget = shape_config("vicuna-7b"), HeadsShape(), cuda_budget(8)
    requested = WeightFormats("int8")
    found = smaller_choices(config, heads, budget, requested, 4096)
    assert found
    assert all(one.plan.fit is not Fit.NO for one in found)
    assert any(one.context_tokens == 4096 and one.formats != requested for one in found)
    tiny = smaller_choices(config, heads, cuda_budget(1.5), requested, 4096)
    assert tiny, "the least is offered even where it should not fit"


def test_on_a_read_only_disk_the_window_opens_without_the_crash_marker(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")
    guard = CrashGuard(tmp_path / "file" / "state", tmp_path / "file" / "log")
    assert not guard.begin()
    guard.end()


@pytest.mark.expects_errors
def test_a_dead_engine_is_replaced_and_the_prompt_is_restored(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    engines: list[FakeEngine] = []

    def start(on_event: Callable[[Event], None]) -> FakeEngine:
        engines.append(FakeEngine())
        return engines[-1].start(on_event)

    window = open_window(start)
    wait_ready(qtbot, window)
    window.page.composer.edit.setPlainText("typed meanwhile")
    engines[0].die()
    window.chat.send("precious words")
    qtbot.waitUntil(lambda: len(engines) == 2)
    wait_ready(qtbot, window)
    assert "started again" in errors(window)[0].message
    assert "precious words" in window.page.composer.edit.toPlainText()
    window.page.composer.edit.clear()
    assert ask(qtbot, window, "again").content.text
