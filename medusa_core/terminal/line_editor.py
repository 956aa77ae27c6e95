"""The line that is typed: history, several lines, completion."""

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
_PROMPT, _GOES_ON = "> ", ". "
_HINT = "Message, or /help"
Completions = Callable[[str], Iterable[str]]


class LineEditor:
    """Reads prompts from a terminal.

    Alt-Enter, or a text that begins with three quotation marks, makes several lines.
    """

    def __init__(self, history_file: Path | None, completions: Completions) -> None:
        """Prepare.

        Args:
            history_file: Where lines are remembered; None remembers them for this run.
            completions: What the last word of a line may become.
        """
        remembered = InMemoryHistory() if history_file is None else FileHistory(str(history_file))
        self._session: PromptSession[str] = PromptSession(
            history=remembered,
            completer=_WordCompleter(completions),
            complete_while_typing=False,
            multiline=Condition(lambda: is_open(get_app().current_buffer.text)),
            prompt_continuation=_GOES_ON,
            placeholder=[("fg:ansibrightblack", _HINT)],
            key_bindings=_bindings(),
            output=create_output(always_prefer_tty=True),
        )

    async def read(self) -> str:
        """The next prompt.

        Raises:
            EOFError: Ctrl-D: nobody wants to go on.
            KeyboardInterrupt: Ctrl-C: what was typed is thrown away.
        """
        return without_marks(await self._session.prompt_async(_PROMPT))


def is_open(text: str) -> bool:
    """Whether a text begins with three quotation marks, and lacks those at its end."""
    begin = text.lstrip()
    return begin.startswith(BLOCK) and BLOCK not in begin[len(BLOCK) :]


def without_marks(text: str) -> str:
    """What stands between the quotation marks; a text without them as it is."""
    found = re.fullmatch(rf"\s*{BLOCK}(.*?)(?:{BLOCK}(.*))?", text, re.DOTALL)
    return text if found is None else (found[1] + (found[2] or "")).strip("\n")


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return bindings


class _WordCompleter(Completer):
    """Completes the last word of a command."""

    def __init__(self, completions: Completions) -> None:
        self._completions = completions

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        typed = document.text_before_cursor
        if "\n" in typed:
            return
        # The command, then for /set a name; what stands behind is one value, spaces included.
        num_words = 2 if typed.startswith("/set ") else 1
        last = typed.split(" ", num_words)[-1]
        for text in self._completions(typed):
            yield Completion(text, -len(last))
