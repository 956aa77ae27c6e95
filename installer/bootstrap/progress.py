"""What an installation tells and asks on its way."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from installer.bootstrap.files import folder_bytes

MEASURE_EVERY_S = 1.0


class Reporter(Protocol):
    """Interface of the window or the terminal; called from the installing thread."""

    def step(self, text: str) -> None:
        """Report the begin of a new step."""
        ...

    def line(self, text: str) -> None:
        """Report a line of uv's output, for the log."""
        ...

    def amount(self, done: int, total: int) -> None:
        """Report bytes on the disk, of about how many in all."""
        ...

    def confirm(self, question: str) -> bool:
        """Ask; returns whether the answer is yes."""
        ...

    def is_cancelled(self) -> bool:
        """Return whether the user wants to cancel."""
        ...


@contextmanager
def report_growth(
    folder: Path, total: int, tell: Callable[[int, int], None], every_s: float = MEASURE_EVERY_S
) -> Iterator[None]:
    """Report the size of a growing folder while the body runs.

    Args:
        folder: it grows.
        total: bytes that it is expected to reach.
        tell: gets bytes and the total, in another thread.
        every_s: seconds between two looks.
    """
    is_over = threading.Event()

    def measure() -> None:
        while not is_over.wait(every_s):
            tell(folder_bytes(folder), total)

    thread = threading.Thread(target=measure, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
