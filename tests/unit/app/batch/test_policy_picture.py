"""Where everything of a batch lies, and how fast each part is beside what was expected."""

from collections import Counter
from dataclasses import replace

import pytest
from PySide6.QtCore import QLocale
from PySide6.QtGui import QAccessible, QColor
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.batch.batch_view import BatchView
from app.batch.part_rates import PartRates
from app.batch.policy_picture import PolicyPicture
from app.batch.policy_words import _UNITS, rate_words, schedule_words
from app.batch.share_bar import ShareBar
from app.theme.appearance import Appearance, ThemeChoice
from app.theme.tiers import tier_colour
from app.widgets.accessible_roles import give_roles
from medusa_core.api import BatchProgress, BatchState
from medusa_core.loading.policy.forecast_vs_actual import UNITS
from medusa_core.messages import PARTS, BlockBytes, PartRate, Policy, Shares, Tier

GIB = 1 << 30
SIZES = BlockBytes(4 * GIB, 2 * GIB, 8 << 20)
POLICY = Policy(
    Shares(0.25, 0.25, 0.5), Shares(0.5, 0.0, 0.5), Shares(0.0, 1.0, 0.0), batch=8, num_batches=4
)
READ = PartRate("weights read", 1.3, 1.25, "GB/s", binds=True)
WAITED = PartRate("waited", 0.02, None, "s")


@pytest.fixture
def picture(appearance: Appearance, qtbot: QtBot) -> PolicyPicture:
    made = PolicyPicture(appearance)
    qtbot.addWidget(made)
    return made


@pytest.fixture
def rates(appearance: Appearance, qtbot: QtBot) -> PartRates:
    made = PartRates(appearance)
    qtbot.addWidget(made)
    return made


def columns_of(bar: QWidget) -> Counter[str]:
    """Pixels of a line through the middle, by colour."""
    image = bar.grab().toImage()
    row = image.height() // 2
    return Counter(image.pixelColor(x, row).name() for x in range(image.width()))


@pytest.mark.parametrize("choice", [ThemeChoice.LIGHT, ThemeChoice.DARK])
def test_each_bar_is_filled_by_the_policys_shares(
    picture: PolicyPicture, appearance: Appearance, choice: ThemeChoice
) -> None:
    picture.show_policy(POLICY, SIZES)
    picture.resize(600, 200)
    picture.show()
    appearance.use(choice)
    picture.restyle()
    weights, cache, states = picture.findChildren(ShareBar)
    for bar, shares in ((weights, POLICY.weights), (cache, POLICY.cache)):
        found, width = columns_of(bar), bar.width()
        for tier in Tier:
            colour = QColor(tier_colour(tier, appearance.theme)).name()
            assert found[colour] / width == pytest.approx(getattr(shares, tier.value), abs=0.02)
    assert columns_of(states)[QColor(tier_colour(Tier.MEMORY, appearance.theme)).name()] > 0


def test_the_picture_is_described_in_words(picture: PolicyPicture) -> None:
    give_roles()
    picture.show_policy(POLICY, SIZES)
    assert picture.words == (
        "Weights: 25% here, 1.00 GiB, 25% in the computer's memory, 1.00 GiB, 50% on the disk, "
        "2.00 GiB. Cache: 50% here, 1.00 GiB, 50% on the disk, 1.00 GiB. Activations: 100% in the "
        "computer's memory, 8 MiB. 32 conversations at once, in 4 batches of 8 one after the "
        "other. Attention is computed on the device; offloaded rows of the KV cache are prefetched."
    )
    heard = QAccessible.queryAccessibleInterface(picture)
    assert heard is not None
    assert heard.role() is QAccessible.Role.Chart
    assert heard.text(QAccessible.Text.Name) == "Where everything lies"
    assert heard.text(QAccessible.Text.Description) == picture.words
    picture.show_policy(POLICY, None)
    assert "GiB" not in picture.words


