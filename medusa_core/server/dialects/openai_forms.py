"""Parts that replies in OpenAI's form share: errors, usage, timings, log probabilities."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from medusa_core import __version__
from medusa_core.chats.conversation import new_id
from medusa_core.server.api_error import ApiError
from medusa_core.server.chat import Answer, AnswerEnd, AnswerPart, ChatRequest, Finish, ScoredToken
from medusa_core.server.context import ServerContext
from medusa_core.server.reply import Reply

# With the same seed, another version of the program may write another text.
FINGERPRINT = f"fp_medusa_{__version__.replace('.', '_')}"
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    501: "not_implemented_error",
    503: "unavailable_error",
}
_FINISHES = {
    Finish.STOP: "stop",
    Finish.STOP_STRING: "stop",
    Finish.LENGTH: "length",
    Finish.TOOL_CALLS: "tool_calls",
}


def openai_error(error: ApiError) -> Mapping[str, Any]:
    """Return an error in OpenAI's form, with llama-server's fields if the prompt is too long."""
    message, more = error.message, {}
    kind = _TYPES.get(error.status, "invalid_request_error")
    if error.context_tokens:
        # The words that LiteLLM, LangChain, opencode and Qwen Code look for.
        message = (
            f"This model's maximum context length is {error.context_tokens} tokens. However, your "
            f"request has {error.num_tokens} tokens, which exceeds the available context size. "
            f"{error.message}"
        )
        kind = "exceed_context_size_error"
        more = {"n_prompt_tokens": error.num_tokens, "n_ctx": error.context_tokens}
    return {
        "error": {
            "message": message,
            "type": kind,
            "param": error.param or None,
            "code": error.code or None,
            **more,
        }
    }


class OpenAiReply(Reply):
    """Answers in the form of chat completions and completions.

    Attributes:
        answers: The answers so far.
        is_scored: Whether log probabilities were requested.
    """

    id_prefix: ClassVar[str]
    kind: ClassVar[str]
    chunk_kind: ClassVar[str]

    def __init__(
        self, requests: Sequence[ChatRequest], context: ServerContext, *, has_usage: bool
    ) -> None:
        """Begin a reply.

        Args:
            requests: A request for each answer.
            context: The server's shared objects.
            has_usage: Whether a stream ends with the token counts.
        """
        self.answers = [Answer() for _ in requests]
        self.is_scored = requests[0].num_logprobs >= 0
        self._context, self._model, self._has_usage = context, requests[0].model, has_usage
        self._id, self._created = f"{self.id_prefix}{new_id()}", created_now()

    @abstractmethod
    def deltas(self, index: int, part: AnswerPart) -> list[dict[str, Any]]:
        """Return the choices of the chunks for a part, which isn't added to the answer yet."""

    @abstractmethod
    def choice(self, answer: Answer) -> dict[str, Any]:
        """Return the choice for a complete answer."""

    def events(self, index: int, part: AnswerPart) -> Iterator[dict[str, Any]]:
        """Add a part and return its chunks; the last one has the figures."""
        deltas = self.deltas(index, part)
        self.answers[index].add(part)
        for delta in deltas:
            choice = {"index": index, "logprobs": None, "finish_reason": None, **delta}
            chunk = {**self._head(self.chunk_kind), "choices": [choice]}
            if self._has_usage:
                chunk["usage"] = None
            if isinstance(part, AnswerEnd) and delta is deltas[-1] and self._is_complete():
                chunk |= answer_figures(self._ends()[0])
            yield chunk

    def end(self) -> Iterator[str]:
        """Return usage if requested, and the end of the stream."""
        if self._has_usage:
            yield self.encode({**self._head(self.chunk_kind), "choices": [], **self._figures()})
        yield "data: [DONE]\n\n"

    def whole(self) -> dict[str, Any]:
        """Return all answers as one object."""
        choices = [
            {"index": index, **self.choice(answer), "finish_reason": finish_reason(end)}
            for index, (answer, end) in enumerate(zip(self.answers, self._ends(), strict=True))
        ]
        return {**self._head(self.kind), "choices": choices, **self._figures()}

    def failure(self, error: ApiError) -> Mapping[str, Any]:
        """Return the error event."""
        return openai_error(error)

    def _head(self, kind: str) -> dict[str, Any]:
        """Return the fields that all chunks share."""
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._context.models.loaded_id or self._model,
            "system_fingerprint": FINGERPRINT,
        }

    def _figures(self) -> dict[str, Any]:
        """Return usage and timings."""
        ends = self._ends()
        return {"usage": usage(ends), **answer_figures(ends[0])}

    def _ends(self) -> list[AnswerEnd]:
        """Return the ends of the answers that have ended."""
        return [answer.end for answer in self.answers if answer.end is not None]

    def _is_complete(self) -> bool:
        """Whether all answers have ended."""
        return len(self._ends()) == len(self.answers)


