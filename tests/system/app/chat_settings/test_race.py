"""The race of a model's drafters, drawn: how fast each was, in what shape, and who is chosen."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QColor
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.chat_settings.panel import ChatSettingsPanel
from app.chat_settings.race_bars import race_bars
from app.chat_settings.race_list import RaceList
from app.theme.appearance import Appearance, ThemeChoice
from medusa_core.chats.presets import Presets
from medusa_core.messages import Calibrate, DrafterSpeed, ModelLoaded
from tests.support.window.engine_events import ALL_DRAFTERS, RULES, SOURCES
from tests.support.window.fakes import PLAN
from tests.support.window.fixtures import Open

WHY = (
    "Mostly trees of 5.4 draft tokens, 3.4 deep: a step takes 1.5 times as long as without, "
    "and brings 2.6 tokens."
)
SPEEDS = (
    DrafterSpeed("none", 1.0, 40.0, 1.0, 0.0),
    DrafterSpeed("eagle", 2.6, 80.0, 2.0, 0.2, "tree", 6.4, 3.4, 1.5, "A step of 6.4 rows."),
    DrafterSpeed("lookahead", 1.2, 10.0, 0.25, 0.2, "chain", 3.0, 2.0, 1.2),
    DrafterSpeed("early", 2.0, 60.0, 1.5, 0.2),  # no model offers it
)
NAMES = ("none", "eagle", "lookahead", "composite")
DRAFTERS = tuple(choice for choice in ALL_DRAFTERS if choice.name in NAMES)


@pytest.fixture
def panel(appearance: Appearance, qtbot: QtBot) -> ChatSettingsPanel:
    """The settings of a chat with a model whose drafters raced."""
    made = ChatSettingsPanel(appearance, Presets(None), lambda: 1)
    qtbot.addWidget(made)
    made.resize(320, 1200)
    made.offer(
        ModelLoaded(
            *("s", "l", "Fake", 6, 4, 999, 4096, "float32", "fp32", PLAN, "cpu"),
            *(DRAFTERS, RULES, SOURCES, 0.1),
            speeds=SPEEDS,
        )
    )
    made.show()
    return made


def row_of(race: RaceList, name: str) -> int:
    return next(row for row, bar in enumerate(race.bars) if bar.name == name)


def spoken(race: RaceList, row: int) -> str:
    """Return the accessible text of a row."""
    whole = QAccessible.queryAccessibleInterface(race)
    assert isinstance(whole, QAccessibleInterface)
    return whole.child(row).text(QAccessible.Text.Name)


def test_bars_show_the_compared_drafters_the_fastest_first() -> None:
    eagle, plain, lookahead = race_bars(DRAFTERS, SPEEDS)
    assert [eagle.name, plain.name, lookahead.name] == ["eagle", "none", "lookahead"]
    assert [bar.length for bar in (eagle, plain, lookahead)] == [1.0, 0.5, 0.125]
    assert {bar.plain for bar in (eagle, plain, lookahead)} == {0.5}
    assert [bar.pays for bar in (eagle, plain, lookahead)] == [True, False, False]
    assert eagle.words == f"EAGLE head: 80 tokens/s, 2.00 × plain, tree, 6.4 rows. {WHY}"
    assert (lookahead.speed, lookahead.shape) == ("10.0 tokens/s", "chain, 3.0 rows")
    assert (plain.shape, plain.gain) == ("the dashed line", "")
    assert race_bars(DRAFTERS, ()) == ()
    assert lookahead.why.startswith("Mostly chains of 2.0 draft tokens: a step takes 1.2 times")
    parked = SPEEDS[1]._replace(growth="none")
    assert race_bars(DRAFTERS, (parked,))[0].shape == "mostly no drafts"
    assert race_bars(DRAFTERS, (parked,))[0].why.startswith("Mostly no drafts")
    untimed = SPEEDS[1]._replace(step_x=0.0)
    assert race_bars(DRAFTERS, (untimed,))[0].why == "A step of 6.4 rows."


def test_a_clicked_bar_chooses_its_drafter(panel: ChatSettingsPanel) -> None:
    race = panel.race
    assert race.isVisible()
    for name in ("lookahead", "eagle"):
        place = race.visualItemRect(race.item(row_of(race, name))).center()
        QTest.mouseClick(race.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert panel.settings().drafter == name
        assert panel.drafter_box.currentData() == name
        assert [bar.name for bar in race.bars if race.is_chosen(bar)] == [name]
    assert WHY in panel.groups["Speed-up"].note


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Space])
def test_keys_move_along_the_bars_and_choose(panel: ChatSettingsPanel, key: Qt.Key) -> None:
    race = panel.race
    panel.choose_drafter("eagle")
    assert race.currentRow() == row_of(race, "eagle") == 0
    assert spoken(race, 0).endswith(f"{WHY} Chosen.")
    race.setFocus()
    for _ in range(2):
        QTest.keyClick(race, Qt.Key.Key_Down)
    assert panel.settings().drafter == "eagle", "walking chooses nothing"
    QTest.keyClick(race, key)
    assert panel.settings().drafter == "lookahead"
    assert not spoken(race, 0).endswith("Chosen.")
    assert spoken(race, 2).startswith("Lookahead: 10.0 tokens/s, 0.25 × plain, chain, 3.0 rows.")
    assert spoken(race, 2).endswith("Chosen.")


@pytest.mark.parametrize("choice", list(ThemeChoice)[:2])
def test_bars_are_as_long_as_drafters_are_fast(
    panel: ChatSettingsPanel, appearance: Appearance, choice: ThemeChoice
) -> None:
    appearance.use(choice)
    panel.restyle()
    race, theme = panel.race, appearance.theme
    picture = race.viewport().grab().toImage()
    lengths = []
    for row, bar in enumerate(race.bars):
        place = race.visualItemRect(race.item(row))
        colour = QColor(theme.agreed.line if bar.pays else theme.target_bar)
        lengths.append(
            max(
                sum(picture.pixelColor(QPoint(x, y)) == colour for x in range(picture.width()))
                for y in range(place.top(), place.bottom())
            )
        )
    assert lengths[1] == pytest.approx(lengths[0] / 2, abs=4)
    assert lengths[2] == pytest.approx(lengths[0] / 8, abs=4)
    assert lengths[0] > 200


def test_without_a_comparison_there_is_no_chart(panel: ChatSettingsPanel) -> None:
    panel.race.show_race(())
    assert panel.race.isHidden()
    assert panel.race.accessibleName()


def test_a_button_measures_again_and_a_line_says_what_is_missing(
    panel: ChatSettingsPanel, qtbot: QtBot
) -> None:
    assert panel.measure.lack_label.isHidden()
    with qtbot.waitSignal(panel.measure.requested):
        panel.measure.button.click()
    panel.measure.show_speeds(are_known=False)
    assert panel.measure.lack_label.isVisible()
    assert panel.measure.lack_label.text() == "Not measured fully."


def test_the_palette_and_the_button_measure_the_loaded_model_again(
    open_ready: Open, qtbot: QtBot
) -> None:
    window, engine = open_ready()
    window.commands.action("measure-again").trigger()
    qtbot.waitUntil(lambda: len(engine.of_kind(Calibrate)) == 2)
    window.page.settings_panel.measure.button.click()
    qtbot.waitUntil(lambda: len(engine.of_kind(Calibrate)) == 3)
    assert [command.is_anew for command in engine.of_kind(Calibrate)] == [False, True, True]
    qtbot.waitUntil(lambda: window.loaded_model.status.calibrated is not None)
