"""What holds for every panel: names, keys, focus, themes, hostile text, sleeping models."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QApplication,
    QComboBox,
    QGraphicsView,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QScrollBar,
    QTabBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.chat.messages.answer_message import AnswerMessage
from app.insight.dock_title import DockTitle
from app.insight.tree_panel import PLAN, STEP
from app.window.main_window import START_SIZE, MainWindow
from medusa_core.loading.state import Phase
from medusa_core.messages import LoadModel
from tests.support.window.driving import ask, wait_ready
from tests.support.window.fakes import Script
from tests.support.window.fixtures import Open
from tests.support.window.history_fixtures import OpenSaved, open_saved  # noqa: F401

CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QApplication,
    QComboBox,
    QGraphicsView,
    QLineEdit,
    QPlainTextEdit,
    QTabBar,
)


def controls_of(panel: QWidget) -> list[QWidget]:
    """Return the controls of a panel, without Qt's inner widgets."""
    found = [w for w in panel.findChildren(QWidget) if isinstance(w, CONTROLS) and w.isVisible()]
    inner = (QScrollBar, QHeaderView)
    inside = (QTabBar, QComboBox, QAbstractItemView)
    return [
        widget
        for widget in found
        if not isinstance(widget, inner) and not isinstance(widget.parentWidget(), inside)
    ]


def name_of(widget: QWidget) -> str:
    own = widget.text() if isinstance(widget, QAbstractButton) else ""
    return widget.accessibleName() or own


@pytest.mark.parametrize("opened", ["tree", "plan", "table", "steps", "equilibrium", "compare"])
def test_every_control_of_a_panel_has_a_name_and_the_tab_key_reaches_it(
    opened: str, qtbot: QtBot, answered: tuple[MainWindow, AnswerMessage]
) -> None:
    window, _ = answered
    insight = window.insight
    makers: dict[str, Callable[[], QWidget]] = {
        "tree": insight.open_tree,
        "plan": insight.open_tree,
        "table": insight.open_tree,
        "steps": insight.open_steps,
        "equilibrium": insight.open_equilibrium,
        "compare": insight.open_compare,
    }
    panel = makers[opened]()
    if insight.tree is not None:
        insight.tree.tabs.setCurrentIndex(PLAN if opened == "plan" else STEP)
        insight.tree.table_button.setChecked(opened == "table")
        insight.timeline.go(1)
    if insight.equilibrium is not None:
        insight.equilibrium.verify_conversation()
        qtbot.waitUntil(lambda: bool(insight.equilibrium.shown.cells))
    QApplication.processEvents()
    controls = controls_of(panel)
    # Drawings come one in each turn; until then they aren't painted.
    qtbot.waitUntil(lambda: all(widget.updatesEnabled() for widget in controls))
    assert len(controls) >= 5
    for widget in controls:
        assert name_of(widget), widget
    names = [name_of(widget) for widget in controls]
    assert len(set(names)) == len(names), names
    top = panel.window()
    reached: set[QWidget] = set()
    for _ in range(80):
        focused = top.focusWidget()
        assert focused is not None
        reached.add(focused)
        QTest.keyClick(focused, Qt.Key.Key_Tab)
    missed = [name_of(w) for w in controls if w.isEnabled() and w not in reached]
    assert missed == []
    unseen = []
    for widget in controls:
        if widget.isEnabled():
            for scroller in top.findChildren(QScrollArea):
                scroller.ensureWidgetVisible(widget)  # as the Tab key does
            top.setFocus()
            plain = top.grab().toImage()
            widget.setFocus()
            if top.grab().toImage() == plain:
                unseen.append(name_of(widget))
    assert unseen == [], "the focus is not to be seen"


def test_a_zoom_and_another_theme_reach_every_panel(
    answered: tuple[MainWindow, AnswerMessage],
) -> None:
    window, _ = answered
    insight = window.insight
    insight.open_steps()
    insight.open_equilibrium()
    insight.open_compare()
    tree = insight.open_tree()
    tree.tabs.setCurrentIndex(STEP)
    small = tree.view.picture_rect().width()
    for _ in range(2):
        window.commands.action("zoom-in").trigger()
    window.commands.action("theme").trigger()
    assert tree.view.picture_rect().width() > small
    window.commands.action("zoom-normal").trigger()


