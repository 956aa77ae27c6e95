"""Whoever can't see the window hears of everything in it, and reaches it by keys."""

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QAccessibleEvent,
    QImage,
)
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QTableWidget,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.chat.messages.announcer import Announcer
from app.chat.messages.text_view import TextView
from app.help.whats_new import WhatsNewDialog
from app.models.first_model_card import FirstModelCard
from app.settings.change_words import SettingChange
from app.settings.dialog import SettingsDialog
from app.settings.exchange import SettingsImport
from app.settings.import_dialog import ImportSettingsDialog
from app.settings.storage_page import StoragePage
from app.theme.appearance import Appearance
from app.widgets.accessible_roles import give_roles
from app.widgets.live_label import LiveLabel
from app.widgets.naming import name_box
from app.window.commands.palette import Palette
from tests.support.window.accessibility import faults, focusable, spoken
from tests.support.window.driving import ask
from tests.support.window.fakes import Script
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import Run, run

__all__ = ["run"]


@pytest.fixture(autouse=True)
def roles(qapp: QApplication) -> None:
    """Install the accessible roles as the application does at start."""
    give_roles()


def test_everything_in_the_window_has_an_accessible_name(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    ask(qtbot, window, "Hello")
    window.insight.open_tree()
    window.insight.open_steps()
    window.insight.open_equilibrium()
    compare = window.insight.open_compare()
    assert faults(window) == []
    assert faults(compare) == []


def test_temporary_widgets_have_accessible_names(qtbot: QtBot, appearance: Appearance) -> None:
    planned = SettingsImport(
        {}, (), None, (SettingChange("Theme", "Light", "Dark"),), ("Not this.",)
    )
    card = FirstModelCard(90 << 20, appearance)
    for widget in (ImportSettingsDialog("mine.json", planned, appearance), card):
        qtbot.addWidget(widget)
        assert faults(widget) == [], type(widget).__name__
    card.show_progress(1 << 20)
    assert faults(card) == []


def test_an_inaccessible_widget_is_detected(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    box, named = QComboBox(), QComboBox()
    box.addItem("what is chosen")
    named.addItem("what is chosen")
    box.setAccessibleName("On Linux nobody hears this")
    name_box(named, "Colours & sizes")
    button, close = QPushButton("OK"), QPushButton("×")
    button.setToolTip("<qt>What it does</qt>")
    line, label = QLineEdit(), QLabel("12 tokens/s")
    line.setAccessibleName("portEdit")
    label.setAccessibleName("Speed")
    for widget in (box, named, button, close, line, label, QTableWidget(1, 1)):
        column.addWidget(widget)
    laws = [fault.partition(":")[0] for fault in faults(window)]
    assert sorted(laws) == sorted(
        (
            *("no name", "no name", "no name"),  # the box, the cross, the table
            *("a name out of the code", "markup is read", "its text isn't read"),
        )
    )
    assert spoken(named) == "Colours & sizes"


def test_tab_cycles_from_the_composer_through_all_visible_widgets(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, _ = open_ready()
    start = window.page.composer.edit
    start.setFocus()
    qtbot.waitUntil(start.hasFocus)
    seen: list[QWidget] = []
    for _ in range(60):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        now = QApplication.focusWidget()
        if now is start:
            break
        seen.append(now)
    assert QApplication.focusWidget() is start
    assert len(seen) == len(set(seen)) > 3
    assert all(widget.isVisible() and spoken(widget) for widget in seen)


def picture_around(widget: QWidget) -> QImage:
    QApplication.processEvents()
    window = widget.window()
    place = QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())
    return window.grab(place.adjusted(-3, -3, 3, 3)).toImage()


def unseen_focus(root: QWidget, elsewhere: QWidget) -> list[str]:
    """Return widgets that look equal with and without keyboard focus."""
    found = []
    for widget in focusable(root):
        is_shown = widget.isVisible() and not widget.visibleRegion().isEmpty()
        if widget is elsewhere or not is_shown or not widget.isEnabled():
            continue
        widget.setFocus(Qt.FocusReason.TabFocusReason)
        elsewhere.setFocus(Qt.FocusReason.TabFocusReason)
        before = picture_around(widget)
        widget.setFocus(Qt.FocusReason.TabFocusReason)
        if widget.hasFocus() and picture_around(widget) == before:
            found.append(f"{type(widget).__name__} {spoken(widget)}")
    return found


def test_the_focused_widget_is_visibly_focused(qtbot: QtBot, open_ready: Open, run: Run) -> None:
    window, _ = open_ready()
    ask(qtbot, window, "Hello")
    window.insight.open_tree()

    async def work() -> None:
        window.pages.open("settings")
        (storage,) = window.findChildren(StoragePage)

        await storage.tasks.wait()

    run(work)
    window.pages.open("whats-new")
    settings = window.pages.find(SettingsDialog)
    assert settings is not None
    (news,) = window.findChildren(WhatsNewDialog)
    window.activateWindow()
    assert unseen_focus(window, window.page.composer.edit) == []
    news.activateWindow()
    assert unseen_focus(news, news.findChildren(QPushButton)[0]) == []
    settings.activateWindow()
    for page in range(settings.pages.count()):
        settings.names.setCurrentRow(page)
        assert unseen_focus(settings, settings.names) == [], page


def shows_text(message: QWidget) -> bool:
    return any(view.isVisible() for view in message.findChildren(TextView))


def test_tab_goes_from_message_to_message_and_shows_each(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready(Script(answer="One two three.\n\n" * 60))
    for word in ("first", "second", "third"):
        ask(qtbot, window, word)
    view = window.page.conversation
    bar = view.verticalScrollBar()
    for message in view.messages:  # what was never near the view has nothing to come to
        view.ensureWidgetVisible(message)
        qtbot.waitUntil(lambda one=message: shows_text(one))
    window.page.composer.edit.setFocus()
    visited = []
    for _ in range(60):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        now = QApplication.focusWidget()
        if now is window.page.composer.edit:
            break
        if view.isAncestorOf(now):
            # What was just laid out moves once more before it stands still.
            qtbot.waitUntil(lambda now=now: not now.visibleRegion().isEmpty(), timeout=1000)
            visited += [n for n, one in enumerate(view.messages) if one.isAncestorOf(now)]
    assert list(dict.fromkeys(visited)) == list(range(6)), "in the order of the conversation"
    assert visited == sorted(visited)
    # What is clicked is seen already: the page doesn't move under the mouse.
    window.page.composer.edit.setFocus()
    bar.setValue(bar.maximum() // 2)
    half = bar.value()
    seen = next(v for v in view.findChildren(TextView) if not v.visibleRegion().isEmpty())
    seen.setFocus()
    assert bar.value() == half


def test_an_answer_is_announced_sentence_by_sentence(
    qtbot: QtBot, appearance: Appearance, announced: list[str]
) -> None:
    speaker = QLineEdit()
    qtbot.addWidget(speaker)
    announcer = Announcer(speaker)
    for piece in ("One", " two. Thr", "ee four", "? Fi", "ve"):
        announcer.feed(piece)
    announcer.finish()
    assert announced == ["One two.", "Three four?", "Five"]


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return announced texts without other events of the window."""
    heard: list[str] = []

    def hear(event: QAccessibleEvent) -> None:
        if isinstance(event, QAccessibleAnnouncementEvent):
            heard.append(event.message())

    monkeypatch.setattr(QAccessible, "updateAccessibility", hear)
    monkeypatch.setattr(QAccessible, "isActive", lambda: True)
    return heard


def test_markdown_is_announced_as_shown_and_code_as_written(
    qtbot: QtBot, appearance: Appearance, announced: list[str]
) -> None:
    speaker = QLineEdit()
    qtbot.addWidget(speaker)
    announcer = Announcer(speaker)
    announcer.feed('# A **bold** word\n\n---\n"So it is." Next.\n```python\n__init__ *= 2\n```\n')
    with announcer.quiet():
        announcer.feed("It was there before.\n")
        announcer.finish("It ended.")
    announcer.finish("You stopped the answer.")
    assert announced == [
        *("A bold word", '"So it is."', "Next.", "__init__ *= 2", "You stopped the answer."),
    ]


def test_a_stored_answer_is_not_read_aloud_when_it_is_opened(
    qtbot: QtBot, open_ready: Open, announced: list[str]
) -> None:
    window, _ = open_ready()
    ask(qtbot, window, "Hello")
    assert announced[-2:] == ["One two three.", "Four five six seven eight nine ten."]
    spoken_before, said = window.chat.conversation, len(announced)
    window.chat.new_chat()
    window.chat.open(spoken_before)
    qtbot.waitUntil(lambda: shows_text(window.page.conversation.messages[-1]))
    assert announced[said:] == []


def test_moving_between_steps_announces_which_drafts_were_accepted(
    qtbot: QtBot, open_ready: Open, announced: list[str]
) -> None:
    window, _ = open_ready()
    ask(qtbot, window, "Hello")
    tree = window.insight.open_tree()
    assert tree.isAncestorOf(QApplication.focusWidget()), "opened, a panel has the keyboard"
    tree.transport.slider.setFocus()
    qtbot.waitUntil(tree.transport.slider.hasFocus)
    window.insight.timeline.go(0)
    announced.clear()
    QTest.keyClick(tree.transport.slider, Qt.Key.Key_Right)
    (said,) = announced
    assert said.startswith("step 1 of 4: 3 tokens (2 accepted + 1 of the model's own). ")
    assert said.endswith("2 of 3 draft tokens accepted: two, three.; then the model's own: Four")
    tree.view.setFocus()
    qtbot.waitUntil(tree.view.hasFocus)
    QTest.keyClick(tree.view, Qt.Key.Key_Right)
    QTest.keyClick(tree.view, Qt.Key.Key_Right)
    assert announced[-1].startswith("two: accepted, from head 1")
    window.page.composer.edit.setFocus()
    announced.clear()
    window.insight.timeline.go(3)
    assert announced == [], "elsewhere nobody waits for it"


def test_a_note_is_announced_while_its_parent_is_open(qtbot: QtBot, announced: list[str]) -> None:
    panel = QWidget()
    qtbot.addWidget(panel)
    note = LiveLabel()
    note.setParent(panel)
    note.setText("Nobody is here yet.")
    note.hide()
    panel.show()
    note.setText("Nothing was found.")
    note.setText("Nothing was found.")
    panel.hide()
    note.setText("Nobody is here any more.")
    assert announced == ["Nothing was found."]


def test_the_palette_says_what_enter_would_do(open_ready: Open, announced: list[str]) -> None:
    window, _ = open_ready()
    window.pages.open("palette")
    announced.clear()
    QTest.keyClicks(window.pages.find(Palette).edit, "zzz")
    assert announced[-1] == "No match."
    window.pages.find(Palette).edit.clear()
    QTest.keyClicks(window.pages.find(Palette).edit, "larg")
    assert announced[-1].startswith("Larger, ")
    assert announced[-1].endswith(" 1 of 1")
    window.pages.find(Palette).hide()
