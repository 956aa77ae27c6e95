"""Button of the composer with the tools of a conversation."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from app.chat_settings.tool_choice import ToolChoice, ToolOffer
from app.chat_settings.tool_group import tool_explanation, tool_label
from app.i18n.numbers import Number
from app.theme.appearance import Appearance
from app.widgets.explain import explain, wrapped

_MOST_ENTRIES = 12  # of the menu; more are in a menu of their server
_TOGGLES = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)


class ChecksMenu(QMenu):
    """Menu that stays open while entries are checked."""

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if not self._toggle(self.actionAt(event.position().toPoint())):
            super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in _TOGGLES or not self._toggle(self.activeAction()):
            super().keyPressEvent(event)

    def _toggle(self, action: object) -> bool:
        """Toggle a checkable entry; return whether it is one."""
        entries = (entry for entry in self.actions() if entry is action)
        entry = next(entries, None)
        if entry is None or not entry.isCheckable() or not entry.isEnabled():
            return False
        entry.trigger()
        return True


class ToolsButton(QToolButton):
    """Opens a menu of the tools, and shows how many are chosen; hidden without tools.

    Attributes:
        checks: Menu of the tools.
    """

    def __init__(
        self, choice: ToolChoice, appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._choice = choice
        self._appearance = appearance
        self.setProperty("class", "action")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.checks = ChecksMenu(self)
        self.checks.setToolTipsVisible(True)
        self.setMenu(self.checks)
        self.checks.aboutToShow.connect(self._fill)
        choice.changed.connect(self._show)
        self.restyle()
        self._show()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale, theme = self._appearance.scale, self._appearance.theme
        ink = theme.accent if self._choice.num_chosen else theme.muted
        self.setIcon(self._appearance.icon("tools", ink, 1.2))
        self.setIconSize(QSize(scale.px(1.2), scale.px(1.2)))

    def _show(self) -> None:
        choice, number = self._choice, self._choice.num_chosen
        self.setVisible(choice.is_available)
        self.setText(f"{Number(number)}" if number else "")
        self.setToolButtonStyle(
            Qt.ToolButtonStyle.ToolButtonTextBesideIcon
            if number
            else Qt.ToolButtonStyle.ToolButtonIconOnly
        )
        self.setAccessibleName(self.tr("Tools"))
        explain(self, choice.reason or choice.summary)
        self.restyle()
        if self.checks.isVisible():
            self._update()

    def _fill(self) -> None:
        """Fill the menu with the tools as they are now."""
        choice = self._choice
        self.checks.clear()
        for menu in self.checks.findChildren(ChecksMenu):
            menu.deleteLater()
        note = choice.reason
        if not note and not choice.offers:
            note = self.tr("No tools are switched on yet.")
        if note:
            self.checks.addAction(note).setEnabled(False)
        if len(choice.offers) > _MOST_ENTRIES:
            for server in choice.servers.values():
                menu = ChecksMenu(self.checks)
                menu.setTitle(server.name.replace("&", "&&"))
                menu.setToolTipsVisible(True)
                self.checks.addMenu(menu)
                for offer in server.offers:
                    self._add(menu, offer, offer.name)
        else:
            for offer in choice.offers:
                self._add(self.checks, offer, offer.label)
        self.checks.addSeparator()
        self.checks.addAction(self.tr("Manage tools…"), choice.manage_requested.emit)

    def _add(self, menu: QMenu, offer: ToolOffer, name: str) -> None:
        """Add the entry of a tool to a menu."""
        choice = self._choice
        entry = menu.addAction(tool_label(offer, name))
        entry.setCheckable(True)
        entry.setChecked(choice.is_chosen(offer))
        entry.setEnabled(not choice.reason or choice.is_chosen(offer))
        entry.setToolTip(wrapped(tool_explanation(offer)))
        entry.setData(offer.id)
        entry.triggered.connect(choice.toggler(offer.id))

    def _update(self) -> None:
        """Update the marks of an open menu."""
        chosen = {offer.id for offer in self._choice.offers if self._choice.is_chosen(offer)}
        for menu in (self.checks, *self.checks.findChildren(ChecksMenu)):
            for entry in menu.actions():
                if entry.isCheckable():
                    entry.setChecked(entry.data() in chosen)
