"""Log of requests: model, token counts and times, but no text."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import IO

from starlette.requests import Request

from medusa_core.server.chat import AnswerEnd

_KEY = "medusa_tally"


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """Log entry of a finished request: model, status, token counts and times.

    Attributes:
        time: Unix time of its arrival in seconds.
        method: HTTP method.
        path: Path of the URL.
        status: HTTP status; 499 if the client disconnected before the end of the reply.
        model: Id of the model that answered; empty for none.
        prompt_tokens: Prompt tokens of all its answers.
        answer_tokens: Decoded tokens of all its answers.
        tokens_per_s: Decoded tokens per second; 0 without an answer.
        seconds: Time from its headers to the end of the reply.
    """

    time: float
    method: str
    path: str
    status: int
    model: str
    prompt_tokens: int
    answer_tokens: int
    tokens_per_s: float
    seconds: float


RequestListener = Callable[[RequestRecord], None]


@dataclass(slots=True)
class RequestTally:
    """Figures of a request in progress; see `RequestRecord`.

    Attributes:
        decode_s: Seconds of prefill and decoding.
        warning: See `ChatRequest`.
        started: Unix time of its arrival in seconds.
    """

    model: str = ""
    prompt_tokens: int = 0
    answer_tokens: int = 0
    decode_s: float = 0.0
    warning: str = ""
    started: float = field(default_factory=time.time)
    _clock: float = field(default_factory=time.perf_counter)

    def add(self, end: AnswerEnd) -> None:
        """Count a complete answer."""
        self.prompt_tokens += end.num_prompt_tokens
        self.answer_tokens += end.num_answer_tokens
        self.decode_s += end.done.prefill_s + end.done.decode_s

    def record(self, method: str, path: str, status: int) -> RequestRecord:
        """Return the record of the finished request."""
        return RequestRecord(
            time=self.started,
            method=method,
            path=path,
            status=status,
            model=self.model,
            prompt_tokens=self.prompt_tokens,
            answer_tokens=self.answer_tokens,
            tokens_per_s=self.answer_tokens / self.decode_s if self.decode_s else 0.0,
            seconds=time.perf_counter() - self._clock,
        )


def tally_of(request: Request) -> RequestTally:
    """Return the figures of a request in progress."""
    tally: RequestTally = request.scope.setdefault(_KEY, RequestTally())
    return tally


class JsonLog:
    """Writes a JSON line for each request."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def __call__(self, record: RequestRecord) -> None:
        self._file.write(json.dumps(asdict(record)) + "\n")
        self._file.flush()
