"""Foreign grammars are tried in a process of its own before the engine compiles them."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

from medusa_core.errors import GrammarError
from medusa_core.models.text.grammar_limits import MEMORY_BYTES
from medusa_core.system.sandbox.process import Sandbox

log = logging.getLogger(__name__)

_START_S = 30.0  # on a busy machine, from a cold disk
_MOST_S = 1.0
_MOST_RESIDENT_BYTES = MEMORY_BYTES + (64 << 20)
_HINT = "Write a simpler grammar, or ask without one."


class GrammarProcess:
    """Tries grammars within bounds of time and memory; for one thread."""

    def __init__(self, most_s: float = _MOST_S) -> None:
        """Prepare; the process starts with the first grammar.

        Args:
            most_s: Longest time for a grammar.
        """
        self._most_s = most_s
        self._sandbox: Sandbox | None = None
        self._end: Callable[[], object] = _nothing_begun

    def check(self, text: str) -> None:
        """See that a grammar can be compiled.

        Raises:
            GrammarError: It isn't valid, or takes too much time or memory.
        """
        sandbox = self._sandbox or self._begin()
        sandbox.send({"grammar": text})
        error = str(self._receive(sandbox, self._most_s)["error"])
        if error:
            raise GrammarError(error, _HINT)

    def _begin(self) -> Sandbox:
        try:
            sandbox = self._sandbox = Sandbox("medusa_core.models.text.grammar_worker")
        except OSError as error:
            raise GrammarError(
                f"No process can be started for the grammar: {error}.",
                "Close other programs and try again.",
            ) from error
        self._end = weakref.finalize(self, sandbox.close)
        self._receive(sandbox, _START_S)
        return sandbox

    def _receive(self, sandbox: Sandbox, time_s: float) -> dict[str, Any]:
        """What the process says; one that says nothing is ended, and later there is a new one.

        Raises:
            GrammarError: It took too long or too much memory.
        """

        def check_memory() -> None:
            if sandbox.resident_bytes() > _MOST_RESIDENT_BYTES:
                raise GrammarError("The grammar takes too much memory.", _HINT)

        answer = None
        try:
            answer = sandbox.receive(time_s, check_memory)
        except TimeoutError:
            raise GrammarError("The grammar takes too much time to compile.", _HINT) from None
        finally:
            if answer is None:
                self._sandbox = None
                log.debug("the compiler of grammars said: %s", sandbox.last_words())
                self._end()
        if answer is None:
            raise GrammarError("The grammar is too deep to be compiled.", _HINT)
        return answer


def _nothing_begun() -> None:
    """Before there is a process."""
