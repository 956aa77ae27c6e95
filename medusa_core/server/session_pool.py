"""Sessions of the engine for stateless requests.

A later request sends earlier answers as text; the pool gives them back the token ids as which they
were decoded. The engine's prefix cache finds cached rows by tokens, in whichever session they are
(`engine/prefix_cache.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from medusa_core.chats.conversation import new_id
from medusa_core.messages import ChatMessage, ToolCall

# The messages of a conversation, or the token ids of a prompt and its continuation.
SessionHistory = tuple[ChatMessage, ...] | tuple[int, ...]


@dataclass(slots=True)
class _Pooled:
    """A session of the engine.

    Attributes:
        session_id: Id of the session.
        cache_salt: See `Generate`.
        history: Prompt and answer, as requests send them.
        decoded: Answers with tool calls as they were decoded, by their indices in `history`.
        is_busy: Whether a request uses it.
        last_used: Number of the last request.
    """

    session_id: str
    cache_salt: str
    history: SessionHistory = ()
    decoded: dict[int, ChatMessage] = field(default_factory=dict)
    is_busy: bool = False
    last_used: int = 0


class Lease(NamedTuple):
    """A session for one answer.

    Attributes:
        session_id: Id of the session.
        messages: Messages of the request; earlier answers have their token ids.
        decoded: Messages for the engine, with earlier tool calls as they were decoded.
    """

    session_id: str
    messages: tuple[ChatMessage, ...]
    decoded: tuple[ChatMessage, ...]
    pooled: _Pooled

    def update(self, history: SessionHistory, decoded: ChatMessage | None = None) -> None:
        """Store prompt and answer in the session.

        Args:
            history: Prompt and answer as later requests will send them.
            decoded: The answer as it was decoded, if that differs.
        """
        self.pooled.history = history
        if decoded is not None:
            self.pooled.decoded[len(history) - 1] = decoded


class SessionPool:
    """Sessions for requests.

    A request that continues or repeats a conversation gets its session. Another one gets a new
    session, or the least recently used one; messages that it shares with any conversation of the
    same client are read as they were decoded there.
    """

    def __init__(self, most: int) -> None:
        """Make an empty pool.

        Args:
            most: Most sessions; at least as many as concurrent answers.
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
            messages: Messages of the request.
            prompt_ids: Token ids of a request without messages.
            cache_salt: See `Generate`; sessions with another one aren't considered.
        """
        prompt = messages or prompt_ids
        best = max(
            (pooled for pooled in self._sessions if pooled.cache_salt == cache_salt),
            key=lambda pooled: (_num_common(pooled.history, prompt), pooled.last_used),
            default=_Pooled("", cache_salt),
        )
        history, decoded = best.history, best.decoded
        pooled = self._choose(prompt, cache_salt)
        self._num_used += 1
        pooled.is_busy, pooled.last_used = True, self._num_used
        try:
            yield _lease(pooled, messages, history, decoded)
        finally:
            pooled.is_busy = False

    def clear(self) -> None:
        """Clear the histories, because another model was loaded."""
        for pooled in self._sessions:
            pooled.history = ()
            pooled.decoded.clear()

    def _choose(self, prompt: SessionHistory, cache_salt: str) -> _Pooled:
        """Return the idle session with the longest common prefix, else a new or the oldest one."""
        idle = [pooled for pooled in self._sessions if not pooled.is_busy]
        same_client = [pooled for pooled in idle if pooled.cache_salt == cache_salt]
        best = max(same_client, key=lambda pooled: _overlap(pooled.history, prompt), default=None)
        if best is not None and _overlap(best.history, prompt):
            return best
        if len(self._sessions) < self._most or not idle:
            self._sessions.append(_Pooled(new_id(), cache_salt))
            return self._sessions[-1]
        oldest = min(idle, key=lambda pooled: (bool(pooled.history), pooled.last_used))
        oldest.cache_salt, oldest.history, oldest.decoded = cache_salt, (), {}
        return oldest


def _overlap(history: SessionHistory, prompt: SessionHistory) -> int:
    """Return the length of the common prefix if it is all of one of them, else 0."""
    common = _num_common(history, prompt)
    return common if common in (len(history), len(prompt)) else 0


def _num_common(history: Sequence[object], prompt: Sequence[object]) -> int:
    """Return the length of the common prefix."""
    pairs = zip(history, prompt, strict=False)
    return next(
        (index for index, pair in enumerate(pairs) if not _is_same(*pair)),
        min(len(history), len(prompt)),
    )


def _is_same(left: object, right: object) -> bool:
    """Whether two messages or tokens are equal as far as a client can tell."""
    if isinstance(left, ChatMessage) and isinstance(right, ChatMessage):
        return _as_sent(left) == _as_sent(right)
    return left == right


def _as_sent(message: ChatMessage) -> ChatMessage:
    """Remove what a client can't know or may format differently."""
    calls = tuple(_normal(call) for call in message.tool_calls)
    return message._replace(token_ids=(), tool_calls=calls)


def _normal(call: ToolCall) -> ToolCall:
    """Format a call's arguments in one way: some clients parse and reformat them."""
    try:
        return call._replace(arguments=json.dumps(json.loads(call.arguments)))
    except (ValueError, RecursionError):
        return call


def _lease(
    pooled: _Pooled,
    messages: tuple[ChatMessage, ...],
    history: SessionHistory,
    decoded: dict[int, ChatMessage],
) -> Lease:
    """Lease a session for messages, replacing those that a history has as decoded."""
    known = [message for message in history if isinstance(message, ChatMessage)]
    num_common = _num_common(known, messages)
    messages = (*known[:num_common], *messages[num_common:])
    pooled.decoded = {at: message for at, message in decoded.items() if at < num_common}
    for_engine = tuple(pooled.decoded.get(at, message) for at, message in enumerate(messages))
    return Lease(pooled.session_id, messages, for_engine, pooled)
