"""Parse a chunk of a streamed chat completion, or a whole one."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from medusa_core.i18n import tr
from medusa_core.remote.refusals import failed_within, message_in, unreadable_answer

_MOST = 1 << 40
# Fields with the reasoning, of llama-server and vLLM, and of others.
_REASONING_NAMES = ("reasoning_content", "reasoning")


class AnswerFigures(NamedTuple):
    """Token counts and times of an answer; 0 if the endpoint doesn't send them.

    Attributes:
        num_prompt_tokens: Prompt tokens.
        num_cached_tokens: Prompt tokens that were cached.
        num_tokens: Tokens of the answer.
        prefill_s: Seconds of prefill.
        decode_s: Seconds of decoding.
        num_drafted: Draft tokens.
        num_draft_accepted: Accepted draft tokens.
    """

    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    num_drafted: int = 0
    num_draft_accepted: int = 0

    def updated(self, later: AnswerFigures) -> AnswerFigures:
        """Return the figures, with those of a later chunk in their place."""
        return self._replace(**{name: new for name, new in later._asdict().items() if new})


class AnswerChunk(NamedTuple):
    """Parsed chunk of a streamed answer: text, reasoning, figures.

    Attributes:
        text: Text of the answer.
        reasoning: Text of the reasoning.
        finish: The API's `finish_reason`; empty before the end.
        figures: Token counts and times.
    """

    text: str = ""
    reasoning: str = ""
    finish: str = ""
    figures: AnswerFigures = AnswerFigures()


def read_chunk(data: bytes, server: str, key: str) -> AnswerChunk:
    """Parse a chunk of `/v1/chat/completions`; errors within it raise.

    Args:
        data: JSON text.
        server: Name of the endpoint, for errors.
        key: API key, which errors must not quote.

    Raises:
        EndpointError: The text is no JSON of this API, or an error of the server.
    """
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise unreadable_answer(server, tr("it is no JSON")) from error
    if not isinstance(raw, dict):
        raise unreadable_answer(server, tr("it is no object"))
    if raw.get("error"):
        raise failed_within(server, message_in(raw["error"]), key)
    figures = _figures(_object(raw.get("usage")), _object(raw.get("timings")))
    choices = raw.get("choices")
    if not isinstance(choices, list):
        raise unreadable_answer(server, tr("it holds no choices"))
    choice = _object(choices[0]) if choices else {}
    # Servers without streaming send a whole message.
    part = _object(choice.get("delta")) or _object(choice.get("message"))
    reasoning = (_text(part.get(name)) for name in _REASONING_NAMES)
    return AnswerChunk(
        _text(part.get("content")),
        next(filter(None, reasoning), ""),
        _text(choice.get("finish_reason")),
        figures,
    )


def _figures(usage: dict[str, Any], timings: dict[str, Any]) -> AnswerFigures:
    """Parse OpenAI's `usage` and llama-server's `timings`."""
    details = _object(usage.get("prompt_tokens_details"))
    num_cached = _count(details.get("cached_tokens")) or _count(timings.get("cache_n"))
    num_read = _count(timings.get("prompt_n"))
    return AnswerFigures(
        num_prompt_tokens=_count(usage.get("prompt_tokens")) or num_read + num_cached,
        num_cached_tokens=num_cached,
        num_tokens=_count(usage.get("completion_tokens")) or _count(timings.get("predicted_n")),
        prefill_s=_seconds(timings.get("prompt_ms")),
        decode_s=_seconds(timings.get("predicted_ms")),
        num_drafted=_count(timings.get("draft_n")),
        num_draft_accepted=_count(timings.get("draft_n_accepted")),
    )


def _object(value: object) -> dict[str, Any]:
    """Return a JSON object; empty for other values."""
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """Return a text; empty for other values."""
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    """Return a count; 0 for other values."""
    return value if type(value) is int and 0 <= value < _MOST else 0


def _seconds(value: object) -> float:
    """Convert milliseconds to seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) / 1000 if 0 <= value < _MOST else 0.0  # false for NaN
