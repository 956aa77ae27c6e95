"""Sequence of verifications: a text, and its edits one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from app.engine.bridge import OnEvents, Request
from medusa_core.messages import ChatMessage, Verified, Verify

SESSION = "equilibrium"


class Edit(NamedTuple):
    """Replacement of some tokens.

    Attributes:
        start: Index of the first token.
        stop: Index after the last token.
        text: Their replacement.
    """

    start: int
    stop: int
    text: str

    def shifted_by(self, other: Edit, num_more: int) -> Edit:
        """Return this edit with indices shifted by an earlier edit that added `num_more` tokens."""
        start = self.start + (num_more if self.start >= other.stop else 0)
        stop = self.stop + (num_more if self.stop >= other.stop else 0)
        return self._replace(start=start, stop=stop)


class Verifications:
    """Runs one verification at a time; later edits wait, since their indices may change.

    Args:
        ask: Sends a command to the engine.
        on_events: Called with events of the latest verification.
        make_id: Makes ids of requests.

    Attributes:
        token_ids: Tokens of the last verified text.
        written: Spans of tokens that a model wrote, as in `Verified`.
        is_reading: Whether another text is being verified, which discards edits of this one.
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
        """Verify the text with a token replaced."""
        self._waiting.append(Edit(token, token + 1, text))
        if self._request is None:
            self.go_on()

    def receive(self, verified: Verified) -> int | None:
        """Receive the result of the running verification.

        Returns:
            Index of the first edited token; None for a new text.
        """
        edit, num_more = self._edit, len(verified.tokens) - len(self.token_ids)
        self.token_ids = tuple(token.token_id for token in verified.tokens)
        self._request = self._edit = None
        if edit is None:
            self._first, self.written = None, verified.answers
            return None
        moved = (Edit(start, stop, "").shifted_by(edit, num_more) for start, stop in self.written)
        self.written = tuple((span.start, span.stop) for span in moved)
        first = edit.start if self._first is None else min(self._first, edit.start)
        self._waiting = [waiting.shifted_by(edit, num_more) for waiting in self._waiting]
        self._first = first if self._waiting else None
        return first

    def go_on(self) -> bool:
        """Verify the next pending edit; returns whether there is one."""
        if not self._waiting:
            return False
        edit = self._waiting.pop(0)
        before, after = self.token_ids[: edit.start], self.token_ids[edit.stop :]
        ids = (SESSION, self._make_id())
        self._ask(Verify(*ids, before_ids=before, text=edit.text, after_ids=after), edit)
        return True

    def give_up(self) -> None:
        """Discard the running request and pending edits."""
        if self._request is not None:
            self._request.drop()
        self._request = self._edit = self._first = None
        self._waiting.clear()

    def _ask(self, request: Verify, edit: Edit | None = None) -> None:
        if self._request is not None:
            self._request.drop()
        self._edit = edit
        self._request = self._ask_engine(request, self._on_events)
