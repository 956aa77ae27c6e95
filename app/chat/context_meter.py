"""Context usage of the next prompt, counted with the model's tokenizer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, QTimer

from app.chat.chat_page import ChatPage
from app.chat_settings.panel import (
    TEMPLATE,
    ChatSettingsPanel,
)
from app.chat_settings.tool_choice import ToolChoice
from app.engine.bridge import EngineBridge, Request
from app.engine.loaded_model import LoadedModel
from app.i18n.engine_texts import engine_text
from app.i18n.numbers import Number
from app.state.chat import ChatState
from medusa_core.api import with_attachments
from medusa_core.chats.conversation import new_id
from medusa_core.loading.state import Phase
from medusa_core.messages import (
    ChatMessage,
    Count,
    Counted,
    Cut,
    Event,
    Failed,
    GenerateSettings,
    ModelLoaded,
    Role,
)

if TYPE_CHECKING:
    from medusa_core.api import ChatForm

WAIT_MS = 250  # after the last key


class ContextMeter(QObject):
    """Counts the next prompt's tokens when it changes; shows the rendered prompt on demand."""

    def __init__(
        self,
        page: ChatPage,
        bridge: EngineBridge,
        loaded_model: LoadedModel,
        state: ChatState,
    ) -> None:
        super().__init__(page)
        self._page = page
        self._panel: ChatSettingsPanel = page.settings_panel
        self._bridge = bridge
        self._loaded_model = loaded_model
        self._state = state
        self._request: Request | None = None
        self._tool_cost = _ToolCost(bridge, page.settings_panel.tools)
        self._has_draft = False
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.setInterval(WAIT_MS)
        self._wait.timeout.connect(self._ask)
        for changed in (state.draft_changed, state.phase_changed, state.conversation_changed):
            changed.connect(self.refresh)
        page.settings_panel.changed.connect(self.refresh)
        page.settings_panel.tools.changed.connect(self.refresh)
        page.settings_panel.groups[TEMPLATE].opened.connect(self.refresh)
        loaded_model.chosen.connect(self.refresh)

    def refresh(self) -> None:
        """Count again, debounced."""
        self._wait.start()

    def _ask(self) -> None:
        loaded = self._loaded_model.status.loaded
        is_ready = self._loaded_model.status.phase is Phase.READY
        if not is_ready or loaded is None or self._state.is_busy:
            return
        unsent = self._state.draft
        draft = with_attachments(unsent.text.strip(), unsent.attachments)
        self._has_draft = bool(draft)
        # Also without a draft: an answer that ends the conversation is over, not to be continued.
        question = (*self._state.conversation.remembered(), ChatMessage(Role.USER, draft))
        if self._request is not None:
            self._request.drop()
        # A schema changes no prompt; an invalid one is refused only where it is to be enforced.
        settings = replace(self._panel.generate_settings(), json_schema="")
        tools = self._panel.tools.texts
        form = _form(loaded, settings, self._panel.framed(question), tools)
        count = Count(
            "",  # of no conversation
            new_id(),
            form.messages if draft else form.messages[:-1],
            settings,
            wants_prompt=self._panel.groups[TEMPLATE].is_open,
            tools=form.tools,
        )
        self._request = self._bridge.ask(count, self._handle_events)
        self._tool_cost.measure(loaded, settings, tools)

    def _handle_events(self, events: tuple[Event, ...]) -> None:
        for event in events:
            if isinstance(event, Counted):
                self._show(event)
            elif isinstance(event, Failed):
                self._panel.template.show_error(engine_text(event.message), engine_text(event.hint))
                if event.kind == "TemplateError":
                    self._page.warn_context(self.tr("The chat template can't write this chat."))

    def _show(self, counted: Counted) -> None:
        if self._state.is_busy:
            return
        self._page.show_context(counted.num_tokens, counted.context_tokens)
        self._panel.template.show_prompt(counted.prompt)
        if counted.lack and not self._has_draft:
            words = self.tr(
                "The answer filled the model's memory ({0} tokens). Start a new chat, or go on: "
                "the oldest part is left out."
            )
            self._page.note_context(words.format(f"{Number(counted.context_tokens):,}"))
        elif counted.lack:
            self._page.warn_context(self.tr("Too long: {lack}").format(lack=counted.lack))
        elif counted.cut is not None:
            self._page.show_context(counted.num_read, counted.context_tokens, _cut(counted.cut))


def _cut(cut: Cut) -> str:
    words = QCoreApplication.translate("ContextMeter", "{messages} don't fit and won't be read · ")
    return words.format(messages=_messages(cut))


def _form(
    loaded: ModelLoaded,
    settings: GenerateSettings,
    messages: tuple[ChatMessage, ...],
    tools: tuple[str, ...],
) -> ChatForm:
    from medusa_core.api import chat_form  # the window is to open before it is imported

    return chat_form(loaded, settings, messages, tools)


class _ToolCost:
    """Measures the tokens that the chosen tools add to a prompt, by a prompt with and without."""

    def __init__(self, bridge: EngineBridge, choice: ToolChoice) -> None:
        self._bridge = bridge
        self._choice = choice
        self._measured: tuple[ModelLoaded, tuple[str, ...]] | None = None

    def measure(
        self, loaded: ModelLoaded, settings: GenerateSettings, tools: tuple[str, ...]
    ) -> None:
        """Measure unless the same tools were measured for this model."""
        if self._measured == (loaded, tools):
            return
        self._measured = (loaded, tools)
        self._choice.show_tokens(None)
        if not tools or loaded.is_remote:
            return
        question = (ChatMessage(Role.USER, "?"),)
        form = _form(loaded, settings, question, tools)
        numbers: list[int] = []

        def show(events: tuple[Event, ...]) -> None:
            numbers.extend(e.num_tokens for e in events if isinstance(e, Counted))
            if len(numbers) == 2 and self._measured == (loaded, tools):
                self._choice.show_tokens(abs(numbers[0] - numbers[1]))

        for messages, offered in ((question, ()), (form.messages, form.tools)):
            self._bridge.ask(Count("", new_id(), messages, settings, tools=offered), show)


def describe_cut(cut: Cut) -> str:
    """Describe which messages are cut from a conversation that exceeds the context."""
    words = QCoreApplication.translate(
        "ContextMeter", "The model no longer reads {messages}: they don't fit into its context."
    )
    return words.format(messages=_messages(cut))


def _messages(cut: Cut) -> str:
    if cut.num_messages == 1:
        return QCoreApplication.translate("ContextMeter", "1 earlier message")
    words = QCoreApplication.translate("ContextMeter", "{count} earlier messages")
    return words.format(count=f"{Number(cut.num_messages):,}")
