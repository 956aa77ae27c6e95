"""Limits of the server."""

from __future__ import annotations

from dataclasses import dataclass

MOST_CHOICES = 16  # answers to one request


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the server: sizes, times and numbers of requests.

    Attributes:
        most_running: Answers at the same time.
        most_waiting: Queued answers.
        body_bytes: Size of a request's body.
        body_s: Timeout for a body in seconds.
        head_s: Timeout for a request's head in seconds.
        send_s: Timeout for a client to read, in seconds.
        idle_s: Timeout of a connection without a request, in seconds.
        head_bytes: Size of a request's head.
        most_connections: Open connections.
        text_chars: Length of a text to tokenize, since that blocks all answers.
        texts: Texts of a request for embeddings.
        json_parts: Objects, lists, keys and strings of a body.
        dropped_bytes: Size of a refused body that is read and discarded.
        drop_s: Timeout for that in seconds.
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
    texts: int = 2048
    json_parts: int = 1 << 18
    dropped_bytes: int = 64 << 20
    drop_s: float = 5.0
