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
    """

    def __init__(
        self, status: int, message: str, param: str = "", code: str = "", retry_after_s: int = 0
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.retry_after_s = retry_after_s


def bad_request(message: str, param: str = "", code: str = "") -> ApiError:
    """The error of a field that is missing, of another type or out of range."""
    return ApiError(400, message, param, code)


def api_error_of(error: MedusaError) -> ApiError:
    """What an error of the engine is for whoever asked."""
    if isinstance(error, RequestError | TemplateError):
        status = 400
    elif isinstance(error, _UNAVAILABLE):
        status = 503
    else:
        status = 500
    return ApiError(status, str(error))
