"""What the routes in OpenAI's form share: errors, figures, probabilities."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from medusa_core import __version__
from medusa_core.server.api_error import ApiError
from medusa_core.server.chat import AnswerEnd, Finish, ScoredToken

# Of the program: with the same seed, another version may write another text.
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
    """An error in OpenAI's form; of a prompt that is too long also in llama-server's."""
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


def finish_reason(end: AnswerEnd) -> str:
    """Why an answer ended, in OpenAI's words."""
    return _FINISHES[end.finish]


def usage(ends: Sequence[AnswerEnd]) -> dict[str, Any]:
    """The tokens of the answers to one request; its prompt counts once."""
    num_prompt = ends[0].num_prompt_tokens
    num_answer = sum(end.num_answer_tokens for end in ends)
    return {
        "prompt_tokens": num_prompt,
        "completion_tokens": num_answer,
        "total_tokens": num_prompt + num_answer,
        "prompt_tokens_details": {"cached_tokens": ends[0].num_cached_tokens},
        "completion_tokens_details": {
            "reasoning_tokens": sum(end.num_thought_tokens for end in ends),
            "accepted_prediction_tokens": sum(end.num_drafts_accepted for end in ends),
            "rejected_prediction_tokens": sum(
                end.num_drafted - end.num_drafts_accepted for end in ends
            ),
        },
    }


def answer_figures(end: AnswerEnd) -> dict[str, Any]:
    """`timings` as llama-server names them, and beside them what drafts brought."""
    done = end.done
    num_read = end.num_prompt_tokens - end.num_cached_tokens
    tau = done.mean_acceptance_length
    return {
        "timings": {
            "cache_n": end.num_cached_tokens,
            "prompt_n": num_read,
            **_pace("prompt", num_read, done.prefill_s),
            "predicted_n": end.num_answer_tokens,
            # The first token comes of the prompt's last logits; as llama-server counts.
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


def _pace(what: str, count: int, seconds: float) -> dict[str, float]:
    return {
        f"{what}_ms": seconds * 1000,
        f"{what}_per_token_ms": seconds * 1000 / count if count else 0.0,
        f"{what}_per_second": count / seconds if seconds else 0.0,
    }


def chat_logprobs(tokens: Sequence[ScoredToken]) -> dict[str, Any]:
    """Probabilities as chat completions have them."""
    return {
        "content": [
            {
                **_token_json(one.chosen.text, one.chosen.logprob),
                "top_logprobs": [
                    _token_json(other.text, other.logprob) for other in one.alternatives
                ],
            }
            for one in tokens
        ],
        "refusal": None,
    }


def text_logprobs(tokens: Sequence[ScoredToken], offset: int) -> dict[str, Any]:
    """Probabilities as completions have them.

    Args:
        tokens: The tokens.
        offset: Where the first one begins in the text, in characters.
    """
    texts = [_text(one.chosen.text) for one in tokens]
    offsets = []
    for text in texts:
        offsets.append(offset)
        offset += len(text)
    return {
        "tokens": texts,
        "token_logprobs": [one.chosen.logprob for one in tokens],
        "top_logprobs": [
            {_text(other.text): other.logprob for other in one.alternatives} for one in tokens
        ],
        "text_offset": offsets,
    }


def input_tokens_json(num_tokens: int) -> dict[str, Any]:
    """How many tokens a request has, as OpenAI's API says it."""
    return {"object": "response.input_tokens", "input_tokens": num_tokens}


def created_now() -> int:
    """The time in seconds of the epoch."""
    return int(time.time())


def _token_json(text: bytes, logprob: float) -> dict[str, Any]:
    return {"token": _text(text), "logprob": logprob, "bytes": list(text)}


def _text(text: bytes) -> str:
    return text.decode("utf-8", "replace")
