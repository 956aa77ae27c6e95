"""Goes through the screens with a real conversation and takes their pictures."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.__main__ import leave
from app.insight.track import Track
from app.models.library_dialog import LibraryDialog
from app.server.server_dialog import ServerDialog
from app.theme.appearance import ThemeChoice
from app.window.application import (
    Application,
    Options,
    run,
)
from app.window.pages.registry import all_pages
from medusa_core.api import Budget, HubSettings, Library
from medusa_core.chats.answer_text import AnswerText
from medusa_core.chats.conversation import (
    Answer,
    Conversation,
    Prompt,
)
from medusa_core.chats.rounds import Round
from medusa_core.loading.choice import demo_choice
from medusa_core.loading.state import Phase
from medusa_core.messages import GenerateSettings, LoadOptions, as_content
from medusa_core.models.quant.format import Hardware

log = logging.getLogger(__name__)

INDEX = "index.json"
POLL_S = 0.01
# For layouts and paints that follow a change.
SETTLE_S = 0.15
PAGE_SETTLE_S = 0.6  # for pages that look something up
LOAD_TIMEOUT_S = 600.0
ANSWER_TIMEOUT_S = 600.0
STREAMED_STEPS = 12
LONGEST_ANSWER = 240  # tokens: small models go on until their context is full

STORY = "Write a bedtime story about a small bear."
GREETING = "Who are you?"
FOLLOW_UP = "What is the capital of France?"
STRUCTURED = "Generate example sentences using the word 'small'."
FACT = "Which animal is the largest?"
# Words of answers that are put into others' places, so that a text is no equilibrium any more.
WRONG = {"Whale": " Bear", "village": " mountain"}
# Enough to see branches; alone for speed the engine takes fewer for the demo model.
WATCHED_ROWS = 16
# So little memory that most layers of the demo model have no room, with a context of its own.
SMALL = Budget(
    "a small computer",
    Hardware("cpu", packs=("float32", "bfloat16"), compiles=True),
    total_bytes=24 << 20,
    other_bytes=0,
    runtime_bytes=0,
    is_live=True,
)
SMALL_CONTEXT = 1024
WRITTEN = """<think>The user asks for a river, then for an example.</think>
# نهر

النهر **طويل** وجميل، عرضه 12 مترا.

> A quotation over
> two lines.

The area is $A = \\pi r^2$, and \\(x_1 \\le \\sqrt{2}\\).

| Name | Length |
|---|---|
| Nile | 6,650 km |

