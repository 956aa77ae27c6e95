"""What is wrong with a window for those who can't see it."""

import re
from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QComboBox,
    QLabel,
    QTableView,
    QTabWidget,
    QWidget,
)

from app.widgets.accessible_roles import GROUPS, PICTURES


def spoken(widget: QWidget) -> str:
    """Return the accessible name of a widget: of a combo box its label."""
    interface = QAccessible.queryAccessibleInterface(widget)
    assert isinstance(interface, QAccessibleInterface)
    if isinstance(widget, QComboBox):
        labels = interface.relations(QAccessible.RelationFlag.Label)
        return " ".join(label.text(QAccessible.Text.Name) for label, _ in labels)
    return interface.text(QAccessible.Text.Name) or widget.accessibleName()


def focusable(root: QWidget) -> Iterator[QWidget]:
    """Return all widgets that keys can reach, shown or not, without inner ones of others."""
    for widget in (root, *root.findChildren(QWidget)):
        parent = widget.parentWidget()
        is_inner = widget.objectName().startswith("qt_") or isinstance(widget, QTabWidget)
        is_inner |= isinstance(parent, QAbstractScrollArea)
        is_inner |= parent is not None and parent.inherits("QComboBoxPrivateContainer")
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and not is_inner:
            yield widget


CODE = re.compile(r"\bQ[A-Z]\w+|\b[a-z]+[A-Z]\w*|\w_\w|\.py\b")


MARKUP = re.compile(r"</?(qt|span|b|br|p|a|html)\b[^>]*>")


def faults(root: QWidget) -> list[str]:
    """Return the accessibility faults of a window."""
    found = []
    for widget in focusable(root):
        where = f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}"
        name = spoken(widget)
        if not any(map(str.isalnum, name)):
            found.append(f"no name: {where}, {name!r}")
        if not isinstance(widget, QLabel) and CODE.search(name):
            found.append(f"a name out of the code: {where}, {name!r}")
    for widget in (root, *root.findChildren(QWidget)):
        where = f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}"
        interface = QAccessible.queryAccessibleInterface(widget)
        assert isinstance(interface, QAccessibleInterface)
        said = interface.text(QAccessible.Text.Description)
        if MARKUP.search(said):
            found.append(f"markup is read: {where}, {said[:60]!r}")
        kinds = {kind.__name__ for kind in type(widget).__mro__}
        if kinds & (PICTURES | GROUPS) and interface.role() is QAccessible.Role.Client:
            found.append(f"no role: {where}")
        if isinstance(widget, QLabel) and not widget.isHidden() and is_unread(widget, interface):
            found.append(f"its text isn't read: {where}, {widget.text()!r}")
        if isinstance(widget, QTableView) and not all(heads := headers(widget)):
            found.append(f"a column without a header: {where}, {heads}")
    return found


def is_unread(label: QLabel, interface: QAccessibleInterface) -> bool:
    """Whether a label's accessible name takes the place of its text."""
    if not any(map(str.isalnum, label.text())) or "<" in label.text():
        return False
    said = interface.text(QAccessible.Text.Name).casefold()
    return label.text().replace("&&", "&").strip("· ").casefold() not in said


def headers(table: QTableView) -> list[str]:
    model, across = table.model(), Qt.Orientation.Horizontal
    return [str(model.headerData(n, across) or "") for n in range(model.columnCount())]
