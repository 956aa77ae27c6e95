"""Button of the composer with the collections of documents of a conversation."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QToolButton, QWidget

from app.chat.compose.tools_button import ChecksMenu
from app.chat.passage_retrieval import PassageRetrieval
from app.i18n.numbers import Number
from app.state.chat import ChatState
from app.theme.appearance import Appearance
from app.widgets.explain import explain


class DocumentsButton(QToolButton):
    """Opens a menu of the collections, and shows how many are attached; hidden without documents.

    Attributes:
        checks: Menu of the collections.

    Signals:
        manage_requested: The user wants to see the page of documents.
    """

    manage_requested = Signal()

    def __init__(
        self,
        state: ChatState,
        retrieval: PassageRetrieval,
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._state, self._retrieval, self._appearance = state, retrieval, appearance
        self.setProperty("class", "action")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setAccessibleName(self.tr("Documents"))
        self.checks = ChecksMenu(self)
        self.checks.setToolTipsVisible(True)
        self.setMenu(self.checks)
        self.checks.aboutToShow.connect(self._fill)
        state.collections_changed.connect(self.refresh)
        state.conversation_changed.connect(self.refresh)
        retrieval.documents.listed.connect(self.refresh)
        self.setVisible(retrieval.documents.is_available)
        self.refresh()

    def refresh(self) -> None:
        """Show how many collections the conversation has."""
        names = [self._name(one) for one in self._attached if self._name(one)]
        number = len(names)
        self.setText(f"{Number(number)}" if number else "")
        self.setToolButtonStyle(
            Qt.ToolButtonStyle.ToolButtonTextBesideIcon
            if number
            else Qt.ToolButtonStyle.ToolButtonIconOnly
        )
        reads = self.tr("Answers are given from: {0}").format(", ".join(names))
        explain(self, reads if names else self.tr("Give answers from your own documents"))
        self.restyle()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale, theme = self._appearance.scale, self._appearance.theme
        self.setIcon(
            self._appearance.icon("documents", theme.accent if self.text() else theme.muted, 1.2)
        )
        self.setIconSize(QSize(scale.px(1.2), scale.px(1.2)))

    @property
    def _attached(self) -> tuple[str, ...]:
        return self._retrieval.collections_of(self._state.conversation)

    def _name(self, collection_id: str) -> str:
        return self._retrieval.documents.name_of(collection_id)

    def _fill(self) -> None:
        """Fill the menu with the collections as they are now."""
        own, attached = self._state.conversation.collections, self._attached
        self.checks.clear()
        collections = self._retrieval.documents.collections
        if not collections:
            self.checks.addAction(self.tr("There are no collections yet.")).setEnabled(False)
        for info in collections:
            is_inherited = info.id in attached and info.id not in own
            name = info.name.replace("&", "&&")
            if is_inherited:
                name = self.tr("{0} (of the folder)").format(name)
            entry = self.checks.addAction(name)
            entry.setCheckable(True)
            entry.setChecked(info.id in attached)
            entry.setEnabled(not is_inherited)
            entry.toggled.connect(partial(self._state.attach_collection, info.id))
        self.checks.addSeparator()
        self.checks.addAction(self.tr("Manage documents…"), self.manage_requested.emit)
