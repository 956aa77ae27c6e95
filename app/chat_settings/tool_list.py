"""The panel's list of tools for a conversation."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QCheckBox, QLabel, QPushButton, QVBoxLayout, QWidget

from app.chat_settings.tool_choice import ToolChoice, ToolOffer
from app.theme.appearance import Appearance
from app.widgets.explain import explain
from app.widgets.qt_text import with_visible_controls

_MOST_CHARS = 600  # of a description, of which a server may write 64 KiB
translate = QCoreApplication.translate


class ToolList(QWidget):
    """Check boxes of the tools, how many tokens the chosen ones take, and a way to the page.

    Attributes:
        boxes: Check boxes by id.
        summary: Number of the chosen tools and their tokens, or why there are none.
        manage_button: Opens the page of tools.
    """

    def __init__(self, choice: ToolChoice, appearance: Appearance) -> None:
        super().__init__()
        self._choice = choice
        self._appearance = appearance
        self._shown: tuple[ToolOffer, ...] = ()
        self.boxes: dict[str, QCheckBox] = {}
        self.summary = QLabel()
        self.summary.setProperty("class", "muted")
        self.summary.setWordWrap(True)
        self.manage_button = QPushButton(self.tr("Manage tools…"))
        self.manage_button.clicked.connect(choice.manage_requested)
        self._rows = QVBoxLayout()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.summary)
        column.addLayout(self._rows)
        column.addWidget(self.manage_button)
        choice.changed.connect(self._show)
        self.restyle()
        self._show()

    def restyle(self) -> None:
        """Apply the theme's sizes."""
        self._rows.setSpacing(self._appearance.scale.px(0.25))

    def _show(self) -> None:
        choice, offers = self._choice, self._choice.offers
        if offers != self._shown:
            self._build(offers)
        for offer in offers:
            box = self.boxes[offer.id]
            box.setChecked(choice.is_chosen(offer))
            box.setEnabled(not choice.reason or choice.is_chosen(offer))
        text = choice.reason or choice.summary
        if not offers and not choice.reason:
            text = self.tr("No tools are switched on yet.")
        self.summary.setText(text)

    def _build(self, offers: tuple[ToolOffer, ...]) -> None:
        """Make the check boxes anew."""
        focused = next((key for key, box in self.boxes.items() if box.hasFocus()), "")
        for box in self.boxes.values():
            self._rows.removeWidget(box)
            box.deleteLater()
        self.boxes, self._shown = {}, offers
        for offer in offers:
            box = self.boxes[offer.id] = QCheckBox(tool_label(offer).replace("&", "&&"))
            explain(box, tool_explanation(offer))
            box.clicked.connect(self._choice.toggler(offer.id))
            self._rows.addWidget(box)
        if focused in self.boxes:
            self.boxes[focused].setFocus()


def tool_label(offer: ToolOffer) -> str:
    """Return the name of a tool, with a note if it is missing."""
    return (
        translate("ToolList", "{0} (missing)").format(offer.label)
        if offer.is_missing
        else offer.label
    )


def tool_explanation(offer: ToolOffer) -> str:
    """Return what a tool does, or that it is missing."""
    if offer.is_missing:
        return translate("ToolList", "This tool isn't there now: its server is off or was changed.")
    text = with_visible_controls(offer.description)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
