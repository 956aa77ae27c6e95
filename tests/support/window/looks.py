"""What tests see in the panels."""

from pathlib import Path

from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QTextCursor

from app.chat.messages.answer_message import AnswerMessage
from app.insight.track import Track
from app.insight.tree_panel import STEP, TreePanel
from app.window.main_window import MainWindow


def track_of(window: MainWindow) -> Track:
    """The answer that the panels show."""
    track = window.insight.timeline.track
    assert track is not None
    return track


def open_step(window: MainWindow, index: int) -> TreePanel:
    """The tree of a step of the answer that is shown."""
    panel = window.insight.open_tree()
    panel.tabs.setCurrentIndex(STEP)
    window.insight.timeline.go(index)
    return panel


def shown(panel: TreePanel) -> list[str]:
    """The nodes that are drawn."""
    return [node.text for node in panel.view.layout_shown.nodes]


def framed(answer: AnswerMessage) -> list[str]:
    """The parts of the answer with a frame."""
    cursor, texts = answer.view.textCursor(), []
    for start, end in answer.view.framed:
        cursor.setPosition(start)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        texts.append(cursor.selectedText())
    return texts


def centre_of(answer: AnswerMessage, text: str) -> QPointF:
    """The middle of a word in the answer."""
    cursor = answer.view.document().find(text)
    start, end = answer.view.textCursor(), answer.view.textCursor()
    start.setPosition(cursor.selectionStart())
    end.setPosition(cursor.selectionEnd())
    left, right = answer.view.cursorRect(start), answer.view.cursorRect(end)
    return QPointF((left.left() + right.left()) / 2, left.center().y())


def dropped(*paths: str | Path) -> QDropEvent:
    """These files, as they are dropped onto a window."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    event = QDropEvent(
        QPointF(5, 5),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    event.keeps = mime  # type: ignore[attr-defined]  # Qt holds no reference
    return event
