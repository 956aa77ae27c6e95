"""What painted widgets are to those who listen: Qt would take them for nothing but room."""

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
    """A drawing with a name and a description; what it is made of says nothing by itself."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget, QAccessible.Role.Chart, "")

    def childCount(self) -> int:
        return 0

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return -1


def role_of(class_name: str, widget: QObject) -> QAccessibleInterface | None:
    """What a widget of this class is; None where Qt knows."""
    if class_name in PICTURES and isinstance(widget, QWidget):
        return Picture(widget)
    if class_name in GROUPS and isinstance(widget, QWidget):
        return QAccessibleWidget(widget, QAccessible.Role.Grouping, "")
    return None


def give_roles() -> None:
    """Let screen readers know what painted widgets are; before any of them is made."""
    QAccessible.installFactory(role_of)
