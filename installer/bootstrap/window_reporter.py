"""Carries what an installation tells and asks from its thread to the window's."""

import queue
import threading
from collections.abc import Callable
from typing import Protocol


class Page(Protocol):
    """The window, as a thread of work sees it; each is called in the window's own thread."""

    def show_step(self, text: str) -> None:
        """A new part begins."""
        ...

    def show_line(self, text: str) -> None:
        """What uv says."""
        ...

    def show_amount(self, done: int, total: int) -> None:
        """Bytes on the disk, of about how many."""
        ...

    def ask(self, question: str) -> bool:
        """Ask for yes or no."""
        ...


class WindowReporter:
    """A reporter for one installation.

    Attributes:
        events: calls that the window's thread has to make.
        cancel: set by the window when the user wants to end it.
    """

    def __init__(self, page: Page) -> None:
        self.events: queue.Queue[Callable[[], None]] = queue.Queue()
        self.cancel = threading.Event()
        self._page = page

    def step(self, text: str) -> None:
        """A new part begins."""
        self.events.put(lambda: self._page.show_step(text))

    def line(self, text: str) -> None:
        """What uv says, for the log."""
        self.events.put(lambda: self._page.show_line(text))

    def amount(self, done: int, total: int) -> None:
        """Bytes on the disk, of about how many in all."""
        self.events.put(lambda: self._page.show_amount(done, total))

    def confirm(self, question: str) -> bool:
        """Ask in the window, and wait for the answer."""
        answers: queue.Queue[bool] = queue.Queue()
        self.events.put(lambda: answers.put(self._page.ask(question)))
        while not self.cancel.is_set():
            try:
                return answers.get(timeout=0.2)
            except queue.Empty:
                continue
        return False

    def is_cancelled(self) -> bool:
        """Whether the user wants to end it."""
        return self.cancel.is_set()

    def deliver(self) -> None:
        """Make the calls that wait; in the window's thread."""
        while not self.events.empty():
            self.events.get()()
