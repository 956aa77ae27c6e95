"""One chunk of a streamed answer, or a whole answer, as JSON of the chat completions API."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from medusa_core.errors import EndpointError
from medusa_core.remote.refusals import failed_within, message_in, unreadable_answer

_MOST = 1 << 40
# Where servers put what a model thinks before it answers.
_THOUGHT_NAMES = ("reasoning_content", "reasoning")


class AnswerFigures(NamedTuple):
    """What a server counts and measures of an answer; 0 where it doesn't say.

    Attributes:
        num_prompt_tokens: Tokens of the conversation.
        num_cached_tokens: Those of them that it needn't read again.
        num_tokens: Tokens of the answer.
        prefill_s: Seconds in which it read the prompt.
        decode_s: Seconds in which it wrote.
        num_drafted: Tokens that were drafted.
        num_draft_accepted: Those of them that were accepted.
    """

    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0
    num_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    num_drafted: int = 0
    num_draft_accepted: int = 0

    def updated(self, later: AnswerFigures) -> AnswerFigures:
        """These, and in their place what came later."""
        return self._replace(**{name: new for name, new in later._asdict().items() if new})


class AnswerChunk(NamedTuple):
    """A part of an answer.

    Attributes:
        text: What is said.
        thought: What is thought before it.
        finish: Why the answer ends here, as the API names it; empty where it goes on.
        figures: What the server counts.
    """

    text: str = ""
    thought: str = ""
    finish: str = ""
    figures: AnswerFigures = AnswerFigures()


def read_chunk(data: bytes, place: str, key: str) -> AnswerChunk:
    """A chunk.

    Args:
        data: JSON.
        place: Who sends it, for messages.
        key: What mustn't be shown.

    Raises:
        EndpointError: It is no JSON of this API, or says that the server failed.
    """
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise unreadable_answer(place, "it is no JSON") from error
    if not isinstance(raw, dict):
        raise unreadable_answer(place, "it is no object")
    if raw.get("error"):
        raise _failure(raw["error"], place, key)
    figures = _figures(_object(raw.get("usage")), _object(raw.get("timings")))
    choices = raw.get("choices")
    if not isinstance(choices, list):
        raise unreadable_answer(place, "it holds no choices")
    choice = _object(choices[0]) if choices else {}
    # Who doesn't stream sends a whole message.
    part = _object(choice.get("delta")) or _object(choice.get("message"))
    thoughts = (_text(part.get(name)) for name in _THOUGHT_NAMES)
    return AnswerChunk(
        _text(part.get("content")),
        next(filter(None, thoughts), ""),
        _text(choice.get("finish_reason")),
        figures,
    )


def _failure(error: object, place: str, key: str) -> EndpointError:
    return failed_within(place, message_in(error), key)


def _figures(usage: dict[str, Any], timings: dict[str, Any]) -> AnswerFigures:
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
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < _MOST else 0


def _seconds(value: object) -> float:
    """Milliseconds as seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) / 1000 if 0 <= value < _MOST else 0.0  # not where it is no number
