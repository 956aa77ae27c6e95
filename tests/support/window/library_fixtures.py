"""The model manager on a Hub on loopback."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import qasync
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine.bridge import EngineBridge
from app.engine.loaded_model import LoadedModel
from app.models.library_dialog import LibraryDialog
from app.state.library import LibraryState
from app.theme.appearance import Appearance
from medusa_core.api import HubSettings, Library
from medusa_core.loading.choice import ModelChoice, demo_choice
from medusa_core.messages import Command, DrafterSpeed, ModelLoaded
from tests.support.hub.fixtures import LoopbackHub, hub, settings
from tests.support.messages import EXAMPLES
from tests.support.models.tiny import TinySpec, random_heads, write_heads, write_tiny

__all__ = ["hub", "settings"]

SPEC = TinySpec(hidden_size=128, intermediate_size=192, seed=41)
OTHER = TinySpec(hidden_size=64, seed=42)
Run = Callable[[Callable[[], Awaitable[None]]], None]


@pytest.fixture
def run(qapp: QApplication) -> Iterator[Run]:
    """Runs a coroutine on one loop with Qt, as the application does."""
    qapp.setQuitOnLastWindowClosed(False)
    loop = qasync.QEventLoop(qapp)
    asyncio.set_event_loop(loop)

    def run_on_it(work: Callable[[], Awaitable[None]]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(240):
                await work()
            # What goes on would run later, when Qt processes events without a running loop.
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

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


EXAMPLE = next(example for example in EXAMPLES if isinstance(example, ModelLoaded))


class IdleEngine:
    """An engine that executes nothing."""

    is_alive = True

    def submit(self, command: Command) -> None: ...

    def close(self, timeout_s: float = 10.0) -> None: ...


def state_of(library: Library) -> LibraryState:
    """The state of a library beside the demo model, which is being loaded."""
    bridge = EngineBridge(lambda _on_event: IdleEngine())
    bridge.start()
    return LibraryState(LoadedModel(bridge, demo_choice()), lambda: library)


def show_loaded(
    state: LibraryState, choice: ModelChoice, speeds: tuple[DrafterSpeed, ...] = ()
) -> None:
    """Report a model as loaded, with measured speeds."""
    loaded_model = state.loaded_model
    loaded_model.load(choice)
    command = loaded_model._load.command  # type: ignore[union-attr]
    ids = {"session_id": command.session_id, "request_id": command.request_id}
    loaded_model._handle_event(replace(EXAMPLE, **ids, speeds=speeds))  # type: ignore[arg-type]


@pytest.fixture
def dialog(qtbot: QtBot, library: Library, appearance: Appearance) -> LibraryDialog:
    opened = LibraryDialog(state_of(library), appearance)
    qtbot.addWidget(opened)
    opened.show()
    return opened
