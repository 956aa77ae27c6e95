"""What a request may cost."""

from __future__ import annotations

from dataclasses import dataclass

MOST_CHOICES = 16  # answers to one request


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the server.

    Attributes:
        most_running: Answers that take steps at the same time.
        most_waiting: Answers that wait for their turn.
        body_bytes: Of a request's body.
        body_s: Seconds in which a body must have arrived.
        head_s: Seconds in which a request's head must have arrived.
        send_s: Seconds that a reader may let us wait.
        idle_s: Seconds that a connection may be without a request.
        head_bytes: Of a request's head.
        most_connections: Open at the same time.
        text_chars: Of a text whose tokens are wanted: meanwhile no answer takes a step.
        json_parts: Objects, lists, names and strings of a body.
        dropped_bytes: Of a body that is refused unread, dropped so that its client reads the reply.
        drop_s: Seconds in which that must have arrived.
    """

    most_running: int = 16
    most_waiting: int = 64
    body_bytes: int = 8 << 20
    body_s: float = 30.0
    head_s: float = 10.0
    send_s: float = 30.0
    idle_s: int = 30
    head_bytes: int = 64 << 10
    most_connections: int = 1024
    text_chars: int = 1 << 19
    json_parts: int = 1 << 18
    dropped_bytes: int = 64 << 20
    drop_s: float = 5.0
