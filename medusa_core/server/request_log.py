"""Requests as they come: what was asked for and what it took, without any text."""

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
    """A request that is over.

    Attributes:
        time: When it came, in seconds of the epoch.
        method: Of HTTP.
        path: Of the address.
        status: Of the reply; 499 where the client went away before it was complete.
        model: Id of the model that answered; empty where none did.
        prompt_tokens: Of all its answers.
        answer_tokens: Of all its answers.
        tokens_per_s: Of decoding; 0 without an answer.
        seconds: From its head to the end of the reply.
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
    """What is known so far of a request under way.

    Attributes:
        model: As in `RequestRecord`.
        prompt_tokens: As there.
        answer_tokens: As there.
        decode_s: Seconds of decoding its answers.
        warning: As in `ChatRequest`.
        started: When it came, in seconds of the epoch.
    """

    model: str = ""
    prompt_tokens: int = 0
    answer_tokens: int = 0
    decode_s: float = 0.0
    warning: str = ""
    started: float = field(default_factory=time.time)
    _clock: float = field(default_factory=time.perf_counter)

    def add(self, end: AnswerEnd) -> None:
        """An answer is complete."""
        self.prompt_tokens += end.num_prompt_tokens
        self.answer_tokens += end.num_answer_tokens
        self.decode_s += end.done.prefill_s + end.done.decode_s

    def record(self, method: str, path: str, status: int) -> RequestRecord:
        """The request is over."""
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
    """What a request has taken so far."""
    tally: RequestTally = request.scope.setdefault(_KEY, RequestTally())
    return tally


class JsonLog:
    """Writes one JSON line for each request."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def __call__(self, record: RequestRecord) -> None:
        self._file.write(json.dumps(asdict(record)) + "\n")
        self._file.flush()
