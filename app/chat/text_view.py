"""Read-only rich text that is as high as its text and never fetches anything."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QObject, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QFont, QTextDocument, QTextOption, QWheelEvent
from PySide6.QtWidgets import QFrame, QMessageBox, QSizePolicy, QTextBrowser, QWidget

OPENABLE_SCHEMES = ("http", "https")


class InertDocument(QTextDocument):
    """A document that loads no picture, style sheet or other document, from anywhere."""

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Give nothing, whatever is asked for."""
        return None


class TextView(QTextBrowser):
    """Shows a document at its full height; links ask before they open.

    Args:
        document: What to show.
        name: Accessible name.
    """

    def __init__(self, document: QTextDocument, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        document.setParent(self)
        document.setDocumentMargin(0)
        self.setDocument(document)
        self.setAccessibleName(name)
        self.setOpenLinks(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        document.documentLayout().documentSizeChanged.connect(self._fit)
        self.anchorClicked.connect(self._ask_to_open)
        self._fit()

    def set_font(self, font: QFont) -> None:
        """Use this font where the document names none."""
        if self.document().defaultFont() != font:
            self.document().setDefaultFont(font)

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Give nothing: answers may name pictures, on the web or on this disk."""
        return None

    def changeEvent(self, event: QEvent) -> None:
        # Who fills the document sets its fonts. Qt would lay out every answer again, twice, each
        # time the style sheet changes.
        if event.type() != QEvent.Type.FontChange:
            super().changeEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # The conversation scrolls, not the message.
        event.ignore()

    def _fit(self) -> None:
        height = math.ceil(self.document().size().height())
        if height != self.height():
            self.setFixedHeight(max(1, height))

    def _ask_to_open(self, url: QUrl) -> None:
        if url.scheme().lower() not in OPENABLE_SCHEMES:
            return
        box = link_question(self, url)
        box.finished.connect(lambda _result: _open_if_agreed(box, url))
        box.open()


def link_question(parent: QWidget, url: QUrl) -> QMessageBox:
    """The question whether to open a link, which shows where it really leads."""
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle("Open this link?")
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText("Open this address in your browser?")
    box.setInformativeText(url.toString(QUrl.ComponentFormattingOption.FullyEncoded))
    box.setStandardButtons(QMessageBox.StandardButton.Open | QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(QMessageBox.StandardButton.Cancel)
    return box


def _open_if_agreed(box: QMessageBox, url: QUrl) -> None:
    if box.result() == QMessageBox.StandardButton.Open:
        QDesktopServices.openUrl(url)


def plain_document(text: str, parent: QObject | None = None) -> QTextDocument:
    """A document of plain text: nothing in it is markup."""
    document = InertDocument(parent)
    document.setPlainText(text)
    return document
