"""What is installed, downloaded and loaded, without widgets."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from pytestqt.qtbot import QtBot

from medusa_core.api import DownloadJob, JobState, Library, Pair
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import ModelChoice, demo_choice
from medusa_core.messages import DrafterSpeed
from tests.support.models.eagle_files import EagleSpec
from tests.support.models.gguf_heads_files import write_eagle_gguf
from tests.support.models.targets import GROUPED
from tests.support.models.tiny import random_heads, write_heads, write_tiny
from tests.support.window.library_fixtures import (
    SPEC,
    Run,
    show_loaded,
    state_of,
)

SPEEDS = (DrafterSpeed("none", 1.0, 548.0, 1.0, 0.0),)


def test_imported_models_can_be_loaded_and_removed_ones_no_longer(
    run: Run, library: Library, tmp_path: Path
) -> None:
    state = state_of(library)
    assert state.open() is library
    seen: list[int] = []
    state.listed.connect(lambda: seen.append(len(state.installed)))
    model = write_tiny(tmp_path / "tiny", SPEC)
    heads = write_heads(tmp_path / "tiny-heads", random_heads(SPEC, 2))

    async def work() -> None:
        await asyncio.gather(state.add(model), state.add(heads))
        assert sorted(seen) == [1, 2], "one after the other"
        await state.refresh()
        choice = state.choice_at(model)
        assert choice == ModelChoice("tiny", model, choice.heads_dir if choice else None)
        (item,) = (one for one in state.installed if one.path == model)
        assert not state.is_loaded(item)
        show_loaded(state, ModelChoice("tiny", model, heads), SPEEDS)
        assert state.is_loaded(item)
        assert state.speeds_of(item, heads) == SPEEDS
        assert state.speeds_of(item, None) == ()
        show_loaded(state, demo_choice())
        await state.remove(item)
        assert [one.path for one in state.installed] == [heads]
        assert state.choice_at(model) is None
        with pytest.raises(MedusaError):
            await state.add(tmp_path / "nothing")

    run(work)


def test_models_and_heads_that_fit_them_are_imported_and_loaded(
    run: Run, library: Library, tmp_path: Path
) -> None:
    state = state_of(library)
    told: list[str] = []
    state.failed.connect(lambda message, _hint: told.append(str(message)))
    model = write_tiny(tmp_path / "tiny", GROUPED)
    fits = write_eagle_gguf(tmp_path / "fits-eagle3.gguf", EagleSpec("eagle3"))
    foreign = write_eagle_gguf(tmp_path / "other-eagle3.gguf", EagleSpec("eagle3", hidden=64))
    refused: list[Path] = []

    async def work() -> None:
        for path in (model, fits, foreign):
            state.load_file(path, lambda path=path: refused.append(path))
            await state.tasks.wait()

    run(work)
    choice = state.loaded_model.choice
    assert (choice.model_dir, choice.heads_dir) == (model, fits)
    assert refused == [foreign]
    (reason,) = told
    assert "hidden size 64 ≠ 32" in reason
    assert len(state.installed) == 3, "heads of another model are listed, too"


class Downloads:
    """A library with two downloads, of which one was ready before."""

    def __init__(self) -> None:
        self.downloads = self
        ready = DownloadJob(1, Pair("org/other"), JobState.READY)
        self.jobs = (ready, DownloadJob(2, Pair("org/tiny"), JobState.DOWNLOADING))
        self.listeners: list[Callable[[DownloadJob], None]] = []

    def subscribe(self, listen: Callable[[DownloadJob], None]) -> None:
        self.listeners.append(listen)

    def tell(self, place: int, state: JobState) -> None:
        for listen in self.listeners:
            listen(replace(self.jobs[place], state=state))


def test_the_end_of_a_download_is_told_once(qtbot: QtBot) -> None:
    downloads = Downloads()
    state = state_of(cast(Library, downloads))
    state.open()
    ended: list[tuple[str, JobState]] = []
    state.download_ended.connect(lambda job: ended.append((job.pair.model, job.state)))
    downloads.tell(0, JobState.READY)
    downloads.tell(1, JobState.VERIFYING)
    downloads.tell(1, JobState.FAILED)
    downloads.tell(1, JobState.DOWNLOADING)
    downloads.tell(1, JobState.READY)
    downloads.tell(1, JobState.READY)
    assert ended == [("org/tiny", JobState.FAILED), ("org/tiny", JobState.READY)]


def test_an_older_list_does_not_replace_a_newer_one(
    run: Run, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(library)
    state.open()
    list_installed, started, added = library.installed, asyncio.Event(), asyncio.Event()
    add_folder = library.add_folder

    async def slow_at_first() -> object:
        found = await list_installed()
        if not started.is_set():
            started.set()
            await added.wait()
            for _ in range(20):  # the newer list would be read meanwhile
                await asyncio.sleep(0.005)
        return found

    def add_and_tell(path: str) -> None:
        add_folder(path)
        loop.call_soon_threadsafe(added.set)

    monkeypatch.setattr(library, "installed", slow_at_first)
    monkeypatch.setattr(library, "add_folder", add_and_tell)
    loop: asyncio.AbstractEventLoop

    async def work() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        older = asyncio.ensure_future(state.refresh())
        await started.wait()
        await state.add(write_tiny(tmp_path / "tiny", SPEC))
        await older
        assert [one.path for one in state.installed] == [tmp_path / "tiny"]

    run(work)
