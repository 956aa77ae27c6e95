"""Results of tool calls, of limited size."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from medusa_core.chats.rounds import ToolResult
from medusa_core.messages import as_content

MOST_RESULT_BYTES = 64 << 10
_PIECES = re.compile(
    r"(?P<word>[A-Z]?[a-z]+)|(?P<capitals>[A-Z]+)|(?P<other>[^\x00-\x7f]+)|(?P<space>\s+\n|  +)"
    r"|(?P<char>\S|\n)"
)
_NOTE_BYTES = 64
REPEATED = "The same call was answered before, so it was not run again. Its result was:\n"


class ResultRoom(NamedTuple):
    """Room of results in a prompt.

    Attributes:
        each_bytes: Most bytes of one result.
        all_tokens: Most tokens of all results together, as `most_tokens` counts.
    """

    each_bytes: int
    all_tokens: int


def cut_text(text: str, most_bytes: int) -> str:
    """Return the beginning of a longer text, with a note for the model, unless that is longer."""
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= max(most_bytes, _NOTE_BYTES):
        return text
    kept = raw[: max(0, most_bytes)].decode("utf-8", "ignore")
    num_left = len(raw) - len(kept.encode("utf-8", "surrogatepass"))
    return f"{kept}\n[The result was cut: {num_left:,} of its {len(raw):,} bytes are left out.]"


def cut_results(texts: Sequence[str], room: ResultRoom) -> list[str]:
    """Return results that fit into a prompt: the longest are cut first, to the same length."""
    num_bytes = [min(len(text.encode("utf-8", "surrogatepass")), room.each_bytes) for text in texts]
    num_tokens = [most_tokens(cut_text(*one)) for one in zip(texts, num_bytes, strict=True)]
    level = left = max(0, room.all_tokens)
    for place, size in enumerate(sorted(num_tokens)):
        level = left // (len(texts) - place)
        if size > level:
            break
        level, left = size, left - size
    return [
        cut_text(text, most * min(size, level) // max(1, size))
        for text, most, size in zip(texts, num_bytes, num_tokens, strict=True)
    ]


@lru_cache(maxsize=256)
def most_tokens(text: str) -> int:
    """Estimate tokens without a tokenizer; ordinary text has fewer in all common vocabularies."""
    num = 0.0
    for found in _PIECES.finditer(text):
        length = found.end() - found.start()
        match found.lastgroup:
            case "word" | "space":
                num += math.ceil(length / 4)
            case "capitals":
                num += math.ceil(length / 2)
            case "other":
                num += len(found.group().encode("utf-8", "surrogatepass")) / 2
            case _:
                num += length
    return math.ceil(num)


def text_result(text: str, *, is_error: bool = False, duration_s: float = 0.0) -> ToolResult:
    """Return a text as a result; the rest of a long one is replaced by a note for the model."""
    text = text.encode("utf-8", "replace").decode()
    text = cut_text(text, MOST_RESULT_BYTES)
    return ToolResult(as_content(text), is_error, duration_s)


def repeated_result(result: ToolResult) -> ToolResult:
    """Return the result of a call for a repetition of the call, which isn't run."""
    text = REPEATED + result.text.removeprefix(REPEATED)
    return text_result(text, is_error=result.is_error)


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
