"""A good model is proposed to who chats with a very small one, and fetched beside the chat."""

from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton

from app.models import suggestion
from app.models.proposal_card import ProposalCard, proposal_words
from app.models.suggestion import proposed
from app.window import proposal
from app.window.main_window import MainWindow
from medusa_core.api import Budget, HubSettings, Library, PairOffer
from medusa_core.hub.job import Pair
from medusa_core.models.config import parse_config
from medusa_core.models.quant.format import Hardware
from medusa_core.system.files.json_file import read_json
from tests.support.hub.fixtures import LoopbackHub
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import Run
from tests.support.window.managing import until

GIB = 1 << 30


@pytest.fixture
def offer(published: LoopbackHub) -> PairOffer:
    config = parse_config(read_json(published.root / "org" / "tiny-chat" / "config.json"), {})
    return PairOffer("Tiny Chat", Pair("org/tiny-chat"), download_bytes=10**6, config=config)


@pytest.fixture
def window(
    open_ready: Open,
    library: Library,
    offer: PairOffer,
    monkeypatch: pytest.MonkeyPatch,
) -> MainWindow:
    monkeypatch.setattr(type(library), "catalog", lambda _: (offer,))
    monkeypatch.setattr(suggestion, "expected_speed", lambda *_: 12.0)
    opened, _ = open_ready(open_library=lambda: library)
    return opened


def card_of(window: MainWindow) -> ProposalCard:
    assert window.proposal.card is not None
    return window.proposal.card


def shown(card: ProposalCard) -> list[QPushButton]:
    return [button for button in card.findChildren(QPushButton) if not button.isHidden()]


def test_a_proposed_model_is_downloaded_beside_the_chat_and_loaded_by_a_click(
    run: Run, window: MainWindow
) -> None:
    async def act() -> None:
        window.proposal.watch()
        await until(lambda: window.proposal.card is not None)
        card = card_of(window)
        await until(lambda: "12 tokens/s" in card.label.text())
        assert card.parentWidget() is window.page.empty
        assert "Tiny Chat · 1 MB to download (0 s to 1 s)" in card.label.text()
        card.download_button.click()
        assert window.page.isAncestorOf(card)
        assert not window.page.empty.isAncestorOf(card), "it stays when a chat begins"
        await until(lambda: shown(card) == [card.load_button, card.close_button])
        assert card.label.text() == "Tiny Chat is here."
        assert window.loaded_model.choice.is_demo
        card.load_button.click()
        await until(lambda: not window.loaded_model.choice.is_demo)

    run(act)
    assert window.loaded_model.choice.name == "tiny-chat"
    assert window.proposal.card is None


def test_a_failed_download_says_why_and_can_be_tried_again(
    run: Run, window: MainWindow, published: LoopbackHub
) -> None:
    weights = published.root / "org" / "tiny-chat" / "model.safetensors"
    away = weights.rename(weights.with_suffix(".away"))

    async def act() -> None:
        window.proposal.watch()
        await until(lambda: window.proposal.card is not None)
        card = card_of(window)
        card.download_button.click()
        # The buttons are the same before and after the failed download; only the text tells.
        await until(lambda: card.download_button.text() == "Try again")
        assert shown(card) == [card.download_button, card.close_button]
        away.rename(weights)
        card.download_button.click()
        await until(lambda: shown(card) == [card.load_button, card.close_button])

    run(act)


def test_offline_nothing_is_proposed_and_the_card_says_so(run: Run, window: MainWindow) -> None:
    window.settings.set(is_offline=True)

    async def act() -> None:
        await window.proposal.look()
        card = card_of(window)
        assert "Offline mode is on" in card.label.text()
        assert shown(card) == []

    run(act)


def test_nothing_is_proposed_beside_a_larger_model(
    run: Run, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposal, "_LARGE_BYTES", 1)

    async def act() -> None:
        library = window.models.open()
        assert library is not None
        job = library.downloads.add(Pair("org/tiny-chat"))
        await library.downloads.wait(job.id)
        await window.proposal.look()

    run(act)
    assert window.proposal.card is None


@pytest.mark.parametrize(("memory", "least", "most"), [(4, 0.7, 4), (8, 2, 4), (64, 2, 4)])
def test_without_a_card_a_fast_model_is_proposed(
    tmp_path: Path, memory: int, least: float, most: float
) -> None:
    settings = HubSettings(cache_dir=tmp_path / "hub", is_offline=True)
    catalog = Library(tmp_path / "a.db", tmp_path / "b.json", settings).catalog()
    budget = Budget("RAM", Hardware("cpu"), memory * GIB, memory * GIB // 8, 0, is_live=True)
    offer = proposed(catalog, budget)
    assert offer is not None
    assert least * 1e9 < offer.download_bytes < most * 1e9
    assert not offer.is_earlier
    assert not offer.is_gated
    words = proposal_words(offer, 7.25, 10e6)
    assert words.startswith(f"{offer.title} · ")
    assert "(about " in words
    assert "about 7.2 tokens/s (an estimate)" in words
