"""Preview of the prompt: the conversation rendered by the chat template."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.chat_settings.texts import TextBox
from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance
from app.widgets.explain import explain

MOST_CHARS = 20_000  # more than anybody reads, and quick to show
MEANING = QT_TRANSLATE_NOOP(
    "TemplatePreview",
    "The prompt as the model reads it: the chat in the form of the model's own template.",
)


class TemplatePreview(QWidget):
    """Shows the rendered prompt, or the template's error.

    Attributes:
        text: The prompt, read-only.
        error: The template's error with its line; hidden if there is none.
    """

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self.text = TextBox(
            self.tr("Rendered prompt"),
            self.tr("Write a message to see it here."),
            9,
            appearance,
            is_code=True,
        )
        self.text.setReadOnly(True)
        explain(self.text, self.tr(MEANING))
        self.error = QLabel()
        self.error.setObjectName("templateError")
        self.error.setWordWrap(True)
        self.error.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.text)
        column.addWidget(self.error)

    def show_prompt(self, prompt: str) -> None:
        """Show a prompt, or the end of a very long one."""
        self.text.show_text(prompt if len(prompt) <= MOST_CHARS else f"… {prompt[-MOST_CHARS:]}")
        self.error.hide()

    def show_error(self, message: str, hint: str) -> None:
        """Show the template's error and keep the previous prompt."""
        self.error.setText(f"{message} {hint}".strip())
        self.error.show()

    def restyle(self) -> None:
        """Apply the theme's sizes."""
        self.text.restyle()
