"""What is wrong with a request, before an API puts it into its own form."""

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
    """A request that isn't answered, or an answer that ends too early.

    Attributes:
        status: HTTP status: 400, 401, 403, 404, 405, 408, 413, 429; 500 where the engine failed,
            501 for what a local model doesn't do, 503 where no model can answer now.
        message: What happened and what to do, for people.
        param: The field of the request that is wrong; empty for none.
        code: A word that programs compare, such as `model_not_found`; may be empty.
        retry_after_s: Seconds after which another try makes sense; 0 for none.
        num_tokens: Tokens of a prompt that is longer than the context; 0 for other errors.
        context_tokens: The context that it is longer than; 0 for other errors.
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


def bad_request(message: str, param: str = "", code: str = "") -> ApiError:
    """The error of a field that is missing, of another type or out of range."""
    return ApiError(400, message, param, code)


def api_error_of(error: MedusaError) -> ApiError:
    """What an error of the engine is for whoever asked."""
    data = error.data
    if isinstance(error, RequestError) and {"num_tokens", "context_tokens"} <= data.keys():
        # Clients shorten the conversation where they recognise this code or the dialect's words.
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
