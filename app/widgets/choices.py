"""Combo boxes whose entries have explanations, and may be disabled with a reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QPaintEvent, QStandardItemModel
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter, QWidget

from app.i18n.setting_texts import setting_text
from app.widgets.explain import wrapped

NUM_CHARS = 18  # that a box in a form shows at least


class Offered(Protocol):
    """A drafter, a rule, or another choice with a name and an explanation."""

    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def explanation(self) -> str: ...


class ChoiceBox(QComboBox):
    """Narrow combo box with a list as wide as its entries."""

    def __init__(self, num_chars: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.setSizeAdjustPolicy(policy)
        self.setMinimumContentsLength(num_chars)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        field = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox,
            option,
            QStyle.SubControl.SC_ComboBoxEditField,
            self,
        )
        option.currentText = self.fontMetrics().elidedText(
            option.currentText, Qt.TextElideMode.ElideRight, field.width()
        )
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        painter.end()

    def showPopup(self) -> None:
        """Open the list, as wide as its longest entry and at most as wide as the screen."""
        view = self.view()
        wanted = view.sizeHintForColumn(0) + 2 * self.fontMetrics().height()
        view.setMinimumWidth(min(wanted, self.screen().availableGeometry().width()))
        super().showPopup()


def offer(box: QComboBox, choices: Iterable[Offered]) -> None:
    """List choices with their names as data, and keep the selection if it is among them.

    Emits no signals.
    """
    chosen = box.currentData()
    with QSignalBlocker(box):
        box.clear()
        for row, choice in enumerate(choices):
            box.addItem(setting_text(choice.label), choice.name)
            box.setItemData(
                row, wrapped(setting_text(choice.explanation)), Qt.ItemDataRole.ToolTipRole
            )
        box.setCurrentIndex(max(0, box.findData(chosen)))


def add_entry(box: QComboBox, words: str, data: object, reason: str = "") -> None:
    """Add an entry; a reason disables it and is shown."""
    box.addItem(f"{words} – {reason}" if reason else words, data)
    model = box.model()
    if reason and isinstance(model, QStandardItemModel):
        model.item(box.count() - 1).setEnabled(False)
