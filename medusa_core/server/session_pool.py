"""Conversations that were answered: earlier answers come back as the tokens they were decoded as.

Cached rows are found by the engine, whichever session they are in (`engine/prefix_cache.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from medusa_core.chats.conversation import new_id
from medusa_core.messages import ChatMessage, ToolCall

# What a session has read: the turns of a conversation, or tokens.
SessionHistory = tuple[ChatMessage, ...] | tuple[int, ...]


@dataclass(slots=True)
class _Pooled:
    """A session of the engine.

    Attributes:
        session_id: Its name there.
        cache_salt: As in `Generate`.
        history: What it has read and written, as requests send it.
        written: Of answers in it that call functions, by their places: what the engine wrote.
        is_busy: It is being answered.
        last_used: Counts requests.
    """

    session_id: str
    cache_salt: str
    history: SessionHistory = ()
    written: dict[int, ChatMessage] = field(default_factory=dict)
    is_busy: bool = False
    last_used: int = 0


class Lease(NamedTuple):
    """A session for one answer.

    Attributes:
        session_id: Its name in the engine.
        turns: The request's turns; earlier answers of ours bring their tokens.
        messages: The same for the engine, which reads its earlier calls as it wrote them.
        pooled: The session.
    """

    session_id: str
    turns: tuple[ChatMessage, ...]
    messages: tuple[ChatMessage, ...]
    pooled: _Pooled

    def conclude(self, history: SessionHistory, written: ChatMessage | None = None) -> None:
        """Remember what the session has read and written.

        Args:
            history: As later requests will send it.
            written: Its last turn as the engine wrote it, where that is something else.
        """
        self.pooled.history = history
        if written is not None:
            self.pooled.written[len(history) - 1] = written


class SessionPool:
    """Sessions that requests use one after the other.

    A request that continues a conversation gets its session, and so does one that asks the same
    again. Another one gets a new session, or the one that has rested for longest; what it has in
    common with any conversation of the same client is read as it was written there.
    """

    def __init__(self, most: int) -> None:
        """Make an empty pool.

        Args:
            most: Sessions; at least as many as answers are given at once.
        """
        self._most = most
        self._sessions: list[_Pooled] = []
        self._num_used = 0

    @contextmanager
    def lease(
        self, messages: tuple[ChatMessage, ...], prompt_ids: tuple[int, ...], cache_salt: str = ""
    ) -> Iterator[Lease]:
        """Use a session for an answer.

        Args:
            messages: The turns of the request.
            prompt_ids: Its tokens, where it has no turns.
            cache_salt: As in `Generate`; sessions with another one aren't considered.
        """
        wanted = messages or prompt_ids
        alike = [one for one in self._sessions if one.cache_salt == cache_salt]
        known = max(
            alike, key=lambda one: (_num_same(one.history, wanted), one.last_used), default=None
        )
        history, written = ((), {}) if known is None else (known.history, known.written)
        pooled = self._choose(wanted, cache_salt)
        self._num_used += 1
        pooled.is_busy, pooled.last_used = True, self._num_used
        try:
            yield _lease(pooled, messages, history, written)
        finally:
            pooled.is_busy = False

    def clear(self) -> None:
        """Forget what the sessions have read: another model reads anew."""
        for pooled in self._sessions:
            pooled.history = ()
            pooled.written.clear()

    def _choose(self, wanted: SessionHistory, cache_salt: str) -> _Pooled:
        idle = [one for one in self._sessions if not one.is_busy]
        alike = [one for one in idle if one.cache_salt == cache_salt]
        known = max(alike, key=lambda one: _fit(one.history, wanted), default=None)
        if known is not None and _fit(known.history, wanted):
            return known
        if len(self._sessions) < self._most or not idle:
            self._sessions.append(_Pooled(new_id(), cache_salt))
            return self._sessions[-1]
        rested = min(idle, key=lambda one: (bool(one.history), one.last_used))
        rested.cache_salt, rested.history, rested.written = cache_salt, (), {}
        return rested


def _fit(history: SessionHistory, wanted: SessionHistory) -> int:
    """How much of a session serves: all it has read, or all that is wanted; else nothing."""
    common = _num_same(history, wanted)
    return common if common in (len(history), len(wanted)) else 0


def _num_same(history: Sequence[object], wanted: Sequence[object]) -> int:
    for place, (left, right) in enumerate(zip(history, wanted, strict=False)):
        if not _is_same(left, right):
            return place
    return min(len(history), len(wanted))


def _is_same(left: object, right: object) -> bool:
    if isinstance(left, ChatMessage) and isinstance(right, ChatMessage):
        return _as_sent(left) == _as_sent(right)
    return left == right


def _as_sent(message: ChatMessage) -> ChatMessage:
    """A turn without what its sender can't know or may write otherwise."""
    calls = tuple(_normal(call) for call in message.tool_calls)
    return message._replace(token_ids=(), tool_calls=calls)


def _normal(call: ToolCall) -> ToolCall:
    """A call whose arguments are written in one way: some clients read them and write them anew."""
    try:
        return call._replace(arguments=json.dumps(json.loads(call.arguments)))
    except (ValueError, RecursionError):
        return call


def _lease(
    pooled: _Pooled,
    messages: tuple[ChatMessage, ...],
    history: SessionHistory,
    written: dict[int, ChatMessage],
) -> Lease:
    """A session for these turns, of which a conversation may know some as they were written."""
    known = [one for one in history if isinstance(one, ChatMessage)]
    num_same = _num_same(known, messages)
    turns = (*known[:num_same], *messages[num_same:])
    pooled.written = {at: one for at, one in written.items() if at < num_same}
    read = tuple(pooled.written.get(at, turn) for at, turn in enumerate(turns))
    return Lease(pooled.session_id, turns, read, pooled)
