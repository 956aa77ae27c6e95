"""Dialog of changes, shown after an update and from the menu."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QTextBrowser, QVBoxLayout, QWidget

from app.help.changelog import Release
from app.theme.appearance import Appearance
from app.widgets.closing import close_by_key


class WhatsNewDialog(QDialog):
    """Dialog with the changes of releases, the newest first.

    Attributes:
        text: View of the changes.
    """

    def __init__(
        self, releases: Sequence[Release], appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("whatsNew")
        title = QLabel(self.tr("What’s new in Medusa Chat"))
        title.setObjectName("heroTitle")
        self.text = QTextBrowser()
        self.text.setAccessibleName(self.tr("Changes"))
        self.text.setOpenLinks(False)
        self.show_releases(releases)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.button(QDialogButtonBox.StandardButton.Close).setText(self.tr("Close"))
        buttons.rejected.connect(self.reject)
        scale = appearance.scale
        column = QVBoxLayout(self)
        column.setContentsMargins(scale.px(1.4), scale.px(1.0), scale.px(1.4), scale.px(1.0))
        column.setSpacing(scale.px(0.8))
        column.addWidget(title)
        column.addWidget(self.text, 1)
        column.addWidget(buttons)
        close_by_key(self)
        self.resize(scale.px(40), scale.px(30))

    def show_releases(self, releases: Sequence[Release]) -> None:
        """Show the changes of these versions."""
        self.text.setMarkdown("\n\n".join(map(_markdown, releases)))


def _markdown(release: Release) -> str:
    lines = "\n".join(f"- {change}" for change in release.changes)
    return f"### {release.version} ({release.date})\n\n{lines}"
