"""Editor of environment variables or headers, whose values may be secrets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtWidgets import (
    QCheckBox,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.theme.appearance import Appearance
from app.widgets.explain import explain

_SECRET_NAMES = re.compile(r"key|token|secret|passw|auth|credential", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{keyring:[^${}]+\}")


@dataclass(frozen=True, slots=True)
class Pair:
    """A variable or header.

    Attributes:
        name: Its name.
        value: Its value.
        is_secret: Whether the value is to be saved in the system's keyring.
    """

    name: str
    value: str
    is_secret: bool


def shown_value(name: str, value: str) -> str:
    """Return a value for display; an ellipsis for a secret."""
    return "…" if _REFERENCE.search(value) or _SECRET_NAMES.search(name) else value


class _Row:
    """Editors of a pair.

    A value that is in the keyring isn't shown: the field is empty until another one is typed.
    """

    def __init__(self, edit: PairsEdit, name: str, value: str) -> None:
        self.kept = value if _REFERENCE.search(value) else ""
        self.name = QLineEdit(name)
        self.name.setPlaceholderText(edit.tr("Name"))
        self.name.setAccessibleName(edit.tr("Name"))
        self.value = QLineEdit("" if self.kept else value)
        self.value.setPlaceholderText(edit.tr("in the keyring") if self.kept else edit.tr("Value"))
        self.value.setAccessibleName(edit.tr("Value"))
        self.secret = QCheckBox(edit.tr("Secret"))
        explain(
            self.secret,
            edit.tr("Saved in the system's keyring; mcp.json only has a reference to it."),
        )
        self.remove = QPushButton(edit.tr("Remove"))
        self.secret.toggled.connect(self._mask)
        self.secret.setChecked(bool(self.kept or _SECRET_NAMES.search(name)))
        self.name.textEdited.connect(self._guess)

    @property
    def widgets(self) -> tuple[QWidget, ...]:
        """Widgets in the order of columns."""
        return (self.name, self.value, self.secret, self.remove)

    @property
    def pair(self) -> Pair:
        """The pair; a kept secret is its reference."""
        typed = self.value.text()
        if self.kept and not typed:
            return Pair(self.name.text().strip(), self.kept, is_secret=False)
        return Pair(self.name.text().strip(), typed, self.secret.isChecked())

    def _mask(self, is_secret: bool) -> None:
        mode = QLineEdit.EchoMode.Password if is_secret else QLineEdit.EchoMode.Normal
        self.value.setEchoMode(mode)

    def _guess(self, name: str) -> None:
        """Mark a value as secret by its name, until it is typed."""
        if _SECRET_NAMES.search(name) and not self.value.text():
            self.secret.setChecked(True)


class PairsEdit(QWidget):
    """Rows of names and values.

    Attributes:
        add_button: Adds a row.
    """

    def __init__(self, add_text: str, appearance: Appearance) -> None:
        """Create the editor.

        Args:
            add_text: Text of the button that adds a row.
            appearance: Theme and sizes.
        """
        super().__init__()
        self._rows: list[_Row] = []
        self._grid = QGridLayout()
        self._grid.setSpacing(appearance.scale.px(0.3))
        self._grid.setColumnStretch(1, 1)
        self.add_button = QPushButton(add_text)
        self.add_button.clicked.connect(lambda: self._add("", "").name.setFocus())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(self._grid)
        row = QHBoxLayout()
        row.addWidget(self.add_button)
        row.addStretch(1)
        column.addLayout(row)

    @property
    def rows(self) -> tuple[_Row, ...]:
        """The rows."""
        return tuple(self._rows)

    def show_pairs(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Replace the rows."""
        for row in self.rows:
            self._remove(row)
        for name, value in pairs:
            self._add(name, value)

    def pairs(self) -> tuple[Pair, ...]:
        """Return the pairs; rows without a name and a value are left out."""
        found = (row.pair for row in self._rows)
        return tuple(pair for pair in found if pair.name or pair.value)

    def _add(self, name: str, value: str) -> _Row:
        row = _Row(self, name, value)
        self._rows.append(row)
        place = self._grid.rowCount()
        for column, widget in enumerate(row.widgets):
            self._grid.addWidget(widget, place, column)
        row.remove.clicked.connect(lambda: self._remove(row))
        return row

    def _remove(self, row: _Row) -> None:
        self._rows.remove(row)
        for widget in row.widgets:
            self._grid.removeWidget(widget)
            widget.hide()
            widget.deleteLater()
        self.add_button.setFocus()
