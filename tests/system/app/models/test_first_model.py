"""The model of the first start, offered where it isn't here: fetched, ended, failed, declined."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton

from app.models.first_model_card import FirstModelCard
from app.window.main_window import MainWindow
from medusa_core.errors import NetworkError
from medusa_core.hub import first_model
from medusa_core.system.installation import Installation
from medusa_core.system.resources import FIRST_MODEL_FILE
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import Run

Fetch = Callable[[Callable[[int], None], threading.Event], Path | None]
SIZE = 93_000_000


@pytest.fixture
def window(open_fake: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MainWindow:
    """A window of a package that pip has installed, with the demo model."""
    monkeypatch.setenv("MEDUSA_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(first_model, "installation", lambda: Installation.PIP)
    return open_fake()[0]


def fetch_by(monkeypatch: pytest.MonkeyPatch, fetch: Fetch) -> None:
    monkeypatch.setattr("medusa_core.hub.first_model.fetch_first_model", fetch)


def offered(window: MainWindow) -> FirstModelCard:
    window.first_model.offer_once()
    assert window.first_model.card is not None
    return window.first_model.card


def shown(card: FirstModelCard) -> list[QPushButton]:
    return [button for button in card.findChildren(QPushButton) if not button.isHidden()]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_the_first_model_is_downloaded_in_the_background_and_loaded(
    run: Run, window: MainWindow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = (tmp_path / "models").joinpath(*FIRST_MODEL_FILE)
    goes_on = threading.Event()

    def fetch(fetched: Callable[[int], None], stop: threading.Event) -> Path:
        fetched(SIZE // 2)
        goes_on.wait(30)
        path.parent.mkdir(parents=True)
        path.touch()
        return path

    fetch_by(monkeypatch, fetch)
    card = offered(window)
    assert "Apache-2.0" in card.label.text()
    assert "93 MB" in card.fetch_button.text()

    async def act() -> None:
        card.fetch_button.click()
        await until(lambda: card.bar.value() == 500)
        assert shown(card) == [card.stop_button]
        goes_on.set()
        await until(lambda: window.first_model.card is None)

    run(act)
    assert window.loaded_model.choice.model_dir == path


def test_during_an_answer_the_first_model_isnt_loaded_by_itself(
    run: Run, window: MainWindow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fetch_by(monkeypatch, lambda fetched, stop: tmp_path / "a.gguf")
    card = offered(window)
    other = replace(window.loaded_model.choice, name="Other", model_dir=tmp_path)
    monkeypatch.setattr(type(window.loaded_model), "choice", property(lambda _: other))

    async def act() -> None:
        card.fetch_button.click()
        await until(lambda: shown(card) == [card.load_button])

    run(act)


def test_a_download_can_be_cancelled_and_restarted(
    run: Run, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_by(monkeypatch, lambda fetched, stop: None if stop.wait(30) else Path())
    card = offered(window)

    async def act() -> None:
        card.fetch_button.click()
        await until(lambda: shown(card) == [card.stop_button])
        card.stop_button.click()
        await until(lambda: shown(card) == [card.fetch_button, card.decline_button])

    run(act)


def test_a_failed_download_is_reported_and_can_be_tried_again(
    run: Run, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fetched: Callable[[int], None], stop: threading.Event) -> Path | None:
        raise NetworkError("It could not be fetched.", "Check the connection.")

    fetch_by(monkeypatch, fail)
    card = offered(window)

    async def act() -> None:
        card.fetch_button.click()
        await until(lambda: "Check the connection." in card.label.text())

    run(act)
    assert shown(card) == [card.fetch_button, card.models_button, card.decline_button]
    opened: list[str] = []
    monkeypatch.setattr(window.pages, "open", opened.append)  # the page has tests of its own
    card.models_button.click()
    assert opened == ["models"]
    assert window.loaded_model.choice.is_demo  # the chat goes on with it


def test_declining_the_first_model_is_remembered_and_can_be_undone(window: MainWindow) -> None:
    offered(window).decline_button.click()
    assert window.first_model.card is None
    window.first_model.offer_once()
    assert window.first_model.card is None
    window.commands.action("first-model").trigger()
    assert window.first_model.card is not None
    window.settings.set(is_offline=True)
    window.first_model.card.fetch_button.click()
    assert "Offline mode" in window.first_model.card.label.text()


@pytest.mark.parametrize("way", [Installation.CHECKOUT, Installation.SYSTEM_PACKAGE])
def test_the_first_model_isnt_offered_if_an_installer_asked(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch, way: Installation
) -> None:
    monkeypatch.setattr(first_model, "installation", lambda: way)
    window.first_model.offer_once()
    assert window.first_model.card is None


def test_closing_the_window_ends_a_download(
    run: Run, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def fetch(fetched: Callable[[int], None], stop: threading.Event) -> Path | None:
        stop.wait(30)
        ended.set()
        return None

    fetch_by(monkeypatch, fetch)
    card = offered(window)

    async def act() -> None:
        card.fetch_button.click()
        await until(lambda: shown(card) == [card.stop_button])
        window.close()
        await until(ended.is_set)

    run(act)
