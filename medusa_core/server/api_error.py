"""The error of a request, which each API converts to its own form."""

from __future__ import annotations

from medusa_core.errors import (
    Cancelled,
    MedusaError,
    OutOfMemoryError,
    PlanError,
    RequestError,
    TemplateError,
)

_UNAVAILABLE = (PlanError, OutOfMemoryError, Cancelled)


class ApiError(Exception):
    """A request that fails, or an answer that ends too early.

    Attributes:
        status: HTTP status: 400, 401, 403, 404, 405, 408, 413, 429; 500 for a failure of the
            engine, 501 for unsupported routes, 503 if no model can answer now.
        message: What happened and what to do, for people.
        param: Path of the invalid field; empty for none.
        code: Code for programs, such as `model_not_found`; may be empty.
        retry_after_s: Seconds until a retry; 0 for none.
        num_tokens: Tokens of a prompt that is too long; 0 for other errors.
        context_tokens: Context size that the prompt exceeds; 0 for other errors.
    """

    def __init__(
        self,
        status: int,
        message: str,
        param: str = "",
        code: str = "",
        retry_after_s: int = 0,
        num_tokens: int = 0,
        context_tokens: int = 0,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.retry_after_s = retry_after_s
        self.num_tokens, self.context_tokens = num_tokens, context_tokens


def bad_request(message: str, param: str = "") -> ApiError:
    """Return the error for an invalid request."""
    return ApiError(400, message, param)


def api_error_of(error: MedusaError) -> ApiError:
    """Convert an error of the engine."""
    data = error.data
    if isinstance(error, RequestError) and {"num_tokens", "context_tokens"} <= data.keys():
        # Clients shorten the conversation if they recognise this code or the dialect's words.
        return ApiError(
            400,
            str(error),
            "messages",
            "context_length_exceeded",
            num_tokens=int(data["num_tokens"]),
            context_tokens=int(data["context_tokens"]),
        )
    if isinstance(error, RequestError | TemplateError):
        status = 400
    elif isinstance(error, _UNAVAILABLE):
        status = 503
    else:
        status = 500
    return ApiError(status, str(error))
