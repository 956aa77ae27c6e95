"""What is typed instead of a prompt: `/set`, `/save`, `/tree` and the others."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, Protocol

from medusa_core.chats.history.folding import fold
from medusa_core.chats.history.records import ConversationInfo
from medusa_core.chats.history.stored_chats import open_conversation
from medusa_core.errors import RequestError
from medusa_core.messages import TraceNode
from medusa_core.terminal.chat import ChosenModel, TerminalChat
from medusa_core.terminal.chat_record import ChatRecord
from medusa_core.terminal.screen import Screen, harmless
from medusa_core.terminal.setting_texts import (
    NAMES,
    meaning_of,
    setting_lines,
    setting_name,
    setting_value_text,
    typed_values,
    with_typed,
)
from medusa_core.terminal.statistics import statistics_lines
from medusa_core.terminal.tree_text import tree_lines

_MOST_LISTED = 20
_SYNONYMS = {"/exit": "/bye", "/quit": "/bye", "/?": "/help"}  # as other programs call them
_MOST_DIGITS = 6


class ChatModels(Protocol):
    """The models on this computer."""

    def names(self) -> Sequence[str]:
        """What they are called."""

    async def load(self, name: str) -> ChosenModel:
        """Load one in place of the one before.

        Raises:
            MedusaError: It can't be loaded; the one before is there.
        """


class SlashCommand(NamedTuple):
    """A command.

    Attributes:
        form: What may stand behind its name.
        does: What it does.
        run: Carries it out, by what stood there.
    """

    form: str
    does: str
    run: Callable[[str], Awaitable[None]]


class SlashCommands:
    """All commands of a chat.

    Attributes:
        is_over: The user said goodbye.
    """

    def __init__(
        self, chat: TerminalChat, screen: Screen, record: ChatRecord, models: ChatModels
    ) -> None:
        self._chat, self._screen, self._record, self._models = chat, screen, record, models
        self.is_over = False
        self._shown: tuple[ConversationInfo, ...] = ()  # by the last `/load` without a name
        self._commands = {
            "/set": SlashCommand("[NAME VALUE]", "change a setting, or show one or all", self._set),
            "/system": SlashCommand("[TEXT]", "what the model is told first", self._system),
            "/save": SlashCommand("[NAME]", "give this conversation a name", self._save),
            "/load": SlashCommand("[NAME]", "go on with another conversation", self._load),
            "/clear": SlashCommand("", "begin a new conversation", self._clear),
            "/model": SlashCommand("[NAME]", "let another model answer", self._model),
            "/measure": SlashCommand("", "measure this model's speed here again", self._measure),
            "/stats": SlashCommand("", "how the last answer came about", self._stats),
            "/tree": SlashCommand("", "the guesses of its last step", self._tree),
            "/help": SlashCommand("", "this list", self._help),
            "/bye": SlashCommand("", "leave; also /exit and Ctrl-D", self._bye),
        }

    def knows(self, line: str) -> bool:
        """Whether a line is a command, and no prompt: a path is none."""
        word = line.strip().partition(" ")[0]
        return word.startswith("/") and "/" not in word[1:] and "\n" not in line

    async def run(self, line: str) -> None:
        """Carry out a command.

        Raises:
            MedusaError: It can't be.
        """
        name, _, rest = line.strip().partition(" ")
        command = self._commands.get(_SYNONYMS.get(name.lower(), name.lower()))
        if command is None:
            raise RequestError(f"There is no command {name}.", "/help lists them.")
        await command.run(rest.strip())

    def completions(self, line: str) -> Iterable[str]:
        """What the end of a line may become; nothing for a prompt."""
        name, space, rest = line.partition(" ")
        if not space:
            return [one for one in self._commands if name and one.startswith(name)]
        match name:
            case "/set":
                key, space, value = rest.partition(" ")
                found = typed_values(key, self._chat.model.loaded) if space else NAMES
                return [one for one in found if one.startswith(value if space else key)]
            case "/load":
                return [
                    one.title for one in self._listed() if fold(one.title).startswith(fold(rest))
                ]
            case "/model":
                return [one for one in self._models.names() if one.startswith(rest)]
        return []

    # One after the other --------------------------------------------------------------------------

    async def _set(self, text: str) -> None:
        chat, loaded = self._chat, self._chat.model.loaded
        name, _, value = text.partition(" ")
        if not name:
            for line in setting_lines(chat.settings, loaded, shutil.get_terminal_size().columns):
                self._screen.say(line)
            return
        key = setting_name(name)
        if not value.strip():
            self._screen.say(f"{key} = {setting_value_text(chat.settings, key)}")
            self._screen.say(meaning_of(key, loaded))
            return
        chat.settings = with_typed(chat.settings, key, value, loaded)
        self._screen.remark(f"{key} = {setting_value_text(chat.settings, key)}")
        if lack := chat.lack_of(key):
            self._screen.remark(lack)

    async def _system(self, text: str) -> None:
        if not text:
            self._screen.say(self._chat.settings.system_prompt or "There is no system prompt.")
            return
        self._chat.settings = replace(self._chat.settings, system_prompt=text.strip('"'))
        self._screen.remark("It holds from the next prompt on.")

    async def _save(self, name: str) -> None:
        if self._record.history is None:
            raise RequestError(
                "This chat isn't kept.", "Start without --no-history to keep conversations."
            )
        if not self._chat.conversation.turns:
            raise RequestError("Nothing has been said yet.", "Chats are saved as they grow.")
        if name:
            self._record.rename(self._chat.conversation.session_id, name)
        self._screen.remark(f"saved as {name}" if name else "saved; /save NAME gives it a name")

    async def _load(self, name: str) -> None:
        if self._record.history is None:
            raise RequestError("This chat has no history.", "Start without --no-history.")
        if not name:
            self._shown = self._listed()
            for place, one in enumerate(self._shown, 1):
                day = datetime.fromtimestamp(one.changed_s).strftime("%Y-%m-%d")
                self._screen.say(f"{place:>3}  {day}  {harmless(one.title)}")
            return
        found = self._find(name)
        conversation = open_conversation(self._record.history, found.id)
        raw = self._record.history.settings(found.id)
        self._record.know(found.id)
        await self._chat.begin_anew(conversation)
        self._chat.use_saved_settings(raw)
        for turn in conversation.turns:
            self._screen.remark(f"> {harmless(turn.prompt.text)}")
            self._screen.say(f"{harmless(turn.answer.visible_text)}\n")

    async def _clear(self, _: str) -> None:
        await self._chat.begin_anew()
        self._screen.remark("A new conversation begins.")

    async def _model(self, name: str) -> None:
        if name:
            self._chat.use_model(await self._models.load(name))
        self._screen.remark(harmless(self._chat.description))
        if not name:
            for one in self._models.names():
                self._screen.say(f"  {harmless(one)}")

    async def _measure(self, _: str) -> None:
        self._screen.remark("measuring steps …")
        self._screen.remark(await self._chat.measure())

    async def _stats(self, _: str) -> None:
        last = self._chat.last
        if last.done is None:
            raise RequestError("There is no answer yet.", "Ask something first.")
        for line in statistics_lines(last.done, last.steps, self._chat.model.loaded):
            self._screen.say(line)

    async def _tree(self, _: str) -> None:
        trace = self._chat.last.trace
        if trace is None:
            raise RequestError("There is no step yet.", "Ask something first.")

        def paint(text: str, node: TraceNode) -> str:
            return self._screen.styled(text, self._screen.source_style(node.source))

        loaded = self._chat.model.loaded
        for line in tree_lines(trace, loaded.sources, loaded.special_tokens, paint):
            self._screen.say(line)

    async def _help(self, _: str) -> None:
        for name, command in self._commands.items():
            self._screen.say(f"{f'{name} {command.form}':<22}{command.does}")
        self._screen.say()
        self._screen.say('Alt-Enter begins a line; """ opens and closes a text of several.')
        self._screen.say("Ctrl-C stops an answer, Ctrl-D leaves, Tab completes.")

    async def _bye(self, _: str) -> None:
        self.is_over = True

    # What they share ------------------------------------------------------------------------------

    def _listed(self) -> tuple[ConversationInfo, ...]:
        history = self._record.history
        return () if history is None else history.conversations(limit=_MOST_LISTED)

    def _find(self, name: str) -> ConversationInfo:
        """The conversation of that number in the list, of that title, or with that in its title."""
        assert self._record.history is not None
        shown = self._shown or self._listed()  # what others write meanwhile moves no number
        if name.isdecimal() and len(name) <= _MOST_DIGITS and 0 < int(name) <= len(shown):
            return shown[int(name) - 1]
        every, wanted = self._record.history.conversations(), fold(name)
        for is_meant in (str.__eq__, str.startswith, str.__contains__):
            for one in every:
                if is_meant(fold(one.title), wanted):
                    return one
        raise RequestError(f"No conversation is called {name}.", "/load alone lists the latest.")