```python
def length(river: str) -> int:
    return {"Nile": 6650}[river]
```
"""
# Longer than any context of the demo model.
TOO_LONG = "Please remember this. " * 2000


def _reported_step(track: Track) -> int:
    """Return a step near the middle with accepted and rejected drafts."""
    middle = len(track) // 2
    nearest = sorted(range(len(track)), key=lambda index: abs(index - middle))
    return next((index for index in nearest if track[index].num_appended == 3), middle)


def _tooltip() -> QWidget | None:
    """The tooltip that is shown."""
    shown = (widget for widget in QApplication.topLevelWidgets() if widget.isVisible())
    return next((w for w in shown if w.metaObject().className() == "QTipLabel"), None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _written() -> Conversation:
    """A conversation of another program, with all that answers may hold."""
    conversation = Conversation()
    content = AnswerText.stored(WRITTEN)
    answer = Answer([Round("answer", content)], GenerateSettings(), model="A larger model")
    conversation.restore([Prompt("prompt", "", as_content("اكتب لي عن النهر ثم مثالا"), [answer])])
    return conversation


class TourError(Exception):
    """A screen could not be reached."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One entry of the index of pictures.

    Attributes:
        screen: What is shown.
        theme: `light` or `dark`.
        file: Picture, relative to the index.
        answer_text: Text of the last answer on it; empty without one.
        num_accepted: Tokens of that answer which a drafter proposed and the target accepted.
    """

    screen: str
    theme: str
    file: str
    answer_text: str
    num_accepted: int


class Tour:
    """Drives the window as a user would.

    Args:
        application: The application, before `open`.
        folder: Folder for the pictures.
        themes: Themes in which each screen is captured.
    """

    def __init__(
        self, application: Application, folder: Path, themes: tuple[ThemeChoice, ...]
    ) -> None:
        self._app = application
        self._folder = folder
        self._themes = themes
        self._pictures: list[Picture] = []

    async def run(self) -> int:
        """Take all pictures and write the index; returns the exit code."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._app.open()
        try:
            await self._visit()
        except TourError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        finally:
            self._app.close()
        index = json.dumps([asdict(picture) for picture in self._pictures], indent=1)
        (self._folder / INDEX).write_text(index + "\n", encoding="utf-8")
        sys.stdout.write(f"{len(self._pictures)} pictures in {self._folder}\n")
        return 0

    async def _visit(self) -> None:
        chat = self._app.window.chat
        await self._begin()
        self._shorten()
        chat.send(STORY)
        await self._until(self._has_streamed, ANSWER_TIMEOUT_S)
        await self._take("streaming", settle_s=0.0)
        await self._until(lambda: not chat.is_busy, ANSWER_TIMEOUT_S)
        chat.new_chat()  # once more: taking pictures slowed that one down
        await self._ask(STORY, "answer")
        chat.new_chat()
        await self._ask(GREETING)
        await self._ask(FOLLOW_UP, "follow-up")
        chat.new_chat()
        self._app.window.page.settings_panel.choose_drafter("none")
        await self._ask(STORY, "plain")
        self._app.window.page.settings_panel.choose_drafter("composite")
        chat.new_chat()
        await self._ask(STRUCTURED, "structured")
        chat.send(TOO_LONG)
        await self._until(lambda: not chat.is_busy, ANSWER_TIMEOUT_S)
        await self._take("error")
        await self._visit_chat()
        await self._visit_insight()
        await self._visit_models()
        await self._visit_server()
        await self._visit_streamed()
        await self.visit_pages()

    async def _begin(self) -> None:
        """Wait for the model, and let it learn nothing: prompts come again."""
        loaded_model = self._app.loaded_model
        await self._until(lambda: loaded_model.status.phase is not Phase.LOADING, LOAD_TIMEOUT_S)
        if loaded_model.status.failed is not None:
            raise TourError(loaded_model.status.failed.message)
        await self._until(lambda: loaded_model.status.calibrated is not None, LOAD_TIMEOUT_S)
        await self._take("empty")
        self._app.window.settings.set(learns=False)

    async def _visit_chat(self) -> None:
        """Conversations, settings, and an answer with all that answers may hold."""
        window = self._app.window
        chat, sidebar = window.chat, window.sidebar
        chat.new_chat()
        window.page.composer.edit.clear()
        await self._ask(GREETING)
        chat.regenerate()
        await self._until(lambda: not chat.is_busy, ANSWER_TIMEOUT_S)
        await self._take("versions")
        sidebar.search_edit.setText("bear")
        await self._until(lambda: bool(sidebar.model.rows), LOAD_TIMEOUT_S)
        await self._take("search", settle_s=0.4)
        sidebar.search_edit.clear()
        await self._show_panel()
        chat.open(_written())
        await self._take("written", settle_s=0.6)
        chat.new_chat()

    async def _show_panel(self) -> None:
        """The settings of a chat."""
        self._app.window.page.show_panel(True)
        await self._take("panel", settle_s=0.4)
        self._app.window.page.show_panel(False)

    async def _visit_insight(self) -> None:
        """The panels: a planned tree, an answer's steps, its table, and two modes."""
        window = self._app.window
        chat, insight = window.chat, window.insight
        chat.new_chat()
        window.page.composer.edit.clear()
        insight.timeline.show(None)
        tree = insight.open_tree()
        tree.plan.slider.setValue(WATCHED_ROWS)
        await self._take("tree-planned")
        chat.use_tree_rows(WATCHED_ROWS)
        await self._ask(STORY)
        track = insight.timeline.track
        assert track is not None
        insight.timeline.go(_reported_step(track))
        await self._take("tree")
        await self._take("tree-panel", widget=tree)
        answer = chat.answers[-1]
        token = track.first_token(insight.timeline.index)
        answer.token_hovered.emit(token)
        await self._take("token-card", widget=_tooltip())
        answer.token_hovered.emit(-1)
        tree.table_button.setChecked(True)
        await self._take("tree-table")
        tree.table_button.setChecked(False)
        steps = insight.open_steps()
        await self._until(lambda: len(steps.figures) > 0, LOAD_TIMEOUT_S)
        await self._take("steps", settle_s=1.0)
        await self._take("steps-panel", settle_s=1.0, widget=steps)
        chat.new_chat()
        window.page.settings_panel.choose_rule("greedy")
        await self._ask(FACT)
        table = insight.open_equilibrium()
        table.verify_conversation()
        await self._until(lambda: bool(table.shown.cells), LOAD_TIMEOUT_S)
        words = [cell.text.strip("␣") for cell in table.shown.cells]
        place = next((i for i, word in enumerate(words) if word in WRONG), len(words) * 3 // 4)
        table.replace(place, WRONG.get(words[place], " mountain"))
        await self._until(lambda: table.shown.bonus is not None, LOAD_TIMEOUT_S)
        await self._take("equilibrium")
        await self._take("equilibrium-panel", widget=table)
        insight.close_all()
        chat.use_tree_rows(0)
        compare = insight.open_compare()
        compare.edit.setText(STORY)
        compare.start()
        await self._until(lambda: not compare.is_running, ANSWER_TIMEOUT_S)
        await self._take("compare", widget=compare)
        compare.close()

    async def _visit_models(self) -> None:
        """The model manager, offline: the catalog, the built-in model, and a refused download."""
        window, dialog = self._app.window, await self._show_models()
        dialog.tabs.setCurrentWidget(dialog.installed)
        choice = window.loaded_model.choice
        dialog.installed.add_folder(str(choice.heads_dir))
        dialog.installed.add_folder(str(choice.model_dir))
        await self._until(lambda: len(dialog.installed.items) > 1, LOAD_TIMEOUT_S)
        folders = [item.path for item in dialog.installed.rows]
        dialog.installed.table.selectRow(folders.index(choice.model_dir))
        await self._until(lambda: dialog.installed.details.choice is not None, LOAD_TIMEOUT_S)
        await self._take("models-installed", widget=dialog)
        dialog.download(dialog.discover.offers[0])
        await self._until(lambda: dialog.downloads.jobs[0].state.is_over, LOAD_TIMEOUT_S)
        await self._take("models-downloads", widget=dialog)
        dialog.tabs.setCurrentWidget(dialog.installed)
        dialog.installed.table.selectRow(folders.index(demo_choice().model_dir))
        details = dialog.installed.details
        details.layers_dir = self._folder / ".layers"
        dialog.installed.set_budget(SMALL)
        details.quant_box.setCurrentIndex(details.quant_box.findData("bf16"))
        details.context_box.setCurrentIndex(details.context_box.findData(SMALL_CONTEXT))
        details.cache_box.setCurrentIndex(1)  # in 8 bits the cache would have room
        await self._until(lambda: not details.stream_box.isHidden(), LOAD_TIMEOUT_S)
        details.stream_box.setChecked(True)
        await self._take("models-streamed", widget=dialog)
        dialog.close()

    async def _show_models(self) -> LibraryDialog:
        """Show downloadable models."""
        self._app.window.pages.open("models")
        dialog = self._app.window.pages.find(LibraryDialog)
        assert dialog is not None
        await self._until(lambda: dialog.discover.details.choice is not None, LOAD_TIMEOUT_S)
        await self._take("models-discover", widget=dialog)
        return dialog

    async def visit_pages(self) -> set[str]:
        """All pages that no story has led to, with nothing chosen; returns what was taken."""
        pages = self._app.window.pages
        taken = {picture.screen for picture in self._pictures}
        for name, page in all_pages().items():
            if name not in taken and (widget := pages.open(name)) is not None:
                await self._take(name, PAGE_SETTLE_S, None if page.is_panel else widget)
                if not page.is_panel:
                    widget.close()
        return {picture.screen for picture in self._pictures}

    async def _visit_server(self) -> None:
        """Show the server dialog, with requests that this program sends."""
        window = self._app.window
        window.settings.set(server_port=float(_free_port()))
        window.pages.open("server")
        dialog, server = window.pages.find(ServerDialog), window.server
        assert dialog is not None
        assert server is not None
        await self._take("server-off", widget=dialog)
        dialog.switch.click()
        await self._until(lambda: bool(server.status.address), LOAD_TIMEOUT_S)
        address = server.status.address
        async with httpx2.AsyncClient(base_url=address, timeout=ANSWER_TIMEOUT_S) as program:
            await program.get("/v1/models")
            for prompt in (STORY, GREETING):
                messages = [{"role": "user", "content": prompt}]
                body = {"messages": messages, "max_tokens": LONGEST_ANSWER}
                (await program.post("/v1/chat/completions", json=body)).raise_for_status()
            await program.post("/v1/chat/completions", json={"messages": "none"})
        await self._until(lambda: dialog.requests.rowCount() == 4, LOAD_TIMEOUT_S)
        await self._take("server", widget=dialog)
        dialog.switch.click()
        dialog.close()

    async def _visit_streamed(self) -> None:
        """The demo model with most of its layers on a disk, as one that is too large would be."""
        window = self._app.window
        window.loaded_model.load(
            replace(
                demo_choice(),
                options=LoadOptions(
                    context_tokens=SMALL_CONTEXT,
                    memory_gib=SMALL.total_bytes / (1 << 30),
                    tier_disk=self._folder / ".layers",
                ),
            )
        )
        await self._until(lambda: window.loaded_model.status.calibrated is not None, LOAD_TIMEOUT_S)
        window.chat.new_chat()
        await self._ask(STORY)
        window.insight.open_steps()
        await self._take("steps-streamed", settle_s=1.0)

    async def _ask(self, prompt: str, screen: str = "") -> None:
        """Send a prompt, wait for its answer, and take a picture where a screen is named."""
        chat = self._app.window.chat
        self._shorten()
        chat.send(prompt)
        await self._until(lambda: not chat.is_busy, ANSWER_TIMEOUT_S)
        if screen:
            await self._take(screen)

    def _shorten(self) -> None:
        self._app.window.page.settings_panel.choose_number("max_new_tokens", LONGEST_ANSWER)

    def _has_streamed(self) -> bool:
        """Whether enough of the answer is there; also true once it is complete."""
        window = self._app.window
        return not window.chat.is_busy or window.page.strip.tally.num_steps >= STREAMED_STEPS

    async def _take(
        self, screen: str, settle_s: float = SETTLE_S, widget: QWidget | None = None
    ) -> None:
        """Save a screen in every theme; with nothing to wait for, at the same moment in all."""
        answers = self._app.window.chat.answers
        for theme in self._themes:
            self._app.window.settings.set(theme=theme.value)
            if settle_s:
                await asyncio.sleep(settle_s)
            QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)
            name = f"{screen}-{theme.value}.png"
            text = answers[-1].document.text if answers else ""
            num_accepted = answers[-1].content.num_accepted if answers else 0
            (widget or self._app.window).grab().save(str(self._folder / name))
            self._pictures.append(Picture(screen, theme.value, name, text, num_accepted))

    async def _until(self, is_true: Callable[[], bool], timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not is_true():
            if time.monotonic() > deadline_s:
                raise TourError(f"Waited {timeout_s:.0f} s in vain; the log says more.")
            await asyncio.sleep(POLL_S)


def _library_in(folder: Path) -> Library:
    """Return an empty library without network access."""
    lists = (folder / "downloads.db", folder / "folders.json")
    return Library(*lists, HubSettings(cache_dir=folder / "hub", is_offline=True))


def take_tour(tour: type[Tour], folder: Path, themes: tuple[ThemeChoice, ...], **how: str) -> int:
    """Open the application for a tour; returns the exit code.

    Args:
        tour: Which.
        folder: Takes pictures and the index.
        themes: In which colours.
        how: Options of the application, such as its language.
    """
    with TemporaryDirectory(prefix="tour-") as user:
        built = Options(
            theme=themes[0].value,
            data_dir=Path(user),
            open_library=lambda: _library_in(folder / ".library"),
            **how,
        )
        return run(built, lambda application: tour(application, folder, themes).run())


def main() -> int:
    """Take the tour."""
    options = argparse.ArgumentParser(prog="python -m tests.tools.tour", description=__doc__)
    options.add_argument("folder", type=Path, metavar="DIR", help="takes pictures and index.json")
    options.add_argument("--theme", choices=("light", "dark"), help="default: both")
    options.add_argument("--language", default="en", help="code of the window's language")
    options.add_argument("--scale", type=float, default=1.0, help="pixels for each point")
    options.add_argument("--platform", default="offscreen", help="Qt's platform plugin")
    chosen = options.parse_args()
    themes = (ThemeChoice(chosen.theme),) if chosen.theme else (ThemeChoice.LIGHT, ThemeChoice.DARK)
    os.environ["QT_SCALE_FACTOR"] = str(chosen.scale)  # Qt reads it at its start
    return take_tour(
        Tour, chosen.folder, themes, language=chosen.language, platform=chosen.platform
    )


if __name__ == "__main__":
    leave(main())
