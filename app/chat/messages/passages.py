"""Passages of documents: what was read for a prompt, and the dialog of one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt, QUrl
from PySide6.QtGui import QColor, QDesktopServices, QTextBlockFormat, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QLabel,
    QMessageBox,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from app.chat.messages.fold import Fold
from app.chat.messages.text_view import InertDocument, TextView, cut_for_view
from app.desktop.folders import show_in_files
from app.i18n.numbers import Number
from app.markdown.model import CITATION
from app.theme.appearance import Appearance
from app.widgets.closing import close_by_key
from app.widgets.qt_text import showable, with_visible_controls
from medusa_core.api import source_of
from medusa_core.messages import PassagePart

# Files that programs show and never run; others, such as scripts, are shown in their folder.
_OPENABLE = frozenset(
    (".pdf", ".docx", ".odt", ".md", ".txt", ".rst", ".csv", ".htm", ".html", ".epub", ".tex")
)


class PassageFold(Fold):
    """Line with the number of passages that were read; expands to a list of them.

    Attributes:
        passages: The passages.
    """

    def __init__(
        self,
        passages: Iterable[PassagePart],
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        self._document = InertDocument()
        view = TextView(self._document, QCoreApplication.translate("Passages", "What was read"))
        super().__init__(view, appearance, parent)
        self.passages: tuple[PassagePart, ...] = ()
        self.view.citation_pressed.connect(self._open_passage)
        self.show_passages(passages)
        self.restyle()

    def show_passages(self, passages: Iterable[PassagePart]) -> None:
        """Replace the passages."""
        self.passages = tuple(passages)
        num = len(self.passages)
        title = (
            self.tr("Read 1 passage of the documents")
            if num == 1
            else self.tr("Read {0} passages of the documents").format(f"{Number(num):,}")
        )
        self.show_title(title, self.tr("Show what the model read, where it is, and how it ranked"))
        self.setVisible(num > 0)
        self._write()

    def restyle(self) -> None:
        super().restyle()
        self._write()

    def _write(self) -> None:
        """Write a line for each passage: a link, and its ranks."""
        theme = self._appearance.theme
        link, plain, line = QTextCharFormat(), QTextCharFormat(), QTextBlockFormat()
        link.setForeground(QColor(theme.link))
        link.setAnchor(True)
        plain.setForeground(QColor(theme.muted))
        line.setTopMargin(self._appearance.scale.px(0.25))
        self._document.clear()
        cursor = QTextCursor(self._document)
        for index, passage in enumerate(self.passages):
            if index:
                cursor.insertBlock()
            cursor.setBlockFormat(line)
            link.setAnchorHref(f"{CITATION}{passage.number}")
            cursor.insertText(passage_name(passage), link)
            if ranks := rank_words(passage):
                cursor.insertText(f" — {ranks}", plain)

    def _open_passage(self, number: int) -> None:
        by_number = {one.number: one for one in self.passages}
        show_passage(self, by_number, number, self._appearance)


class PassageDialog(QDialog):
    """Dialog with the text of a passage.

    Attributes:
        view: The text.
        open_button: Opens the file, or its folder; None if it isn't known or has gone.
    """

    def __init__(self, passage: PassagePart, appearance: Appearance, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(passage_name(passage))
        self.resize(appearance.scale.px(44), appearance.scale.px(32))
        self._path = Path(passage.path) if passage.path else None
        path = with_visible_controls(passage.path)
        place = QLabel("\n".join(filter(None, (path, rank_words(passage)))))
        place.setTextFormat(Qt.TextFormat.PlainText)
        place.setWordWrap(True)
        place.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        place.setVisible(bool(place.text()))
        self.view = QPlainTextEdit(cut_for_view(showable(with_visible_controls(passage.text))))
        self.view.setReadOnly(True)
        self.view.setAccessibleName(passage_name(passage))
        self.view.setTabChangesFocus(True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        self.open_button = None
        if self._path is not None and self._path.is_file():
            words = self.tr("Open file") if self._opens_file else self.tr("Show folder")
            self.open_button = buttons.addButton(words, QDialogButtonBox.ButtonRole.ActionRole)
            self.open_button.clicked.connect(self._open_file)
        column = QVBoxLayout(self)
        column.addWidget(place)
        column.addWidget(self.view, 1)
        column.addWidget(buttons)
        close_by_key(self)

    @property
    def _opens_file(self) -> bool:
        return self._path is not None and self._path.suffix.lower() in _OPENABLE

    def _open_file(self) -> None:
        assert self._path is not None
        is_open = self._opens_file and QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._path)))
        if not is_open:
            show_in_files(self._path.parent)


def show_passage(
    parent: QWidget, passages: Mapping[int, PassagePart], number: int, appearance: Appearance
) -> None:
    """Open the dialog of the passage with a number, or say that there is none."""
    window = parent.window()  # not the message, in whose tab order its widgets would be
    if number in passages:
        PassageDialog(passages[number], appearance, window).open()
        return
    box = QMessageBox(window)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(QCoreApplication.translate("Passages", "No such passage"))
    box.setTextFormat(Qt.TextFormat.PlainText)
    words = QCoreApplication.translate("Passages", "No passage has the number {0}.")
    box.setText(words.format(Number(number)))
    box.setInformativeText(
        QCoreApplication.translate("Passages", "The model made it up: check what it says.")
    )
    box.open()


def passage_name(passage: PassagePart) -> str:
    """Return number, document and place of a passage in one line."""
    return with_visible_controls(f"[{passage.number}] {source_of(passage)}")


def rank_words(passage: PassagePart) -> str:
    """Return the ranks of a passage in the search; empty for a passage of a whole text."""
    words = QCoreApplication.translate("Passages", "rank {0} by words")
    meaning = QCoreApplication.translate("Passages", "rank {0} by meaning")
    score = QCoreApplication.translate("Passages", "score {0}")
    parts = []
    if passage.bm25_rank is not None:
        parts.append(words.format(Number(passage.bm25_rank)))
    if passage.vector_rank is not None:
        parts.append(meaning.format(Number(passage.vector_rank)))
    if len(parts) > 1:  # of one ranking, the score only repeats the rank
        parts.append(score.format(f"{Number(passage.score):.4f}"))
    return ", ".join(parts)
