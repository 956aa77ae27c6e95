"""Editor of the JSON schema that answers match."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.chat_settings.texts import TextBox
from app.i18n.engine_texts import error_text
from app.i18n.numbers import Number
from app.theme.appearance import Appearance
from app.widgets.explain import explain
from app.widgets.live_label import LiveLabel
from medusa_core.api import check_json_schema
from medusa_core.chats.settings import MOST_SCHEMA_CHARS
from medusa_core.errors import GrammarError

_NUM_LINES = 5


class SchemaBox(QWidget):
    """Editor of a schema; an invalid one stays, and a note says what is wrong with it.

    Attributes:
        edit: The schema.
        note: What is wrong with it, or how it applies; hidden if there is nothing to say.

    Signals:
        edited: The user edited the schema, which isn't too long.
    """

    edited = Signal()

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self._has_tools = False
        self._set = ""  # as the settings have it
        self.edit = TextBox(
            self.tr("JSON schema of answers"),
            self.tr('{"type": "object", "properties": {…}}'),
            _NUM_LINES,
            appearance,
            is_code=True,
        )
        explain(
            self.edit,
            self.tr(
                "Answers are JSON that matches this schema; empty for any text. The model can't "
                "write anything else, and drafts are checked against it, too."
            ),
        )
        self.note = LiveLabel()
        self.note.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.edit)
        column.addWidget(self.note)
        self.edit.edited.connect(self._edit)

    @property
    def schema(self) -> str:
        """The schema; empty if there is only white space."""
        text = self.edit.toPlainText()
        return text if text.strip() else ""

    def show_schema(self, schema: str, *, has_tools: bool) -> None:
        """Show a schema, unless the settings have it already: a longer text is being edited.

        Args:
            schema: The schema; empty for none.
            has_tools: Whether tools are chosen as well.
        """
        self._has_tools = has_tools
        if schema != self._set:
            self._set = schema
            self.edit.show_text(schema)
        self._show_note()

    def restyle(self) -> None:
        """Apply the theme's sizes."""
        self.edit.restyle()

    def _edit(self) -> None:
        self._show_note()
        if len(self.schema) <= MOST_SCHEMA_CHARS:
            self._set = self.schema
            self.edited.emit()

    def _show_note(self) -> None:
        text = self._problem()
        if not text and self.schema and self._has_tools:
            text = self.tr(
                "The model may call the chosen tools first; the answer after them matches the "
                "schema."
            )
        self.note.setText(text)
        self.note.setVisible(bool(text))

    def _problem(self) -> str:
        """Return what is wrong with the schema; empty for a valid or no schema."""
        if len(self.schema) > MOST_SCHEMA_CHARS:
            words = self.tr("The schema has {0} characters; {1} are the most. Shorten it.")
            return words.format(f"{Number(len(self.schema)):,}", f"{Number(MOST_SCHEMA_CHARS):,}")
        try:
            if self.schema:
                check_json_schema(self.schema)
        except GrammarError as error:
            return error_text(error)
        return ""
