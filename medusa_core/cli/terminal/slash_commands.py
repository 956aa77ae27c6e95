"""The slash commands of a chat, such as `/set`, `/save` and `/tree`."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, Protocol

from medusa_core.chats.history.folding import fold
from medusa_core.chats.history.records import ConversationInfo
from medusa_core.chats.history.stored_chats import open_conversation
from medusa_core.cli.terminal.chat import ChosenModel, TerminalChat
from medusa_core.cli.terminal.chat_record import ChatRecord
from medusa_core.cli.terminal.screen import Screen, escaped
from medusa_core.cli.terminal.setting_texts import (
    NAMES,
    meaning_of,
    setting_lines,
    setting_name,
    setting_value_text,
    typed_values,
    with_parsed,
)
from medusa_core.cli.terminal.statistics import statistics_lines
from medusa_core.cli.terminal.tree_text import tree_lines
from medusa_core.errors import RequestError
from medusa_core.messages import TraceNode

_MOST_LISTED = 20
_SYNONYMS = {"/exit": "/bye", "/quit": "/bye", "/?": "/help"}  # of similar programs
_MOST_DIGITS = 6


class ChatModels(Protocol):
    """The models on this computer."""

    def names(self) -> Sequence[str]:
        """Return the names of the models."""

    async def load(self, name: str) -> ChosenModel:
        """Replace the loaded model.

        Raises:
            MedusaError: Loading failed; the previous model is still loaded.
        """


class SlashCommand(NamedTuple):
    """A slash command: its function, arguments and help.

    Attributes:
        arguments: Its arguments, for `/help`.
        summary: Its effect, for `/help`.
        run: Runs it with its arguments.
    """

    arguments: str
    summary: str
    run: Callable[[str], Awaitable[None]]


class SlashCommands:
    """All commands of a chat.

    Attributes:
        is_over: Whether the user has left the chat.
    """

    def __init__(
        self, chat: TerminalChat, screen: Screen, record: ChatRecord, models: ChatModels
    ) -> None:
        self._chat, self._screen, self._record, self._models = chat, screen, record, models
        self.is_over = False
        self._numbered: tuple[ConversationInfo, ...] = ()  # by the last `/load` without a name
        self._commands = {
            "/set": SlashCommand("[NAME VALUE]", "change a setting, or show one or all", self._set),
            "/system": SlashCommand("[TEXT]", "set or show the system prompt", self._system),
            "/save": SlashCommand("[NAME]", "give this conversation a name", self._save),
            "/load": SlashCommand("[NAME]", "go on with another conversation", self._load),
            "/clear": SlashCommand("", "begin a new conversation", self._clear),
            "/model": SlashCommand("[NAME]", "let another model answer", self._model),
            "/measure": SlashCommand("", "repeat this model's measurements", self._measure),
            "/stats": SlashCommand("", "figures of the last answer", self._stats),
            "/tree": SlashCommand("", "the draft tokens of its last step", self._tree),
            "/help": SlashCommand("", "this list", self._help),
            "/bye": SlashCommand("", "leave; also /exit and Ctrl-D", self._bye),
        }

    def is_command(self, line: str) -> bool:
        """Return whether a line is a command; paths are prompts."""
        word = line.strip().partition(" ")[0]
        return word.startswith("/") and "/" not in word[1:] and "\n" not in line

    async def run(self, line: str) -> None:
        """Run the command in a line; unknown ones raise.

        Raises:
            MedusaError: The command is unknown or failed.
        """
        name, _, rest = line.strip().partition(" ")
        command = self._commands.get(_SYNONYMS.get(name.lower(), name.lower()))
        if command is None:
            raise RequestError(f"There is no command {name}.", "/help lists them.")
        await command.run(rest.strip())

    def completions(self, line: str) -> Iterable[str]:
        """Return completions of the last word of a command."""
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
                    one.title for one in self._latest() if fold(one.title).startswith(fold(rest))
                ]
            case "/model":
                return [one for one in self._models.names() if one.startswith(rest)]
        return []

    # The commands ---------------------------------------------------------------------------------

    async def _set(self, text: str) -> None:
        """Change a setting, or list settings."""
        chat, loaded = self._chat, self._chat.model.loaded
        name, _, value = text.partition(" ")
        if not name:
            for line in setting_lines(chat.settings, loaded, shutil.get_terminal_size().columns):
                self._screen.print(line)
            return
        key = setting_name(name)
        if not value.strip():
            self._screen.print(f"{key} = {setting_value_text(chat.settings, key)}")
            self._screen.print(meaning_of(key, loaded))
            return
        chat.settings = with_parsed(chat.settings, key, value, loaded)
        self._screen.print_dim(f"{key} = {setting_value_text(chat.settings, key)}")
        if reason := chat.why_unused(key):
            self._screen.print_dim(reason)

    async def _system(self, text: str) -> None:
        """Show or change the system prompt."""
        if not text:
            self._screen.print(self._chat.settings.system_prompt or "There is no system prompt.")
            return
        self._chat.settings = replace(self._chat.settings, system_prompt=text.strip('"'))
        self._screen.print_dim("It holds from the next prompt on.")

    async def _save(self, name: str) -> None:
        """Name the conversation."""
        if self._record.history is None:
            raise RequestError(
                "This chat isn't kept.", "Start without --no-history to keep conversations."
            )
        if not self._chat.conversation.turns:
            raise RequestError("Nothing has been said yet.", "Chats are saved as they grow.")
        if name:
            self._record.rename(self._chat.conversation.session_id, name)
        self._screen.print_dim(f"saved as {name}" if name else "saved; /save NAME gives it a name")

    async def _load(self, name: str) -> None:
        """List conversations, or continue one."""
        if self._record.history is None:
            raise RequestError("This chat has no history.", "Start without --no-history.")
        if not name:
            self._numbered = self._latest()
            for place, one in enumerate(self._numbered, 1):
                day = datetime.fromtimestamp(one.changed_s).strftime("%Y-%m-%d")
                self._screen.print(f"{place:>3}  {day}  {escaped(one.title)}")
            return
        found = self._find(name)
        conversation = open_conversation(self._record.history, found.id)
        raw = self._record.history.settings(found.id)
        self._record.set_known(found.id)
        await self._chat.use_conversation(conversation)
        self._chat.use_saved_settings(raw)
        for turn in conversation.turns:
            self._screen.print_dim(f"> {escaped(turn.prompt.text)}")
            self._screen.print(f"{escaped(turn.answer.shown_text)}\n")

    async def _clear(self, _: str) -> None:
        """Begin a new conversation."""
        await self._chat.use_conversation()
        self._screen.print_dim("A new conversation begins.")

    async def _model(self, name: str) -> None:
        """Load another model, or list models."""
        if name:
            self._chat.use_model(await self._models.load(name))
        self._screen.print_dim(escaped(self._chat.description))
        if not name:
            for one in self._models.names():
                self._screen.print(f"  {escaped(one)}")

    async def _measure(self, _: str) -> None:
        """Measure step costs again."""
        self._screen.print_dim("measuring steps …")
        self._screen.print_dim(await self._chat.measure())

    async def _stats(self, _: str) -> None:
        """Show the statistics of the last answer."""
        last = self._chat.last
        if last.done is None:
            raise RequestError("There is no answer yet.", "Ask something first.")
        for line in statistics_lines(last.done, last.steps, self._chat.model.loaded):
            self._screen.print(line)

    async def _tree(self, _: str) -> None:
        """Show the draft tree of the last step."""
        trace = self._chat.last.trace
        if trace is None:
            raise RequestError("There is no step yet.", "Ask something first.")

        def paint(text: str, node: TraceNode) -> str:
            """Colour a token by its source."""
            return self._screen.styled(text, self._screen.source_style(node.source))

        loaded = self._chat.model.loaded
        for line in tree_lines(trace, loaded.sources, loaded.special_tokens, paint):
            self._screen.print(line)

    async def _help(self, _: str) -> None:
        """List the commands."""
        for name, command in self._commands.items():
            self._screen.print(f"{f'{name} {command.arguments}':<22}{command.summary}")
        self._screen.print()
        self._screen.print('Alt-Enter begins a line; """ opens and closes a text of several.')
        self._screen.print("Ctrl-C stops an answer, Ctrl-D leaves, Tab completes.")

    async def _bye(self, _: str) -> None:
        """End the chat."""
        self.is_over = True

    # Conversations of the history -----------------------------------------------------------------

    def _latest(self) -> tuple[ConversationInfo, ...]:
        """Return the newest conversations."""
        history = self._record.history
        return () if history is None else history.conversations(limit=_MOST_LISTED)

    def _find(self, name: str) -> ConversationInfo:
        """Find a conversation by its number or a part of its title."""
        assert self._record.history is not None
        numbered = self._numbered or self._latest()  # numbers stay while other programs write
        if name.isdecimal() and len(name) <= _MOST_DIGITS and 0 < int(name) <= len(numbered):
            return numbered[int(name) - 1]
        every, wanted = self._record.history.conversations(), fold(name)
        for matches in (str.__eq__, str.startswith, str.__contains__):
            for one in every:
                if matches(fold(one.title), wanted):
                    return one
        raise RequestError(f"No conversation is called {name}.", "/load alone lists the latest.")
