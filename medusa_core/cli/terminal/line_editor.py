"""The prompt line: history, multiple lines, completion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import create_output

BLOCK = '"""'
_PROMPT, _CONTINUATION = "> ", ". "
_HINT = "Message, or /help"
Completions = Callable[[str], Iterable[str]]


class LineEditor:
    """Reads prompts from a terminal.

    Alt-Enter inserts a line break, and three quotation marks begin a text of several lines.
    """

    def __init__(self, history_file: Path | None, completions: Completions) -> None:
        """Initialize.

        Args:
            history_file: Keeps the lines; None keeps them for this run.
            completions: Returns completions of the last word of a line.
        """
        history = InMemoryHistory() if history_file is None else FileHistory(str(history_file))
        self._session: PromptSession[str] = PromptSession(
            history=history,
            completer=_WordCompleter(completions),
            complete_while_typing=False,
            multiline=Condition(lambda: is_open(get_app().current_buffer.text)),
            prompt_continuation=_CONTINUATION,
            placeholder=[("fg:ansibrightblack", _HINT)],
            key_bindings=_bindings(),
            output=create_output(always_prefer_tty=True),
        )

    async def read(self) -> str:
        """Read the next prompt.

        Raises:
            EOFError: Ctrl-D.
            KeyboardInterrupt: Ctrl-C.
        """
        return without_marks(await self._session.prompt_async(_PROMPT))


async def ask_user(question: str) -> str:
    """Read an answer to a question.

    Raises:
        EOFError: Ctrl-D.
        KeyboardInterrupt: Ctrl-C.
    """
    session: PromptSession[str] = PromptSession(output=create_output(always_prefer_tty=True))
    # Ctrl-C is a key here; the signal's handler belongs to the answer.
    return await session.prompt_async(question, handle_sigint=False)


def is_open(text: str) -> bool:
    """Return whether a text has opening quotation marks without closing ones."""
    begin = text.lstrip()
    return begin.startswith(BLOCK) and BLOCK not in begin[len(BLOCK) :]


def without_marks(text: str) -> str:
    """Return a text without its three quotation marks."""
    found = re.fullmatch(rf"\s*{BLOCK}(.*?)(?:{BLOCK}(.*))?", text, re.DOTALL)
    return text if found is None else (found[1] + (found[2] or "")).strip("\n")


def _bindings() -> KeyBindings:
    """Return the key bindings: Alt-Enter begins a line."""
    bindings = KeyBindings()

    @bindings.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        """Begin a line."""
        event.current_buffer.insert_text("\n")

    return bindings


class _WordCompleter(Completer):
    """Completes the last word of a command."""

    def __init__(self, completions: Completions) -> None:
        self._completions = completions

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """Yield the completions that begin with the last word."""
        typed = document.text_before_cursor
        if "\n" in typed:
            return
        # /set has a name and a value, other commands have a value, which may contain spaces.
        num_words = 2 if typed.startswith("/set ") else 1
        last = typed.split(" ", num_words)[-1]
        for text in self._completions(typed):
            yield Completion(text, -len(last))
