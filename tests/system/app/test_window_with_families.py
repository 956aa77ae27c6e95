"""The real window with a random model of every family of today: opened, asked, edited, stopped."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QMessageBox

from app.models.library_dialog import LibraryDialog
from app.window.main_window import MainWindow
from medusa_core.api import HubSettings, Library
from medusa_core.loading.state import Phase
from medusa_core.messages import StopReason
from tests.support.models.peer_files import write_peer
from tests.support.window.driving import errors
from tests.support.window.fixtures import OpenWindow
from tests.support.window.library_fixtures import Run, run
from tests.support.window.managing import until, wait_for_tasks
from tests.support.window.shared_engine import SharedEngine, engine

__all__ = ["engine", "run"]

# Those that hold states, and those that don't, by their names among `peers.CONFIGS`.
WITH_STATES = (
    "qwen 3.5",
    "qwen 3.5 with experts",
    "qwen 3 next",
    "lfm 2",
    "lfm 2 with experts",
    "granite 4 hybrid",
    "bamba",
    "falcon h1",
    "nemotron h",
)
WITHOUT = (
    "gemma 4 E2B",
    "gemma 4 12B",
    "gemma 4 26B",
    "exaone 4",
    "seed-oss",
    "hunyuan",
    "ernie 4.5",
    "glm 4",
    "gemma",
)
IN_A_FILE = ("qwen 3.5", "lfm 2", "granite 4 hybrid", "gemma 4 E2B")
# Those that transformers runs, and what the header says of them.
THROUGH = {
    "gpt2": "through transformers",
    "stablelm": "through transformers",
    "mamba": "through transformers, one token a step",
}
PROMPT = "As far as the windows of this tower let it see, who is it?"
EDITED = "As far as the windows of this tower let it see, what is it?"
MOST_TOKENS = 24
LONG = 4000

pytestmark = pytest.mark.slow


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Empty library without network access."""
    lists = (tmp_path / "downloads.db", tmp_path / "folders.json")
    return Library(*lists, HubSettings(cache_dir=tmp_path / "hub", is_offline=True))


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail on warnings of our code."""
    with caplog.at_level(logging.WARNING):
        yield
    ours = [record for record in caplog.records if record.name.startswith(("app", "medusa_core"))]
    assert [record.getMessage() for record in ours] == []


class Visit:
    """A user with one model.

    Args:
        window: A window whose model is ready.
        library: Where the model comes to lie.
        model: Its folder or file.
    """

    def __init__(self, window: MainWindow, library: Library, model: Path) -> None:
        self.window = window
        self._library = library
        self._model = model

    @property
    def header(self) -> str:
        """Text beside the model's name."""
        return self.window.page.header.state_label.text()

    async def open(self) -> None:
        """Import the model, and load it."""
        loaded_model = self.window.loaded_model
        await until(lambda: loaded_model.status.calibrated is not None)
        self.window.pages.open("models")
        dialog = self.window.pages.find(LibraryDialog)
        assert dialog is not None
        await wait_for_tasks(dialog)
        dialog.installed.add_folder(str(self._model), loads=True)
        await until(
            lambda: (
                loaded_model.choice.model_dir == self._model
                and loaded_model.status.calibrated is not None
            )
        )
        (item,) = (item for item in dialog.installed.items if item.path == self._model)
        assert item.is_complete
        assert not item.problem
        await wait_for_tasks(dialog)
        dialog.close()
        self.window.page.settings_panel.choose_number("max_new_tokens", MOST_TOKENS)

    async def ends(self, ask: Callable[[], None]) -> None:
        """Trigger an answer, and wait for its end."""
        ask()
        assert self.window.chat.is_busy
        await until(lambda: not self.window.chat.is_busy)
        assert errors(self.window) == []

    async def talk(self, drafter: str) -> str:
        """Ask twice, look at the panels, edit the first prompt, and return the text of Steps."""
        window = self.window
        window.page.settings_panel.choose_drafter(drafter)
        await self.ends(lambda: window.chat.send(PROMPT))
        done = window.chat.answers[-1].done
        assert done is not None
        assert done.num_steps > 0
        tree, steps = window.insight.open_tree(), window.insight.open_steps()
        await until(lambda: len(steps.figures) == done.num_steps)
        assert "read again" not in steps.facts.text()
        assert tree.isVisible()
        await self.ends(lambda: window.chat.send("Why?"))
        await self.ends(lambda: window.chat.edit(0, EDITED))
        changed = window.chat.answers[-1].done
        assert changed is not None
        track = window.insight.timeline.track
        assert track is not None
        assert track.done is changed
        await until(lambda: len(steps.figures) == changed.num_steps)
        await until(lambda: not steps._timer.isActive())
        return steps.facts.text()

    async def stop_and_leave(self) -> None:
        """Stop an answer, and unload the model."""
        window = self.window
        window.page.settings_panel.choose_number("max_new_tokens", LONG)
        window.chat.send("And then?")
        await until(lambda: window.page.strip.tally.num_steps > 0 or not window.chat.is_busy)
        window.chat.stop()
        await until(lambda: not window.chat.is_busy)
        done = window.chat.answers[-1].done
        assert done is not None
        assert done.stop_reason in (StopReason.CANCELLED, StopReason.EOS, StopReason.CONTEXT)
        window.loaded_model.sleep()
        await until(lambda: window.loaded_model.status.phase is Phase.ASLEEP)
        window.insight.close_all()
        await self._library.downloads.close()
        assert errors(window) == []
        shown = QApplication.topLevelWidgets()
        assert not [each for each in shown if isinstance(each, QMessageBox) and each.isVisible()]


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("name", "in_a_file"),
    [(name, False) for name in (*WITH_STATES, *WITHOUT)] + [(name, True) for name in IN_A_FILE],
)
def test_current_model_families_are_loaded_and_answer(
    name: str,
    in_a_file: bool,
    run: Run,
    engine: SharedEngine,
    open_window: OpenWindow,
    library: Library,
    tmp_path: Path,
) -> None:
    model = tmp_path / "model"
    write_peer(name, model, tmp_path / "heads")
    if in_a_file:
        from tests.support.models.gguf_converter import convert

        model = convert(model, tmp_path / "model-F32.gguf")
    visit = Visit(open_window(engine.start, open_library=lambda: library), library, model)

    async def work() -> None:
        await visit.open()
        assert "transformers" not in visit.header
        said = await visit.talk("suffix")
        assert ("read again" in said) == (name in WITH_STATES)
        assert ("States: " in said) == (name in WITH_STATES)
        await visit.stop_and_leave()

    run(work)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", THROUGH)
def test_a_model_that_transformers_runs_is_loaded_and_answers(
    name: str,
    run: Run,
    engine: SharedEngine,
    open_window: OpenWindow,
    library: Library,
    tmp_path: Path,
) -> None:
    from tests.support.models.transformers_files import write_model

    model = write_model(tmp_path / "model", name)
    visit = Visit(open_window(engine.start, open_library=lambda: library), library, model)

    async def work() -> None:
        await visit.open()
        assert visit.header.endswith(THROUGH[name])
        said = await visit.talk("none" if name == "mamba" else "suffix")
        assert ("read again" in said) == (name == "mamba")
        await visit.stop_and_leave()

    run(work)