def test_hostile_tokens_are_no_markup_anywhere(qtbot: QtBot, open_ready: Open) -> None:
    hostile = "<img/src='file:///etc/passwd'> <b>bold</b> <a/href='http://x'>link</a>"
    window, _ = open_ready(Script(answer=f"One {hostile} two three four five six"))
    ask(qtbot, window, "Hello")
    panel = window.insight.open_tree()
    tips = []
    panel.tabs.setCurrentIndex(STEP)
    for index in range(window.insight.timeline.last + 1):
        window.insight.timeline.go(index)
        tips += [item.toolTip() for item in panel.view.scene().items()]
    assert any("&lt;img" in tip for tip in tips)
    table = window.insight.open_equilibrium()
    table.edit.setPlainText("x")
    table.verify_text()
    qtbot.waitUntil(lambda: bool(table.shown.cells))
    tips.append(table.table.item(1, 0).toolTip())
    assert not any("<img" in tip or "<b>" in tip or "<a" in tip for tip in tips)
    labels = [label for p in (panel, table) for label in p.findChildren(QLabel)]
    reported = [label for label in labels if "<" in label.text()]
    assert all(label.textFormat() is Qt.TextFormat.PlainText for label in reported)


def test_panels_reload_a_model_that_was_unloaded_when_idle(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    table = window.insight.open_equilibrium()
    table.edit.setPlainText("a bb")
    for wakes in (table.verify_text, lambda: start_compare(window)):
        window.loaded_model.sleep()
        qtbot.waitUntil(lambda: window.loaded_model.status.phase is Phase.ASLEEP)
        num_loads = len(engine.of_kind(LoadModel))
        wakes()
        assert len(engine.of_kind(LoadModel)) == num_loads + 1
        wait_ready(qtbot, window)
    assert len(table.shown.cells) == 2


def start_compare(window: MainWindow) -> None:
    dialog = window.insight.open_compare()
    dialog.edit.setText("Hello")
    assert dialog.start_button.isEnabled()
    dialog.start_button.click()


def test_a_panels_title_separates_it_from_the_window_and_closes_it(open_ready: Open) -> None:
    window, _ = open_ready()
    panel = window.insight.open_tree()
    title = window.findChild(DockTitle)
    assert title is not None
    assert min(title.close_button.width(), title.close_button.height()) >= 20
    title.float_button.click()
    assert panel.window() is not window
    assert title.float_button.accessibleName() == "Put it back"
    title.float_button.click()
    assert panel.window() is window
    title.close_button.click()
    assert not panel.isVisible()


def test_a_chat_whose_steps_are_not_kept_says_so(
    qtbot: QtBot,
    open_saved: OpenSaved,  # noqa: F811
) -> None:
    window, _ = open_saved()
    wait_ready(qtbot, window)
    ask(qtbot, window, "Hello")
    window, _ = open_saved()
    wait_ready(qtbot, window)
    insight = window.insight
    insight.open_tree()
    insight.open_steps()
    assert insight.tree is not None
    assert insight.steps is not None
    assert insight.tree.transport.text == "no steps yet"
    assert window.history is not None
    window.history.open_last()
    unkept = "Steps of this answer aren't kept"
    qtbot.waitUntil(lambda: insight.tree.transport.text == unkept)
    assert window.page.strip.mean_label.text() == unkept
    assert insight.steps._description().startswith(unkept)
    window.chat.new_chat()
    assert window.page.strip.mean_label.text() == "no steps yet"
    assert insight.tree.transport.text == "no steps yet"


def test_with_any_panel_open_messages_stay_readable_in_a_new_window(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, _ = open_ready()
    window.resize(START_SIZE)
    ask(qtbot, window, "Hello")
    messages, strip, insight = window.page.conversation, window.page.strip, window.insight
    assert not strip.is_short
    for open_panel in (insight.open_tree, insight.open_steps, insight.open_equilibrium):
        open_panel()
        qtbot.waitUntil(lambda: strip.height() < strip.sources_height)
        assert 360 <= messages.height() < 500
        assert strip.marks_box.isVisible()
    window.page.show_panel(True)
    qtbot.waitUntil(window.page.settings_panel.isVisible)
    assert messages.width() >= 420
    insight.close_all()
    qtbot.waitUntil(lambda: not strip.is_short)
    assert messages.height() >= 500
