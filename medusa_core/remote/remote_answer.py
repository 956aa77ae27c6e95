"""Convert the chunks of an endpoint's answer to events."""

from __future__ import annotations

import time
from collections.abc import Callable

from medusa_core.messages import (
    GIVEN,
    REASONING,
    TARGET,
    THINK_TAGS,
    Generate,
    GenerationDone,
    Role,
    StepDone,
    StepTimes,
    StopReason,
    TokenSource,
)
from medusa_core.remote.chunk import AnswerChunk, AnswerFigures

_NO_TIMES = StepTimes(0.0, 0.0, 0.0, 0.0)
_LENGTH = "length"
_HIGH_SURROGATES = ("\ud800", "\udbff")


class RemoteAnswer:
    """An answer so far.

    Endpoints send reasoning apart; it becomes text between `<think>` and `</think>`, as local
    models write it. Its pieces have the source `REASONING`, so that such a tag within the
    reasoning is text.

    Attributes:
        finish: The endpoint's `finish_reason`; empty before the end.
    """

    def __init__(self, request: Generate, clock: Callable[[], float] = time.monotonic) -> None:
        self._request = request
        self._clock = clock
        self._began_s = self._last_s = clock()
        self._first_s: float | None = None
        self._pieces: list[bytes] = []
        self._num_bytes = 0
        self._num_steps = 0
        self._is_reasoning = self._has_text = False
        self._half = ""  # a high surrogate at the end of a chunk
        self._figures = AnswerFigures()
        self.finish = ""

    def add(self, chunk: AnswerChunk) -> StepDone | None:
        """Add a chunk, and return a step with its text; None without text."""
        self.finish = chunk.finish or self.finish
        self._figures = self._figures.updated(chunk.figures)
        parts = [(self._whole_characters(text), source) for text, source in self._parts(chunk)]
        pieces = [text.encode() for text, _ in parts if text]
        sources = [source for text, source in parts if text]
        if not pieces:
            return None
        now_s = self._clock()
        if self._first_s is None:
            self._first_s = now_s
            if given := self._given:
                pieces.insert(0, given.encode())
                sources.insert(0, GIVEN)
        step = self._step(tuple(pieces), tuple(sources), now_s - self._last_s)
        self._last_s = now_s
        return step

    def done(self, reason: StopReason | None = None) -> GenerationDone:
        """Return the event of the end.

        Args:
            reason: Why the answer ends; None for the endpoint's reason.
        """
        figures, end_s = self._figures, self._clock()
        first_s = end_s if self._first_s is None else self._first_s
        waited_s = first_s - self._began_s
        given = "" if self._pieces else self._given
        return GenerationDone(
            *self._request.ids,
            text=given + b"".join(self._pieces).decode(),
            token_ids=(),
            stop_reason=reason or self._stop_reason,
            num_prompt_tokens=figures.num_prompt_tokens,
            num_given_tokens=0,
            num_cached_tokens=figures.num_cached_tokens,
            num_steps=0,
            accept_lengths=(),
            time_to_first_token_s=waited_s,
            prefill_s=figures.prefill_s or waited_s,
            decode_s=figures.decode_s or self._last_s - first_s,
            num_plain_steps=0,
            settings=self._request.settings,
            num_remote_tokens=figures.num_tokens,
            num_drafted=figures.num_drafted,
            num_draft_accepted=figures.num_draft_accepted,
        )

    @property
    def _given(self) -> str:
        """Text of the answer to continue; empty for a new one."""
        last = self._request.messages[-1] if self._request.messages else None
        return last.text if last is not None and last.role is Role.ASSISTANT else ""

    @property
    def _stop_reason(self) -> StopReason:
        """Why the answer ended, by `finish_reason` and the request's limit."""
        if self.finish != _LENGTH:
            return StopReason.EOS
        has_limit = self._request.settings.max_new_tokens > 0
        return StopReason.MAX_TOKENS if has_limit else StopReason.CONTEXT

    def _parts(self, chunk: AnswerChunk) -> list[tuple[str, TokenSource]]:
        """Split a chunk into pieces of text with reasoning tags, each with its source."""
        parts = []
        if chunk.reasoning and not self._has_text:
            if not self._is_reasoning:
                parts.append((f"{THINK_TAGS.start}\n", TARGET))
            parts.append((chunk.reasoning, REASONING))
            self._is_reasoning = True
        if chunk.text or (chunk.finish and self._is_reasoning):
            if self._is_reasoning:
                parts.append((f"\n{THINK_TAGS.end}\n\n", TARGET))
            self._is_reasoning = False
            self._has_text = True
        return [*parts, (chunk.text, TARGET)]

    def _whole_characters(self, text: str) -> str:
        """Join surrogate pairs that JSON strings split; one at the end waits for the next chunk."""
        text, self._half = self._half + text, ""
        if text and _HIGH_SURROGATES[0] <= text[-1] <= _HIGH_SURROGATES[1] and not self.finish:
            text, self._half = text[:-1], text[-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _step(
        self, pieces: tuple[bytes, ...], sources: tuple[TokenSource, ...], seconds: float
    ) -> StepDone:
        """Number a step with its text."""
        self._pieces += pieces
        self._num_bytes += sum(map(len, pieces))
        number, self._num_steps = self._num_steps, self._num_steps + 1
        return StepDone(
            *self._request.ids,
            number,
            (),
            pieces,
            sources,
            self._num_bytes,
            0,
            (TARGET,),
            _NO_TIMES,
            seconds,
            0,
        )
