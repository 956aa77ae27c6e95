"""The panel's list of tools for a conversation."""

from __future__ import annotations

from itertools import chain, pairwise

from PySide6.QtWidgets import QCheckBox, QLabel, QPushButton, QVBoxLayout, QWidget

from app.chat_settings.tool_choice import ToolChoice, ToolOffer
from app.chat_settings.tool_group import ToolGroup
from app.theme.appearance import Appearance
from app.widgets.search_edit import SearchEdit

_MOST_SHOWN = 6  # tools that are shown without a click
_LEAST_FILTERED = 12  # tools with a filter


class ToolList(QWidget):
    """Tools by server, how many tokens the chosen ones take, and a way to the page.

    Attributes:
        groups: Groups of tools by the key of their server.
        filter_edit: Shows only the tools that contain some words; hidden if they are few.
        summary: Number of the chosen tools and their tokens, or why there are none.
        manage_button: Opens the page of tools.
    """

    def __init__(self, choice: ToolChoice, appearance: Appearance) -> None:
        super().__init__()
        self._choice = choice
        self._appearance = appearance
        self._shown: tuple[ToolOffer, ...] = ()
        self._is_open: dict[str, bool] = {}  # as the user wants it
        self.groups: dict[str, ToolGroup] = {}
        self.summary = QLabel()
        self.summary.setProperty("class", "muted")
        self.summary.setWordWrap(True)
        self.filter_edit = SearchEdit(self.tr("Find a tool"))
        self.filter_edit.textChanged.connect(self._show)
        self.manage_button = QPushButton(self.tr("Manage tools…"))
        self.manage_button.clicked.connect(choice.manage_requested)
        self._rows = QVBoxLayout()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.summary)
        column.addWidget(self.filter_edit)
        column.addLayout(self._rows)
        column.addWidget(self.manage_button)
        choice.changed.connect(self._show)
        self.restyle()
        self._show()

    @property
    def boxes(self) -> dict[str, QCheckBox]:
        """Check boxes of all tools by id."""
        return {key: box for group in self.groups.values() for key, box in group.boxes.items()}

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        self._rows.setSpacing(self._appearance.scale.px(0.35))
        for group in self.groups.values():
            group.restyle()

    def _show(self) -> None:
        choice, offers = self._choice, self._choice.offers
        if offers != self._shown:
            self._build(offers)
        words = "" if self.filter_edit.isHidden() else self.filter_edit.text().strip()
        is_found = [group.refresh(words) for group in self.groups.values()]
        text = choice.reason or choice.summary
        if words and not any(is_found):
            text = self.tr("No tool has these words.")
        elif not offers and not choice.reason:
            text = self.tr("No tools are switched on yet.")
        self.summary.setText(text)

    def _build(self, offers: tuple[ToolOffer, ...]) -> None:
        """Make the groups anew."""
        focused = self._focused()
        for group in self.groups.values():
            self._rows.removeWidget(group)
            group.hide()
            group.deleteLater()
        self.groups, self._shown = {}, offers
        for key, server in self._choice.servers.items():
            is_few = len(offers) <= _MOST_SHOWN
            is_open = self._is_open.get(key, is_few) or any(o.id == focused for o in server.offers)
            group = ToolGroup(server, self._choice, self._appearance, is_open=is_open)
            group.folded.connect(lambda is_open, key=key: self._is_open.update({key: is_open}))
            self.groups[key] = group
            self._rows.addWidget(group)
        self.filter_edit.setVisible(len(offers) >= _LEAST_FILTERED)
        groups = self.groups.values()
        stops = (self.filter_edit, *(one for group in groups for one in group.stops))
        for before, after in pairwise((*stops, self.manage_button)):
            QWidget.setTabOrder(before, after)
        if focused in self.boxes:
            self.boxes[focused].setFocus()
        elif focused in self.groups:
            self.groups[focused].switch.setFocus()

    def _focused(self) -> str:
        """Return the tool or server whose widget has the focus; empty for none."""
        boxes = (key for key, box in self.boxes.items() if box.hasFocus())
        groups = (key for key, one in self.groups.items() if one.switch.hasFocus())
        return next(chain(boxes, groups), "")
