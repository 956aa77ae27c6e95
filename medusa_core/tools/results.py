"""Results of tool calls, of limited size."""

from __future__ import annotations

import threading
from collections.abc import Callable

from medusa_core.chats.rounds import ToolResult
from medusa_core.messages import as_content

MOST_RESULT_BYTES = 64 << 10


def cut_text(text: str, most_bytes: int) -> str:
    """Return the beginning of a longer text, with a note for the model."""
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= most_bytes:
        return text
    kept = raw[:most_bytes].decode("utf-8", "ignore")
    return f"{kept}\n[The result was cut: only the beginning of {len(raw):,} bytes is shown.]"


def text_result(text: str, *, is_error: bool = False, duration_s: float = 0.0) -> ToolResult:
    """Return a text as a result; the rest of a long one is replaced by a note for the model."""
    text = text.encode("utf-8", "replace").decode()
    text = cut_text(text, MOST_RESULT_BYTES)
    return ToolResult(as_content(text), is_error, duration_s)


_STOPPED = text_result("The user stopped this call.", is_error=True)


class RunningCall:
    """A running call, which delivers exactly one result."""

    def __init__(
        self, on_done: Callable[[ToolResult], None], stop: Callable[[], object] | None = None
    ) -> None:
        """Prepare a call.

        Args:
            on_done: Called once with the result, in the thread that has it.
            stop: Stops the tool immediately, from any thread; None until `on_cancel` sets it.
        """
        self._on_done = on_done
        self._lock = threading.Lock()
        self._is_done = False
        self._is_cancelled = False
        self._stop = stop

    def cancel(self) -> None:
        """Stop the call; its result is then an error that says so."""
        with self._lock:
            self._is_cancelled = True
            stop = self._stop
        if stop is not None:
            stop()
        self.finish_soon(_STOPPED)

    def on_cancel(self, stop: Callable[[], object]) -> None:
        """Set the function that stops the tool immediately, from any thread."""
        with self._lock:
            self._stop = stop
            is_late = self._is_cancelled
        if is_late:
            stop()

    def finish(self, result: ToolResult) -> None:
        """Pass on the result, unless the call already has one; a stopped call has no other."""
        with self._lock:
            if self._is_done:
                return
            self._is_done = True
            is_cancelled = self._is_cancelled
        self._on_done(_STOPPED if is_cancelled else result)

    def finish_soon(self, result: ToolResult) -> None:
        """Pass on the result in another thread: the caller may hold locks, or be the window's."""
        threading.Thread(target=self.finish, args=(result,), name="tool", daemon=True).start()
