"""Built-in tools: a switch for each, and what it reaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n.engine_texts import engine_text, error_text
from app.theme.appearance import Appearance
from app.tools.window_tools import WindowTools
from app.tools.words import builtin_words
from app.widgets.explain import explain
from app.widgets.live_label import LiveLabel
from medusa_core.errors import MedusaError

_HOST_LINES = 4


class BuiltinPage(QWidget):
    """Switches of the built-in tools.

    Attributes:
        switches: Switches by the tools' names.
        search_edit: Address of a SearXNG server.
        hosts_edit: Private hosts that may be reached, one in a line.
        save_button: Saves both.
        note: Why a tool can't be switched; hidden if there is nothing to say.
    """

    def __init__(self, tools: WindowTools, appearance: Appearance) -> None:
        super().__init__()
        self._tools = tools
        self.switches: dict[str, QCheckBox] = {}
        self._words: dict[str, QLabel] = {}
        self.note = LiveLabel()
        self.note.hide()
        self.search_edit = QLineEdit()
        self.search_edit.setPlaceholderText("https://search.example.org")
        self.hosts_edit = QPlainTextEdit()
        self.hosts_edit.setTabChangesFocus(True)
        self.hosts_edit.setProperty("class", "panelText")
        self.hosts_edit.setPlaceholderText("nas.local:8080")
        self.hosts_edit.setFixedHeight(self.fontMetrics().lineSpacing() * _HOST_LINES)
        self.save_button = QPushButton(self.tr("Save addresses"))
        scale = appearance.scale
        column = QVBoxLayout(self)
        intro = QLabel(
            self.tr(
                "Tools that are switched on can be chosen in each chat. The model asks for a call; "
                "it runs only after you have approved it."
            )
        )
        intro.setWordWrap(True)
        column.addWidget(intro)
        column.addWidget(self.note)
        for status in tools.toolbox.builtins():
            label, reach = builtin_words(status.builtin)
            switch = QCheckBox(label)
            explain(switch, reach)
            switch.clicked.connect(self._switcher(status.builtin.name))
            self.switches[status.builtin.name] = switch
            words = self._words[status.builtin.name] = QLabel(reach)
            words.setWordWrap(True)
            words.setProperty("class", "muted")
            words.setIndent(scale.px(1.6))
            column.addSpacing(scale.px(0.4))
            column.addWidget(switch)
            column.addWidget(words)
        column.addSpacing(scale.px(0.8))
        column.addLayout(self._addresses())
        column.addStretch(1)
        self.save_button.clicked.connect(self._save)
        self._show_web()
        tools.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show which tools are on."""
        for status in self._tools.toolbox.builtins():
            name = status.builtin.name
            self.switches[name].setChecked(status.is_on)
            lack = engine_text(status.missing_setting) if status.is_on else ""
            _, reach = builtin_words(status.builtin)
            self._words[name].setText(f"{reach}\n{lack}".strip())
        web = self._tools.toolbox.web
        if web != self._web:
            self._show_web()

    def _addresses(self) -> QFormLayout:
        """Return the form of the addresses for page and search."""
        form = QFormLayout()
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        explain(
            self.search_edit,
            self.tr("Address of a SearXNG server that gives results as JSON, such as your own."),
        )
        explain(
            self.hosts_edit,
            self.tr(
                "Web pages of this computer and of private networks aren't fetched, except of "
                "these hosts, one in a line."
            ),
        )
        for label, field in (
            (self.tr("Search address"), self.search_edit),
            (self.tr("Allowed private hosts"), self.hosts_edit),
        ):
            field.setAccessibleName(label)
            form.addRow(label, field)
        row = QHBoxLayout()
        row.addWidget(self.save_button)
        row.addStretch(1)
        form.addRow("", row)
        return form

    def _show_web(self) -> None:
        """Show the addresses as they are saved."""
        self._web = web = self._tools.toolbox.web
        with QSignalBlocker(self.search_edit), QSignalBlocker(self.hosts_edit):
            self.search_edit.setText(web.search_url)
            self.hosts_edit.setPlainText("\n".join(web.allowed_hosts))

    def _save(self) -> None:
        hosts = tuple(self.hosts_edit.toPlainText().splitlines())
        web = replace(
            self._tools.toolbox.web, search_url=self.search_edit.text(), allowed_hosts=hosts
        )
        if self._try(lambda: self._tools.toolbox.set_web(web)):
            self._show_web()

    def _switcher(self, name: str) -> Callable[[bool], None]:
        return lambda is_on: self._switch(name, is_on)

    def _switch(self, name: str, is_on: bool) -> None:
        self._try(lambda: self._tools.toolbox.set_builtin(name, is_on))
        self.refresh()

    def _try(self, change: Callable[[], object]) -> bool:
        """Change the toolbox and show an error; return whether it succeeded."""
        self.note.hide()
        try:
            change()
        except MedusaError as error:
            self.note.setText(error_text(error))
            self.note.show()
            return False
        return True