def finish_reason(end: AnswerEnd) -> str:
    """Return why an answer ended, in OpenAI's words."""
    return _FINISHES[end.finish]


def usage(ends: Sequence[AnswerEnd]) -> dict[str, Any]:
    """Return the token counts of the answers to one request; its prompt counts once."""
    num_prompt = ends[0].num_prompt_tokens
    num_answer = sum(end.num_answer_tokens for end in ends)
    return {
        "prompt_tokens": num_prompt,
        "completion_tokens": num_answer,
        "total_tokens": num_prompt + num_answer,
        "prompt_tokens_details": {"cached_tokens": ends[0].num_cached_tokens},
        "completion_tokens_details": {
            "reasoning_tokens": sum(end.num_reasoning_tokens for end in ends),
            "accepted_prediction_tokens": sum(end.num_drafts_accepted for end in ends),
            "rejected_prediction_tokens": sum(
                end.num_drafted - end.num_drafts_accepted for end in ends
            ),
        },
    }


def answer_figures(end: AnswerEnd) -> dict[str, Any]:
    """Return llama-server's `timings`, and `medusa` with the gain of the drafts."""
    done = end.done
    num_read = end.num_prompt_tokens - end.num_cached_tokens
    tau = done.mean_acceptance_length
    return {
        "timings": {
            "cache_n": end.num_cached_tokens,
            "prompt_n": num_read,
            **_pace("prompt", num_read, done.prefill_s),
            "predicted_n": end.num_answer_tokens,
            # The first token comes from prefill, so llama-server doesn't count it either.
            **_pace("predicted", max(0, end.num_answer_tokens - 1), done.decode_s),
            "draft_n": end.num_drafted,
            "draft_n_accepted": end.num_drafts_accepted,
        },
        "medusa": {
            "tau": round(tau, 4),
            "drafter": done.settings.drafter,
            "x_plain": None if done.speed_up is None else round(done.speed_up, 4),
        },
    }


def _pace(name: str, count: int, seconds: float) -> dict[str, float]:
    """Return llama-server's times of prompt or answer."""
    return {
        f"{name}_ms": seconds * 1000,
        f"{name}_per_token_ms": seconds * 1000 / count if count else 0.0,
        f"{name}_per_second": count / seconds if seconds else 0.0,
    }


def chat_logprobs(tokens: Sequence[ScoredToken]) -> dict[str, Any]:
    """Return log probabilities in the form of chat completions."""
    return {
        "content": [
            {
                **_token_json(token.chosen.text, token.chosen.logprob),
                "top_logprobs": [
                    _token_json(other.text, other.logprob) for other in token.alternatives
                ],
            }
            for token in tokens
        ],
        "refusal": None,
    }


def text_logprobs(tokens: Sequence[ScoredToken], offset: int) -> dict[str, Any]:
    """Return log probabilities in the form of completions.

    Args:
        tokens: Tokens of the answer.
        offset: Offset of the first one in the text, in characters.
    """
    texts = [_text(token.chosen.text) for token in tokens]
    offsets = []
    for text in texts:
        offsets.append(offset)
        offset += len(text)
    return {
        "tokens": texts,
        "token_logprobs": [token.chosen.logprob for token in tokens],
        "top_logprobs": [
            {_text(other.text): other.logprob for other in token.alternatives} for token in tokens
        ],
        "text_offset": offsets,
    }


def input_tokens_json(num_tokens: int) -> dict[str, Any]:
    """Return the token count of a request in OpenAI's form."""
    return {"object": "response.input_tokens", "input_tokens": num_tokens}


def created_now() -> int:
    """Return the Unix time in seconds."""
    return int(time.time())


def _token_json(text: bytes, logprob: float) -> dict[str, Any]:
    """Return a token with its log probability and bytes."""
    return {"token": _text(text), "logprob": logprob, "bytes": list(text)}


def _text(text: bytes) -> str:
    """Decode bytes; invalid ones become U+FFFD."""
    return text.decode("utf-8", "replace")
