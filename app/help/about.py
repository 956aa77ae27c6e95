"""The About dialog: purpose, licences and versions."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QLabel,
    QPlainTextEdit,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.theme.appearance import Appearance
from app.widgets.plain_label import plain_label
from medusa_core.api import component_licences, component_versions, licences_file

NOTICE_TITLE = "Built with Llama"
PAGES = (
    ("Medusa (paper)", "https://arxiv.org/abs/2401.10774"),
    ("Llama 3.1 licence", "https://www.llama.com/llama3_1/license/"),
)


class AboutDialog(QDialog):
    """About dialog, with the notices that the licences of its parts require.

    Attributes:
        labels: Paragraphs from top to bottom.
        versions: Version of each part.
        licences: Licence of each library.
        links: Links that open in the browser.
    """

    def __init__(
        self, resources: Path, appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("about")
        what = self.tr(
            "Medusa Chat answers on this computer alone; nothing is sent anywhere. Extra heads on "
            "the model draft a tree of next tokens, one pass of the model verifies them all, and "
            "in exact mode the text is what the model alone would have written."
        )
        notice = self.tr(
            "The small demo model is called Llama-Pebble because part of the text that it learned "
            "from was written by Llama 3.1. It holds no weights of Meta's and is not made by Meta."
        )
        where = self.tr("Sources and licences lie beside the files, in {0}.").format(resources)
        self.labels = (
            _label("Medusa Chat", "heroTitle"),
            _label(what),
            _label(NOTICE_TITLE, "modelName"),
            _label(notice),
            _label(where, "notice"),
        )
        self.versions = _lines(self.tr("Versions"), component_versions())
        self.licences = _lines(self.tr("Licences"), component_licences())
        texts = (self.tr("Licences of all parts"), licences_file().as_uri())
        pages = (texts, *PAGES)
        self._link_text = " · ".join(f'<a href="{url}">{name}</a>' for name, url in pages)
        self.links = QLabel(self._link_text)
        names = ", ".join(name for name, _ in pages)
        self.links.setAccessibleName(self.tr("Links: {0}").format(names))
        self.links.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.links.linkActivated.connect(lambda url: QDesktopServices.openUrl(QUrl(url)))
        self._build(appearance)
        appearance.changed.connect(self._restyle)

    def _restyle(self) -> None:
        """Set the text again, because link colours are fixed when it is parsed."""
        self.links.clear()
        self.links.setText(self._link_text)

    def _build(self, appearance: Appearance) -> None:
        scale = appearance.scale
        about = QWidget()
        column = QVBoxLayout(about)
        column.setSpacing(scale.px(0.8))
        for label in self.labels:
            column.addWidget(label)
        column.addWidget(self.links)
        column.addStretch(1)
        tabs = QTabWidget()
        tabs.addTab(about, self.tr("About"))
        tabs.addTab(self.versions, self.tr("Versions"))
        tabs.addTab(self.licences, self.tr("Licences"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.button(QDialogButtonBox.StandardButton.Close).setText(self.tr("Close"))
        buttons.rejected.connect(self.reject)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(scale.px(1.4), scale.px(1.0), scale.px(1.4), scale.px(1.0))
        outer.addWidget(tabs, 1)
        outer.addWidget(buttons)
        self.resize(scale.px(38), scale.px(30))


def _lines(name: str, parts: dict[str, str]) -> QPlainTextEdit:
    text = QPlainTextEdit("\n".join(f"{part}: {words}" for part, words in parts.items()))
    text.setReadOnly(True)
    text.setAccessibleName(name)
    return text


def _label(text: str, name: str = "") -> QLabel:
    label = plain_label(text, name)
    label.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse
        | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    return label
