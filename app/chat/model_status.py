"""Shows the model on the chat page: name, state and available drafters."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QObject

from app.chat.chat_page import ChatPage
from app.chat.error_board import ErrorTopic
from app.chat.suggestions import is_small, suggestions_for
from app.engine.loaded_model import LoadedModel
from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance
from app.widgets.announce import announce
from medusa_core.loading.state import ModelStatus, Phase
from medusa_core.messages import ModelLoaded

DEMO_NOTE = QT_TRANSLATE_NOOP(
    "Chat", "It is tiny: expect simple stories and small talk rather than facts."
)
SMALL_NOTE = QT_TRANSLATE_NOOP(
    "Chat", "It is small: good to try this program with, but it gets facts wrong."
)


class ModelStatusView(QObject):
    """Updates the chat page when the model changes."""

    def __init__(self, page: ChatPage, loaded_model: LoadedModel, appearance: Appearance) -> None:
        super().__init__(page)
        self._page = page
        self._loaded_model = loaded_model
        self._appearance = appearance
        loaded_model.changed.connect(self._show)
        loaded_model.changed.connect(self._announce_phase)
        self._announced = ""  # to screen readers
        self._show()

    def _show(self) -> None:
        page, status = self._page, self._loaded_model.status
        if status.loaded is not None:
            if status.failed is None:
                page.errors.dismiss(ErrorTopic.MODEL)
            self._update_legend(status.loaded)
        page.header.show_model(self._loaded_model.display_choice)
        page.header.show_status(status)
        page.empty.show_model(self._words(status))
        if status.loaded is not None:
            prompts = suggestions_for(status.loaded, self._loaded_model.choice.is_demo)
            page.empty.show_suggestions(prompts)
        if status.phase is Phase.FAILED and status.failed is not None:
            if status.failed.kind != "Cancelled":
                page.errors.show_failure(status.failed, ErrorTopic.MODEL, can_retry=True)
        elif status.phase is not Phase.ASLEEP and status.loaded is not None:
            page.offer(status.loaded)
            page.strip.show_model(status.loaded, status.calibrated)

    def _announce_phase(self) -> None:
        """Announce loading and loaded models to screen readers; errors announce themselves."""
        status = self._loaded_model.status
        words = "" if status.phase is Phase.FAILED else self._words(status)
        if words != self._announced:
            self._announced = words
            announce(self._page.header, words)

    def _update_legend(self, loaded: ModelLoaded) -> None:
        """Set the names and colours of the model's draft sources."""
        specials = dict(loaded.special_tokens) | dict.fromkeys(loaded.end_ids, "")
        self._appearance.legend.learn(loaded.sources, loaded.rules, specials, loaded.serving)

    def _words(self, status: ModelStatus) -> str:
        """Return the text about the model in an empty conversation."""
        if status.phase is Phase.FAILED and status.failed is not None:
            return self.tr("The model could not be loaded.")
        if status.phase is Phase.ASLEEP:
            return self.tr("The model is asleep; it wakes with your next message.")
        if status.loaded is None:
            return self.tr("The model is being loaded; you can write already.")
        choice = self._loaded_model.choice
        if status.loaded.continues_text:
            return self.tr("{0} is a base model: it continues your text.").format(choice.name)
        note = ""
        if choice.is_demo or is_small(status.loaded):
            note = " " + QCoreApplication.translate(
                "Chat", DEMO_NOTE if choice.is_demo else SMALL_NOTE
            )
        return self.tr("{0} is ready.{1}").format(choice.name, note)
