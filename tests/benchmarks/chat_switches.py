"""What switching between stored chats leaves in the window's memory.

Each chat has answers with headings, lists, tables, code and formulas, with their steps. All are
opened one after the other, as by clicks in the list. `tests/system/app/history/test_switches.py`
judges a short run.

`python -m tests.benchmarks.chat_switches [--switches 200] [--every 20] [--types 10] [--json FILE]`
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, QObject, qInstallMessageHandler
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.theme.appearance import Appearance, ThemeChoice
from app.window.main_window import MainWindow
from medusa_core.api import History, resources_dir
from medusa_core.chats.history.records import AnswerState
from tests.support.history.samples import answer, done, prompt, steps
from tests.support.window.fakes import FakeEngine
from tests.support.window.fixtures import windows

_TURNS = 3
_COUNTED = ("app.", "medusa_core.", "PySide6.", "markdown_it.")
_TEXT = """## Answer {0}

Some **words** about *things* of chat {0}, and `code` in a line:

- first, $x^2 + \\frac{{a}}{{b}}$;
- second.

| name | value |
|---|---|
| a | {0} |

```python
def work(number: int) -> int:
    return number * {0}  # a comment
```
"""


@dataclass(frozen=True, slots=True)
class Held:
    """What the process holds after a full garbage collection.

    Attributes:
        num_switches: Chats opened so far.
        resident_bytes: Resident memory.
        num_objects: Objects of our classes and Qt's that the garbage collector tracks: imports and
            their tuples and dictionaries aren't counted.
        num_qobjects: Python wrappers of QObjects.
        num_widgets: Qt's widgets.
    """

    num_switches: int
    resident_bytes: int
    num_objects: int
    num_qobjects: int
    num_widgets: int


def write_chats(path: Path, num_chats: int) -> None:
    """Write a history of the given number of chats, named `c0`, `c1`, ..."""
    history = History(path)
    for chat in range(num_chats):
        name, parent = f"c{chat}", None
        history.begin(name, f"Chat {chat}")
        for turn in range(_TURNS):
            asked, answered = f"{name}-q{turn}", f"{name}-a{turn}"
            history.add_prompt(prompt(name, asked, f"Question {turn} of {chat}?", parent))
            history.begin_answer(answer(name, answered, asked))
            text = _TEXT.format(chat)
            history.append_steps(answered, tuple(steps(text, size=6)))
            history.finish_answer(answered, text, done(text), AnswerState.DONE)
            parent = answered
    history.close()


@contextmanager
def open_window(folder: Path) -> Iterator[MainWindow]:
    """A shown window on the history in a folder, with an engine that answers from a script."""
    looks = Appearance(resources_dir())
    looks.use(ThemeChoice.LIGHT)
    engine = FakeEngine()
    with windows(looks, folder) as open_on:
        window = open_on(engine.start, history=History(folder / "history.db"))
        # The fake keeps what it is told: here that would be the largest leak.
        window.chat.state.conversation_changed.connect(lambda _: engine.commands.clear())
        _wait(lambda: window.loaded_model.status.calibrated is not None)
        yield window
        window.close()
        window.deleteLater()
        _settle()


def switch(
    window: MainWindow, chats: Iterator[str], num_switches: int, *, asks: bool = False
) -> None:
    """Open the given number of chats, and lay each out completely.

    Args:
        window: The window.
        chats: Names of chats.
        num_switches: How many are opened.
        asks: Ask something in each, and open the next one once it is answered.
    """
    controller = window.history
    assert controller is not None
    for _ in range(num_switches):
        controller.open_conversation(next(chats))
        for message in window.page.conversation.messages:
            window.page.conversation.populate_message(message)
        if asks:
            window.chat.send("And then?")
            _wait(lambda: not window.chat.is_busy)
        QTest.qWait(0)


def held(num_switches: int) -> Held:
    """Collect garbage, and count what is left."""
    objects = _objects()
    return Held(
        num_switches,
        psutil.Process().memory_info().rss,
        sum(str(type(one).__module__).startswith(_COUNTED) for one in objects),
        sum(issubclass(type(one), QObject) for one in objects),
        len(QApplication.allWidgets()),
    )


def types(objects: list[object] | None = None) -> Counter[str]:
    """Number of tracked objects by type."""
    found = _objects() if objects is None else objects
    return Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in found)


def _objects() -> list[object]:
    _settle()
    gc.collect()
    _settle()  # what was deleted by the collection
    gc.collect()
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).malloc_trim(0)
    return gc.get_objects()


def _settle() -> None:
    """Handle posted events, deletions included."""
    for _ in range(3):
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 50)
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def _wait(is_so: Callable[[], bool]) -> None:
    while not is_so():
        QTest.qWait(1)


def main() -> int:
    """Measure, and print a line at intervals of switches."""
    options = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.chat_switches", description=__doc__
    )
    options.add_argument("--switches", type=int, default=200)
    options.add_argument("--every", type=int, default=20)
    options.add_argument("--asks", action="store_true", help="ask something in each chat")
    options.add_argument("--types", type=int, default=0, help="print what has grown, by type")
    options.add_argument("--json", type=Path, metavar="FILE", help="takes the figures, too")
    chosen = options.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    qInstallMessageHandler(lambda *_: None)  # offscreen, each message says what it can't do
    QApplication([])
    curve: list[Held] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        num_chats = chosen.switches + chosen.every
        write_chats(folder / "history.db", num_chats)
        chats = (f"c{number}" for number in range(num_chats))
        with open_window(folder) as window:
            switch(window, chats, chosen.every, asks=chosen.asks)  # all modules are imported
            before = types()
            for number in range(0, chosen.switches + 1, chosen.every):
                if number:
                    switch(window, chats, chosen.every, asks=chosen.asks)
                curve.append(held(number))
                now = curve[-1]
                sys.stdout.write(
                    f"{now.num_switches:4} switches  {now.resident_bytes / 1e6:7.1f} MB  "
                    f"{now.num_objects:8,} objects  {now.num_qobjects:6,} QObjects  "
                    f"{now.num_widgets:5,} widgets\n"
                )
                sys.stdout.flush()
            for kind, more in (types() - before).most_common(chosen.types):
                sys.stdout.write(f"{more:+7,}  {kind}\n")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([asdict(one) for one in curve]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
