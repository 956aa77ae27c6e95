"""Accessible roles of painted widgets, which have none by default."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget

# By the names of their classes, as Qt asks.
PICTURES = frozenset(
    {
        *("HeadBars", "LayerStrip", "PartRates", "Plot", "PolicyPicture", "StepBars"),
        *("TreeLegend", "TreeView"),
    }
)
GROUPS = frozenset({"ConversationView", "ErrorBoard", "MemoryBar", "QKeySequenceEdit"})


class Picture(QAccessibleWidget):
    """Accessible interface of a drawing: a name and a description, without children."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget, QAccessible.Role.Chart, "")

    def childCount(self) -> int:
        return 0

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return -1


def role_of(class_name: str, widget: QObject) -> QAccessibleInterface | None:
    """Return the accessible role of a class of widgets; None for Qt's default."""
    if class_name in PICTURES and isinstance(widget, QWidget):
        return Picture(widget)
    if class_name in GROUPS and isinstance(widget, QWidget):
        return QAccessibleWidget(widget, QAccessible.Role.Grouping, "")
    return None


def give_roles() -> None:
    """Install the roles; must be called before painted widgets are created."""
    QAccessible.installFactory(role_of)
