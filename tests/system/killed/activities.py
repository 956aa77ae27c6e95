"""A process that does one thing over and over until it is killed, and says what must stay.

`python -m tests.system.killed.activities ACTIVITY FOLDER [ENDPOINT]`. It
writes `ready`, then facts, one a line: each holds from then on.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from array import array
from collections.abc import Callable
from itertools import count
from pathlib import Path

from medusa_core.chats.conversation import Turn
from medusa_core.chats.history.history import History
from medusa_core.hub.job import Pair
from medusa_core.hub.pair_download import Tally, download_pair
from medusa_core.hub.settings import HubSettings
from medusa_core.messages import Event, StepDone
from medusa_core.models.datastore.earlier_answers import EarlierAnswers
from medusa_core.models.datastore.folder import (
    forget_answers,
    store_of,
)
from tests.support.history.writer import say

STEP_S = 0.01
SAVED = "One two three. Four five six seven eight nine ten."
STREAMED = " ".join(f"word{number}" for number in range(3000))


def delete(folder: Path) -> None:
    """Empty the trash, some conversations at a time."""
    history = History(folder / "history.db")
    names = [info.id for info in history.conversations() if info.id.startswith("gone-")]
    say("ready")
    for begin in range(0, len(names), 4):
        some = names[begin : begin + 4]
        history.trash(some)
        say("trashed", *some)
        history.empty_trash()
        say("emptied", *some)


def secret(number: int) -> array[int]:
    """Return a unique answer."""
    return array("i", [1000 * number + place for place in range(400)])


def learn(folder: Path) -> None:
    """Learn answers of conversations, and delete every other one."""
    learned = EarlierAnswers(store_of(folder / "learned", "model"), 1 << 30)
    say("ready")
    for number in count():
        learned.learn(f"talk-{number}", (1, 2, 3), secret(number))
        say("learned", number)
        if number % 2:
            forget_answers(folder / "learned", [f"talk-{number}"])
            say("forgotten", number)


def download(folder: Path, endpoint: str) -> None:
    """Fetch a model and its heads."""
    settings = HubSettings(endpoint=endpoint, cache_dir=folder / "cache", floor_bytes=0)
    pair = Pair("org/model", "org/heads")
    say("ready")
    asyncio.run(download_pair(settings, pair, Tally(), threading.Event()))
    say("downloaded")


def talk(folder: Path, answer: str, step_s: float) -> None:
    """Ask in a real window with a scripted engine; the conversation is saved."""
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from app.engine.bridge import EngineBridge
    from app.engine.loaded_model import LoadedModel
    from app.settings.preferences import Preferences
    from app.settings.store import SettingsStore
    from app.theme.appearance import Appearance
    from app.window.main_window import MainWindow
    from medusa_core.api import resources_dir
    from medusa_core.loading.choice import demo_choice
    from tests.support.window.fakes import FakeEngine, Script

    def start(on_event: Callable[[Event], None]) -> FakeEngine:
        def slowly(event: Event) -> None:
            if isinstance(event, StepDone):
                time.sleep(step_s)
            on_event(event)

        return FakeEngine(Script(answer=answer)).start(slowly)

    qapp = QApplication([])
    looks = Appearance(resources_dir())
    bridge = EngineBridge(start)
    loaded_model = LoadedModel(bridge, demo_choice())
    seeds = count(1)
    window = MainWindow(
        *(bridge, loaded_model, looks, SettingsStore(Preferences(), folder)),
        make_seed=lambda: next(seeds),
        history=History(folder / "history.db"),
    )
    chat = window.chat
    questions = count()

    def ask() -> None:
        chat.new_chat()
        chat.send(f"Question {next(questions)}")

    # The window's own listeners came first: what is stated here, they have seen.
    chat.prompt_sent.connect(lambda conversation, _: say("asked", conversation.session_id))

    def tell_shown(turn: Turn, events: tuple[Event, ...]) -> None:
        steps = [event for event in events if isinstance(event, StepDone)]
        if steps:
            say("shown", turn.answer.id, time.monotonic(), steps[-1].num_visible_bytes)

    chat.answer_reported.connect(tell_shown)
    chat.ended.connect(lambda _, turn: say("ended", turn.answer.id, len(turn.answer.text)))
    chat.ended.connect(lambda *_: QTimer.singleShot(0, ask))
    window.show()
    bridge.start()
    loaded_model.load()

    def begin() -> None:
        if loaded_model.status.calibrated is None:
            QTimer.singleShot(5, begin)
        else:
            say("ready")
            ask()

    begin()
    qapp.exec()


def main(activity: str, folder: Path, endpoint: str = "") -> None:
    """Do it."""
    match activity:
        case "stream":
            talk(folder, STREAMED, STEP_S)
        case "save":
            talk(folder, SAVED, 0.0)
        case "download":
            download(folder, endpoint)
        case "delete":
            delete(folder)
        case "learn":
            learn(folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
