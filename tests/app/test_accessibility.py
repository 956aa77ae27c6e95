"""Whoever can't see the window hears of everything in it, and reaches it by keys."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleInterface
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QTableView,
    QTabWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.chat.messages.announcer import Announcer
from app.chat.messages.text_view import TextView
from app.chat.strip.strip_painting import HeadBars, StepBars
from app.help.about import AboutDialog
from app.help.diagnostics import DiagnosticsDialog
from app.help.welcome_dialog import WelcomeDialog
from app.insight.plots import Plot
from app.insight.tree_legend import TreeLegend
from app.insight.tree_view import TreeView
from app.models.library_dialog import LibraryDialog
from app.models.memory_bar import MemoryBar
from app.settings.storage_page import StoragePage
from app.theme.appearance import Appearance
from app.widgets.accessible_roles import give_roles
from medusa_core.api import HubSettings, Library
from tests.app.conftest import Open
from tests.app.driving import ask, wait_ready
from tests.app.fakes import Script
from tests.app.library.conftest import Run, run
from tests.app.library.managing import settle

__all__ = ["run"]


@pytest.fixture(autouse=True)
def roles(qapp: QApplication) -> None:
    """As the application starts."""
    give_roles()


def spoken(widget: QWidget) -> str:
    """What a screen reader calls a widget: a box of choices by its label alone."""
    interface = QAccessible.queryAccessibleInterface(widget)
    assert isinstance(interface, QAccessibleInterface)
    if isinstance(widget, QComboBox):
        labels = interface.relations(QAccessible.RelationFlag.Label)
        return " ".join(label.text(QAccessible.Text.Name) for label, _ in labels)
    return interface.text(QAccessible.Text.Name) or widget.accessibleName()


def focusable(root: QWidget) -> Iterator[QWidget]:
    """All widgets that keys can reach, shown or not, but the inner ones of others."""
    for widget in (root, *root.findChildren(QWidget)):
        parent = widget.parentWidget()
        is_inner = widget.objectName().startswith("qt_") or isinstance(widget, QTabWidget)
        is_inner |= isinstance(parent, QAbstractScrollArea)
        is_inner |= parent is not None and parent.inherits("QComboBoxPrivateContainer")
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and not is_inner:
            yield widget


CODE = re.compile(r"\bQ[A-Z]\w+|\b[a-z]+[A-Z]\w*|\w_\w|\.py\b")
MARKUP = re.compile(r"</?(qt|span|b|br|p|a|html)\b[^>]*>")
# Their names are what they are about, such as a file of the user's.
PICTURES = (StepBars, HeadBars, Plot, MemoryBar, TreeLegend, TreeView)


def faults(root: QWidget) -> list[str]:
    """What is wrong with a window for those who can't see it."""
    found = []
    for widget in focusable(root):
        where = f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}"
        name = spoken(widget)
        if not any(map(str.isalnum, name)):
            found.append(f"no name: {where}, {name!r}")
        if not isinstance(widget, QLabel) and CODE.search(name):
            found.append(f"a name out of the code: {where}, {name!r}")
    for widget in (root, *root.findChildren(QWidget)):
        where = f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}"
        interface = QAccessible.queryAccessibleInterface(widget)
        assert isinstance(interface, QAccessibleInterface)
        said = interface.text(QAccessible.Text.Description)
        if MARKUP.search(said):
            found.append(f"markup is read: {where}, {said[:60]!r}")
        if isinstance(widget, PICTURES) and interface.role() in NO_ROLES:
            found.append(f"no role: {where}")
        if isinstance(widget, QLabel) and not widget.isHidden() and is_unread(widget, interface):
            found.append(f"its text isn't read: {where}, {widget.text()!r}")
        if isinstance(widget, QTableView) and not all(heads := headers(widget)):
            found.append(f"a column without a header: {where}, {heads}")
    return found


NO_ROLES = (QAccessible.Role.Client, QAccessible.Role.NoRole)


def is_unread(label: QLabel, interface: QAccessibleInterface) -> bool:
    """Whether a label's accessible name takes the place of its text."""
    if not any(map(str.isalnum, label.text())) or "<" in label.text():
        return False
    said = interface.text(QAccessible.Text.Name).casefold()
    return label.text().replace("&&", "&").strip("· ").casefold() not in said


def headers(table: QTableView) -> list[str]:
    model, across = table.model(), Qt.Orientation.Horizontal
    return [str(model.headerData(n, across) or "") for n in range(model.columnCount())]


def test_everything_in_the_window_has_a_name(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    ask(qtbot, window, "Hello")
    window.insight.open_tree()
    window.insight.open_steps()
    window.insight.open_equilibrium()
    compare = window.insight.open_compare()
    assert faults(window) == []
    assert faults(compare) == []


def test_everything_in_the_dialogs_has_a_name(
    qtbot: QtBot, open_fake: Open, run: Run, tmp_path: Path
) -> None:
    library = Library(
        tmp_path / "d.db",
        tmp_path / "f.json",
        HubSettings(cache_dir=tmp_path / "hub", is_offline=True),
    )
    window, _ = open_fake(open_library=lambda: library)
    wait_ready(qtbot, window)

    async def work() -> None:
        window.dialogs.show_models()
        window.dialogs.show_about()
        window.dialogs.show_settings()
        window.dialogs.show_palette()
        window.dialogs.show_welcome()
        window.dialogs.show_diagnostics()
        assert window.dialogs.models is not None
        await settle(window.dialogs.models)
        diagnostics = window.dialogs.diagnostics
        assert diagnostics is not None
        assert diagnostics._work is not None
        await diagnostics._work
        (storage,) = window.findChildren(StoragePage)
        assert storage._work is not None
        await storage._work
        await library.downloads.close()

    run(work)
    opened = (AboutDialog, DiagnosticsDialog, LibraryDialog, WelcomeDialog)
    dialogs = [dialog for kind in opened for dialog in window.findChildren(kind)]
    assert len(dialogs) == 4
    assert window.dialogs.settings is not None
    for dialog in (*dialogs, window.dialogs.settings, window.dialogs.palette):
        assert faults(dialog) == [], type(dialog).__name__


def test_tab_goes_from_the_composer_through_what_is_seen_and_comes_back(
    qtbot: QtBot, open_fake: Open
) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
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


def shows_text(message: QWidget) -> bool:
    return any(view.isVisible() for view in message.findChildren(TextView))


def test_tab_goes_from_message_to_message_and_shows_each(qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake(Script(answer="One two three.\n\n" * 60))
    wait_ready(qtbot, window)
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
    qtbot: QtBot, appearance: Appearance, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[str] = []

    def hear(event: QAccessibleAnnouncementEvent) -> None:
        received.append(event.message())

    monkeypatch.setattr(QAccessible, "updateAccessibility", hear)
    monkeypatch.setattr(QAccessible, "isActive", lambda: True)
    speaker = QLineEdit()
    qtbot.addWidget(speaker)
    announcer = Announcer(speaker)
    for piece in ("One", " two. Thr", "ee four", "? Fi", "ve"):
        announcer.feed(piece)
    announcer.finish()
    assert received == ["One two.", "Three four?", "Five"]