def test_the_block_says_where_attention_is_computed_and_how_the_cache_is_stored() -> None:
    text = "4 conversations at once. Attention is computed on the device."
    assert schedule_words(Policy(batch=4)) == text
    below = replace(POLICY, attention="memory", cache_format="q4", attended=64)
    assert schedule_words(below).endswith(
        "Attention is computed by the processor, beside the KV cache in memory. The KV cache has "
        "4 bits. Only the 64 rows with the largest attention weights are used."
    )


def test_a_component_shows_forecast_and_measured_rate_and_whether_it_is_the_bottleneck(
    rates: PartRates, appearance: Appearance
) -> None:
    rates.show_parts([READ, WAITED])
    rates.resize(600, 120)
    rates.show()
    texts = [label.text() for label in rates.findChildren(QLabel)]
    for words in ("Weights read", "1.30 GB/s", "1.25 GB/s", "binds", "Waited", "0.020 s", "–"):
        assert words in texts
    assert rates.words == (
        "Weights read: forecast 1.30 GB/s, actual 1.25 GB/s; it binds. "
        "Waited: forecast 0.020 s, actual –"
    )
    assert rates.accessibleDescription() == rates.words
    first, second = rates.findChildren(ShareBar)
    accent = QColor(appearance.theme.accent).name()
    assert columns_of(first)[accent] / first.width() == pytest.approx(1.25 / 1.3, abs=0.03)
    assert columns_of(second)[accent] == 0
    rates.show_parts([WAITED])
    assert "binds" not in rates.words
    assert [bar.isHidden() for bar in (first, second)] == [False, True]


def test_every_component_of_the_engine_has_a_label(rates: PartRates) -> None:
    rates.show_parts([PartRate(name, 1.0, 1.0, UNITS[name]) for name in PARTS])
    shown = {label.text() for label in rates.findChildren(QLabel)}
    assert shown >= {name.capitalize() for name in PARTS}
    assert {*UNITS.values()} - {*_UNITS} == {"GB/s"}, "which is said so everywhere"


def test_rates_have_three_digits_in_the_windows_language() -> None:
    shown = {0.0: "0", 0.0812: "0.081", 1.306: "1.31", 26.04: "26.0", 1306.0: "1,306"}
    assert {rate: rate_words(rate, "s") for rate in shown} == {
        rate: f"{text} s" for rate, text in shown.items()
    }
    QLocale.setDefault(QLocale("de"))
    try:
        assert rate_words(1.306, "GB/s") == "1,31 GB/s"
    finally:
        QLocale.setDefault(QLocale("en"))


def test_the_page_shows_picture_and_words_once_a_policy_is_known(
    appearance: Appearance, qtbot: QtBot
) -> None:
    view = BatchView(appearance)
    qtbot.addWidget(view)
    view.show()
    plain = BatchProgress("answering", 1, 0, 8, 5.1, 60.0, mean_tokens_per_s=9.8)
    view.show_state(BatchState("answering", plain))
    assert view.panel.picture.isHidden()
    assert view.panel.rates.isHidden()
    told = replace(plain, policy=POLICY, sizes=SIZES, forecast_tokens_per_s=10.5, parts=(READ,))
    view.show_state(BatchState("answering", told))
    assert view.panel.picture.isVisible()
    assert view.panel.rates.words.startswith(
        "Answers: forecast 10.5 tokens/s, actual 9.80 tokens/s."
    )
    assert "Weights read" in view.panel.rates.words
    view.show_state(BatchState("answering", plain))
    assert view.panel.picture.isHidden(), "another batch has none"


def test_with_little_room_words_are_scrolled_and_never_cut(
    appearance: Appearance, qtbot: QtBot
) -> None:
    view = BatchView(appearance)
    qtbot.addWidget(view)
    told = BatchProgress("answering", policy=POLICY, sizes=SIZES, parts=(READ,) * len(PARTS))
    view.show_state(BatchState("answering", told))
    view.show()
    for height, is_scrolled in ((900, False), (220, True)):
        view.resize(560, height)
        qtbot.waitUntil(lambda scrolled=is_scrolled: _can_scroll(view) is scrolled)
        for label in view.panel.findChildren(QLabel):
            assert label.height() >= label.heightForWidth(label.width()), label.text()


def _can_scroll(view: BatchView) -> bool:
    return view.panel.verticalScrollBar().maximum() > 0
