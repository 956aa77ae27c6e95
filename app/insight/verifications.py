"""Asks the engine to verify a text, and its edits one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from app.engine.bridge import OnEvents, Request
from medusa_core.messages import ChatMessage, Verified, Verify

SESSION = "equilibrium"


class Edit(NamedTuple):
    """Another text for some tokens.

    Attributes:
        start: The first of them.
        stop: Behind the last one.
        text: What takes their place.
    """

    start: int
    stop: int
    text: str

    def behind(self, other: Edit, num_more: int) -> Edit:
        """The same edit when another one has made the text longer by some tokens."""
        start = self.start + (num_more if self.start >= other.stop else 0)
        stop = self.stop + (num_more if self.stop >= other.stop else 0)
        return self._replace(start=start, stop=stop)


class Verifications:
    """One verification at a time; an edit made meanwhile waits: its tokens' places may change.

    Args:
        ask: Asks the engine.
        on_events: Gets the events of the verification that was asked for last.
        make_id: Names requests.

    Attributes:
        token_ids: The text that was verified last.
        written: Where its tokens lie that a model wrote, as in `Verified`.
        is_reading: Another text is read; what is edited of this one is lost.
    """

    def __init__(
        self,
        ask: Callable[[Verify, OnEvents], Request],
        on_events: OnEvents,
        make_id: Callable[[], str],
    ) -> None:
        self.token_ids: tuple[int, ...] = ()
        self.written: tuple[tuple[int, int], ...] = ()
        self._ask_engine = ask
        self._on_events = on_events
        self._make_id = make_id
        self._request: Request | None = None  # whose result wasn't taken yet
        self._edit: Edit | None = None  # what it is about; None for a text that is read first
        self._waiting: list[Edit] = []
        self._first: int | None = None  # where the edits that were made in a row begin

    @property
    def is_reading(self) -> bool:
        return self._request is not None and self._edit is None

    def read(self, messages: tuple[ChatMessage, ...] = (), text: str = "") -> None:
        """Verify another text, and discard pending edits of the last one."""
        self._waiting.clear()
        self._ask(Verify(SESSION, self._make_id(), messages=messages, text=text))

    def replace(self, token: int, text: str) -> None:
        """Verify the same text with another one in the place of a token."""
        self._waiting.append(Edit(token, token + 1, text))
        if self._request is None:
            self.go_on()

    def take(self, verified: Verified) -> int | None:
        """Take what the running request gave.

        Returns:
            The first token that was edited since nothing waited; None for a text that was read.
        """
        edit, num_more = self._edit, len(verified.tokens) - len(self.token_ids)
        self.token_ids = tuple(token.token_id for token in verified.tokens)
        self._request = self._edit = None
        if edit is None:
            self._first, self.written = None, verified.answers
            return None
        moved = (Edit(start, stop, "").behind(edit, num_more) for start, stop in self.written)
        self.written = tuple((span.start, span.stop) for span in moved)
        first = edit.start if self._first is None else min(self._first, edit.start)
        self._waiting = [waiting.behind(edit, num_more) for waiting in self._waiting]
        self._first = first if self._waiting else None
        return first

    def go_on(self) -> bool:
        """Verify the next edit that waits; returns whether there is one."""
        if not self._waiting:
            return False
        edit = self._waiting.pop(0)
        before, after = self.token_ids[: edit.start], self.token_ids[edit.stop :]
        ids = (SESSION, self._make_id())
        self._ask(Verify(*ids, before_ids=before, text=edit.text, after_ids=after), edit)
        return True

    def give_up(self) -> None:
        """Wait for no request, which may have failed, nor for the edits after it."""
        if self._request is not None:
            self._request.drop()
        self._request = self._edit = self._first = None
        self._waiting.clear()

    def _ask(self, request: Verify, edit: Edit | None = None) -> None:
        if self._request is not None:
            self._request.drop()
        self._edit = edit
        self._request = self._ask_engine(request, self._on_events)
