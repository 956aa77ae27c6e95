"""Render a chat template that isn't ours in a process of its own.

It is ended when it takes more than two seconds or half a gigabyte. That costs 50 ms per load, and a
millisecond per turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from medusa_core.errors import TemplateError
from medusa_core.i18n import text_from_json, tr
from medusa_core.models.text.rendering import MAX_PROMPT_CHARS
from medusa_core.system.sandbox.worker import WorkerErrors, WorkerProcess

_MAX_S = 2.0
_MAX_LINE_CHARS = 6 * MAX_PROMPT_CHARS + 1000  # JSON escapes a character with at most six
_HINT = tr("Choose another model, or mend this one's chat_template.jinja.")
_ERRORS = WorkerErrors(
    start=lambda error: TemplateError(
        tr("No process can be started for the chat template: {0}.", error),
        "Close other programs and try again.",
    ),
    memory=lambda: TemplateError("The chat template takes too much memory.", _HINT),
    time=lambda _: TemplateError("The chat template doesn't come to an end.", _HINT),
    end=lambda: TemplateError("The chat template broke the process that renders it.", _HINT),
)


class TimeBudget:
    """Limits waiting to some seconds in a row; time without waiting refills the budget."""

    def __init__(self, max_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_s = self._left_s = max_s
        self._clock = clock
        self._since_s = clock()

    def begin(self) -> float:
        """Begin to wait; returns the seconds left."""
        now_s = self._clock()
        self._left_s = min(self._max_s, self._left_s + now_s - self._since_s)
        self._since_s = now_s
        return self._left_s

    def end(self) -> None:
        """End the wait."""
        now_s = self._clock()
        self._left_s = max(0.0, self._left_s - (now_s - self._since_s))
        self._since_s = now_s


class TemplateProcess:
    """Renders like `Rendering`, within limits of time and memory.

    Attributes:
        switch: As in `Rendering`.
    """

    def __init__(
        self, source: str, special_tokens: Mapping[str, str], max_s: float = _MAX_S
    ) -> None:
        """Compile a template.

        Args:
            source: The template.
            special_tokens: Tokens that it may name, such as `bos_token`.
            max_s: Longest wait for consecutive renderings.

        Raises:
            TemplateError: It is too long, doesn't parse, or takes too much time or memory.
        """
        self._template = {"source": source, "special_tokens": dict(special_tokens)}
        self._max_s = max_s
        self._budget = TimeBudget(max_s)
        self.worker = WorkerProcess(
            "medusa_core.models.text.template_worker", _ERRORS, max_line_chars=_MAX_LINE_CHARS
        )
        self.switch = self._compile()

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        opens_answer: bool,
        thinks: bool | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> str:
        """Render a conversation; see `Rendering.render`.

        Raises:
            TemplateError: The template refuses it, fails, or takes too much time or memory.
        """
        if self.worker.sandbox is None:
            self._compile()
        request = {
            "messages": messages,
            "opens_answer": opens_answer,
            "thinks": thinks,
            "tools": tools,
        }
        return str(self._request(request)["text"])

    def _compile(self) -> str:
        """Start the worker and return the template's variable that switches reasoning."""
        self.worker.start()
        return str(self._request(self._template)["switch"])

    def _request(self, message: object) -> dict[str, Any]:
        """Send a request within the time budget; raise the worker's error."""
        try:
            answer = self.worker.request(message, self._budget.begin())
        finally:
            self._budget.end()
            if self.worker.sandbox is None:  # failed: nobody waits any more
                self._budget = TimeBudget(self._max_s)
        if "error" in answer:
            raise TemplateError(
                text_from_json(answer["error"]), text_from_json(answer["hint"]), **answer["data"]
            )
        return answer
