"""A foreign chat template, rendered in a process of its own.

Why not in a sandbox alone: `'%1000000000d'`, `[1] * 10**9`, `7**n`, loops within loops, macros that
call themselves, filters such as `center` and `batch`: each would need its own bound, and one that
was forgotten hangs the engine. A process holds for all of them: it is given two seconds and half a
gigabyte, and ended when it takes more. It costs a twentieth of a second at load, and a millisecond
a turn.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from medusa_core.errors import TemplateError
from medusa_core.models.text.rendering import MOST_CHARS
from medusa_core.models.text.template_worker import MEMORY_BYTES
from medusa_core.models.text.time_budget import TimeBudget
from medusa_core.system.sandbox.process import Sandbox

log = logging.getLogger(__name__)

_START_S = 30.0  # on a busy machine, from a cold disk
_MOST_S = 2.0
_MOST_RESIDENT_BYTES = MEMORY_BYTES + (64 << 20)
_MOST_LINE_CHARS = 6 * MOST_CHARS + 1000  # JSON writes a character in six at most
_HINT = "Choose another model, or mend this one's chat_template.jinja."


class TemplateProcess:
    """Renders as `Rendering` does, within bounds of time and memory.

    Attributes:
        switch: As of `Rendering`.
    """

    def __init__(
        self, source: str, special_tokens: Mapping[str, str], most_s: float = _MOST_S
    ) -> None:
        """Compile a template.

        Args:
            source: The template.
            special_tokens: Texts that it may name, such as `bos_token`.
            most_s: Longest wait in one go, however many prompts are rendered in it.

        Raises:
            TemplateError: It is too long, doesn't parse, or takes too much time or memory.
        """
        self._template = {"source": source, "special_tokens": dict(special_tokens)}
        self._most_s = most_s
        self._patience = TimeBudget(most_s)
        self._sandbox: Sandbox | None = None
        self._end: Callable[[], object] = _nothing_to_end
        self.switch = ""
        self._begin()

    def render(
        self,
        turns: Sequence[Mapping[str, Any]],
        opens_answer: bool,
        thinks: bool | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> str:
        """The prompt of a conversation; see `Rendering`.

        Raises:
            TemplateError: The template refuses it, fails, or takes too much time or memory.
        """
        sandbox = self._sandbox or self._begin()
        question = {
            "turns": turns,
            "opens_answer": opens_answer,
            "thinks": thinks,
            "tools": tools,
        }
        answer = self._request(sandbox, question)
        return str(answer["text"])

    def _begin(self) -> Sandbox:
        """Start the process and give it the template."""
        try:
            sandbox = self._sandbox = Sandbox(
                "medusa_core.models.text.template_worker", _MOST_LINE_CHARS
            )
        except OSError as error:
            raise TemplateError(
                f"No process can be started for the chat template: {error}.",
                "Close other programs and try again.",
            ) from error
        self._end = weakref.finalize(self, sandbox.close)
        self._receive(sandbox, _START_S)
        compiled = self._request(sandbox, self._template)
        self.switch = str(compiled["switch"])
        return sandbox

    def _request(self, sandbox: Sandbox, question: object) -> dict[str, Any]:
        patience = self._patience
        left_s = patience.begin()
        try:
            sandbox.send(question)
            answer = self._receive(sandbox, left_s)
        finally:
            patience.end()
        if "error" in answer:
            raise TemplateError(str(answer["error"]), str(answer["hint"]), **answer["data"])
        return answer

    def _receive(self, sandbox: Sandbox, time_s: float) -> dict[str, Any]:
        """What the process says; one that says nothing is ended, and the next turn has a new one.

        Raises:
            TemplateError: It took too long or too much memory.
        """

        def check_memory() -> None:
            if sandbox.resident_bytes() > _MOST_RESIDENT_BYTES:
                raise TemplateError("The chat template takes too much memory.", _HINT)

        answer = None
        try:
            answer = sandbox.receive(time_s, check_memory)
        except TimeoutError:
            raise TemplateError("The chat template doesn't come to an end.", _HINT) from None
        finally:
            if answer is None:
                self._sandbox = None
                log.debug("the renderer said: %s", sandbox.last_words())
                self._patience = TimeBudget(self._most_s)  # whoever waited waits no more
                self._end()
        if answer is None:
            raise TemplateError("The chat template broke the process that renders it.", _HINT)
        return answer


def _nothing_to_end() -> None:
    """Before there is a process."""
