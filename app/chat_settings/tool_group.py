"""The tools of one server in the panel: a switch for all, and a list that expands."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QSize, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from app.chat_settings.tool_choice import ToolChoice, ToolOffer, ToolServerOffer
from app.i18n.numbers import Number
from app.theme.appearance import Appearance
from app.widgets.elided import ElidedCheckBox
from app.widgets.explain import explain
from app.widgets.qt_text import with_visible_controls

_MOST_CHARS = 600  # of a description, of which a server may write 64 KiB
translate = QCoreApplication.translate


class ToolGroup(QWidget):
    """Switch of a server with counts, above check boxes of its tools.

    Attributes:
        switch: Chooses all tools of the server, or none.
        fold: Shows and hides the tools.
        counts: Number of the chosen tools and their tokens.
        boxes: Check boxes by id.

    Signals:
        folded: The user has shown or hidden the tools (whether they are shown).
    """

    folded = Signal(bool)

    def __init__(
        self, server: ToolServerOffer, choice: ToolChoice, appearance: Appearance, *, is_open: bool
    ) -> None:
        super().__init__()
        self._choice, self._appearance = choice, appearance
        self._name, self._offers = server
        self._is_open = is_open
        self.switch = ElidedCheckBox(server.name.replace("&", "&&"))
        self.switch.clicked.connect(self._switch)
        self.fold = QToolButton()
        self.fold.setProperty("class", "action")
        self.fold.clicked.connect(self._fold)
        self.counts = QLabel()
        self.counts.setProperty("class", "muted")
        self.counts.setWordWrap(True)
        self.boxes: dict[str, QCheckBox] = {}
        self._inside = QVBoxLayout()
        for offer in server.offers:
            box = self.boxes[offer.id] = ElidedCheckBox(tool_label(offer, offer.name))
            explain(box, tool_explanation(offer))
            box.clicked.connect(choice.toggler(offer.id))
            self._inside.addWidget(box)
        row = QHBoxLayout()
        row.addWidget(self.switch, 1)
        row.addWidget(self.fold)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addLayout(row)
        self._column.addWidget(self.counts)
        self._column.addLayout(self._inside)
        self.restyle()

    @property
    def stops(self) -> tuple[QWidget, ...]:
        """The widgets that Tab reaches, in order."""
        return (self.switch, self.fold, *self.boxes.values())

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        self._column.setSpacing(scale.px(0.15))
        self._inside.setSpacing(scale.px(0.25))
        self._inside.setContentsMargins(scale.px(1.3), 0, 0, scale.px(0.4))
        self.counts.setContentsMargins(scale.px(1.3), 0, 0, 0)
        self.fold.setIconSize(QSize(scale.px(0.9), scale.px(0.9)))
        self._show_icon()

    def refresh(self, words: str) -> bool:
        """Show what is chosen, and only the tools that match.

        Args:
            words: Words that name or description of a shown tool contain; empty for all tools,
                if the group is open.

        Returns:
            Whether a tool matches.
        """
        choice, offers = self._choice, self._offers
        found = {one.id for one in offers if matches(one, words)}
        chosen = [one for one in offers if choice.is_chosen(one)]
        for offer in offers:
            box = self.boxes[offer.id]
            box.setChecked(choice.is_chosen(offer))
            box.setEnabled(not choice.reason or choice.is_chosen(offer))
            box.setVisible(offer.id in found and (bool(words) or self._is_open))
        self._mark_switch()
        # With words it would choose tools that aren't shown.
        self.switch.setEnabled(not words and (not choice.reason or bool(chosen)))
        self.fold.setEnabled(not words)
        self._show_counts(chosen)
        self.setVisible(bool(found))
        return bool(found)

    def _show_counts(self, chosen: list[ToolOffer]) -> None:
        there = [one for one in self._offers if not one.is_missing]
        counted = [one for one in chosen if not one.is_missing]
        tokens = f"{Number(self._choice.estimate_tokens(counted or there)):,}"
        if not there:
            text = self.tr("not there now")
        elif counted:
            text = self.tr("{0} of {1} chosen, about {2} tokens").format(
                f"{Number(len(counted)):,}", f"{Number(len(there)):,}", tokens
            )
        elif len(there) == 1:
            text = self.tr("1 tool, about {0} tokens").format(tokens)
        else:
            words = self.tr("{0} tools, about {1} tokens")
            text = words.format(f"{Number(len(there)):,}", tokens)
        self.counts.setText(text)
        explain(self.switch, self.tr("Choose all tools of this server, or none. {0}").format(text))

    def _switch(self) -> None:
        """Choose all tools that are there, or none if they are chosen already."""
        there = [one for one in self._offers if not one.is_missing]
        is_all = all(map(self._choice.is_chosen, there))
        self._choice.choose([one.id for one in (self._offers if is_all else there)], not is_all)
        self._mark_switch()  # Qt has changed the mark

    def _mark_switch(self) -> None:
        is_chosen = [self._choice.is_chosen(one) for one in self._offers]
        some = Qt.CheckState.PartiallyChecked if any(is_chosen) else Qt.CheckState.Unchecked
        self.switch.setCheckState(Qt.CheckState.Checked if all(is_chosen) else some)

    def _fold(self) -> None:
        self._is_open = not self._is_open
        self._show_icon()
        self.refresh("")
        self.folded.emit(self._is_open)

    def _show_icon(self) -> None:
        name = "chevron" if self._is_open else "forward"
        self.fold.setIcon(self._appearance.icon(name, self._appearance.theme.muted, 0.9))
        words = (
            self.tr("Hide the tools of {0}") if self._is_open else self.tr("Show the tools of {0}")
        )
        text = words.format(self._name)
        self.fold.setAccessibleName(text)
        explain(self.fold, text)


def matches(offer: ToolOffer, words: str) -> bool:
    """Return whether a tool's label and description contain all words."""
    text = f"{offer.label} {offer.description}".casefold()
    return all(word in text for word in words.casefold().split())


def tool_label(offer: ToolOffer, name: str) -> str:
    """Return a tool's name for a check box or menu, with a note if it is missing."""
    words = translate("ToolList", "{0} (missing)") if offer.is_missing else "{0}"
    return words.format(name).replace("&", "&&")


def tool_explanation(offer: ToolOffer) -> str:
    """Return what a tool does, or that it is missing."""
    if offer.is_missing:
        return translate("ToolList", "This tool isn't there now: its server is off or was changed.")
    text = with_visible_controls(offer.description)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
