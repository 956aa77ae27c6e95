"""Compile grammars in a process of its own first, before the engine compiles them."""

from __future__ import annotations

from medusa_core.errors import GrammarError
from medusa_core.i18n import text_from_json, tr
from medusa_core.system.sandbox.worker import WorkerErrors, WorkerProcess

_MAX_S = 1.0
_HINT = tr("Write a simpler grammar, or ask without one.")
_ERRORS = WorkerErrors(
    start=lambda error: GrammarError(
        tr("No process can be started for the grammar: {0}.", error),
        "Close other programs and try again.",
    ),
    memory=lambda: GrammarError("The grammar takes too much memory.", _HINT),
    time=lambda _: GrammarError("The grammar takes too much time to compile.", _HINT),
    end=lambda: GrammarError("The grammar is too deep to be compiled.", _HINT),
)


class GrammarProcess:
    """Compiles grammars within limits of time and memory; for one thread."""

    def __init__(self) -> None:
        self._worker = WorkerProcess("medusa_core.models.text.grammar_worker", _ERRORS)

    def check(self, text: str) -> None:
        """Check that a grammar can be compiled; the first call starts the process.

        Raises:
            GrammarError: It is invalid, or takes too much time or memory.
        """
        if self._worker.sandbox is None:
            self._worker.start()
        error = text_from_json(self._worker.request({"grammar": text}, _MAX_S)["error"])
        if error:
            raise GrammarError(error, _HINT)
