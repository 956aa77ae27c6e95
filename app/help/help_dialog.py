"""Dialog that shows the documents of `docs/`."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QImage, QTextDocument
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from app.theme.appearance import Appearance
from app.widgets.closing import close_by_key
from medusa_core.api import docs_dir

# For users, in the order in which they are read; docs/mkdocs.yml lists the same.
PAGES = (
    *("start", "hardware", "chat", "documents", "drafts", "tools", "terminal", "server", "remote"),
    *("larger", "privacy", "troubleshooting", "changelog", "performance", "models", "compared"),
)
_PAGE = Qt.ItemDataRole.UserRole
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


class HelpDialog(QDialog):
    """Dialog with a list of pages and the text of the selected page.

    Attributes:
        pages: List of the pages' titles.
        text: View of the selected page.
    """

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("help")
        self.pages = QListWidget()
        self.pages.setAccessibleName(self.tr("Pages"))
        self.pages.setWordWrap(True)  # some titles are as long as a sentence
        self.pages.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for name in PAGES:
            item = QListWidgetItem(_title_of(docs_dir() / f"{name}.md"))
            item.setData(_PAGE, name)
            self.pages.addItem(item)
        self.text = _PageView(docs_dir())
        self.text.setAccessibleName(self.tr("Page"))
        self.text.anchorClicked.connect(self._follow)
        self.pages.currentItemChanged.connect(self._show_page)
        parts = QSplitter()
        parts.addWidget(self.pages)
        parts.addWidget(self.text)
        parts.setStretchFactor(1, 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.button(QDialogButtonBox.StandardButton.Close).setText(self.tr("Close"))
        buttons.rejected.connect(self.reject)
        scale = appearance.scale
        column = QVBoxLayout(self)
        column.setContentsMargins(scale.px(1.0), scale.px(1.0), scale.px(1.0), scale.px(1.0))
        column.addWidget(parts, 1)
        column.addWidget(buttons)
        close_by_key(self)
        self.resize(scale.px(64), scale.px(44))
        parts.setSizes([scale.px(16), scale.px(48)])
        appearance.changed.connect(self._restyle)
        self.open_page(PAGES[0])

    def open_page(self, name: str, heading: str = "") -> None:
        """Show a page.

        Args:
            name: File name without its suffix.
            heading: Anchor of the heading to show at the top; empty for the page's beginning.
        """
        self.pages.setCurrentRow(PAGES.index(name))
        if heading:
            self.text.show_heading(heading)

    def _show_page(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            path = docs_dir() / f"{item.data(_PAGE)}.md"
            self.text.setMarkdown(path.read_text(encoding="utf-8"))

    def _restyle(self) -> None:
        """Set the page again, because link colours are fixed when it is parsed."""
        bar = self.text.verticalScrollBar()
        place = bar.value()
        self._show_page(self.pages.currentItem())
        self.text.document().pageCount()  # lays all of it out; else the range of the bar shrinks
        bar.setValue(place)

    def _follow(self, url: QUrl) -> None:
        """Follow a link: pages of the list open here, other addresses in the browser."""
        name = url.path().removesuffix(".md")
        if not url.scheme() and (not name or name in PAGES):
            self.open_page(name or self.pages.currentItem().data(_PAGE), url.fragment())
        elif url.scheme() in ("http", "https"):
            QDesktopServices.openUrl(url)


class _PageView(QTextBrowser):
    """Text view that loads pictures only from the documents' folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self.setOpenLinks(False)

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Load a picture from the documents' folder; other addresses give nothing."""
        path = (self._folder / unquote(QUrl(name).path())).resolve()
        is_ours = path.is_relative_to(self._folder.resolve())
        if kind != QTextDocument.ResourceType.ImageResource.value or not is_ours:
            return None
        image = QImage(str(path))
        width = max(200, self.viewport().width() - 40)
        if image.width() > width:
            image = image.scaledToWidth(width, Qt.TransformationMode.SmoothTransformation)
        return image

    def show_heading(self, anchor: str) -> None:
        """Scroll to the heading with an anchor in GitHub's form, such as `model-of-a-server`."""
        block = self.document().begin()
        while block.isValid():
            if block.blockFormat().headingLevel() and _anchor_of(block.text()) == anchor:
                top = self.document().documentLayout().blockBoundingRect(block).top()
                self.verticalScrollBar().setValue(round(top))
                return
            block = block.next()


def _title_of(path: Path) -> str:
    found = _HEADING.search(path.read_text(encoding="utf-8"))
    return path.stem if found is None else found.group(1).replace("`", "")


def _anchor_of(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
