"""The ASGI application: access checks, routes, errors, log and metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import cache

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import Message, Receive, Scope, Send

from medusa_core.chats.conversation import new_id
from medusa_core.errors import MedusaError
from medusa_core.server import dialects
from medusa_core.server.api_error import ApiError, api_error_of
from medusa_core.server.context import ServerContext
from medusa_core.server.dialect import DialectSpec
from medusa_core.server.guard import Guard
from medusa_core.server.replies import ClientGone, JsonReply, RequestBody, too_large
from medusa_core.server.request_log import RequestRecord, RequestTally, tally_of
from medusa_core.system.registry import Registry

log = logging.getLogger(__name__)

_AMBIGUOUS = "ambiguous_length"
_TIMEOUT = 408
# Routes that llama-server and many clients call without `/v1`, too.
_WITHOUT_VERSION = ("/chat/completions", "/completions", "/models", "/responses", "/messages")
_GONE = 499  # nginx's status for a client that closed the connection


@cache
def dialect_registry() -> Registry[DialectSpec]:
    """Return the registry of APIs."""
    return Registry(dialects, "API", DialectSpec)


class HttpApplication:
    """Serves all APIs with one engine."""

    def __init__(
        self, context: ServerContext, guard: Guard, on_request: Callable[[RequestRecord], None]
    ) -> None:
        """Make the application.

        Args:
            context: Objects that all routes share.
            guard: Checks access.
            on_request: Called after every request.
        """
        self._context, self._guard, self._on_request = context, guard, on_request
        specs = dialect_registry().specs
        routes = [route for spec in specs for route in spec.routes(context)]
        self._router = Router(routes, redirect_slashes=False)
        forms = [(prefix, spec) for spec in specs for prefix in spec.prefixes]
        self._forms = sorted(forms, key=lambda form: -len(form[0]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = RequestBody(Headers(scope=scope), receive)
        http = Request(scope, body.receive)
        tally = tally_of(http)
        request_id = f"req_{new_id()}"
        headers = {"x-request-id": request_id, "request-id": request_id}  # OpenAI's, Anthropic's
        headers |= self._guard.cors_headers(http.headers.get("origin"))
        watched = _Watched(send, headers, tally)
        try:
            await self._serve(http, scope, body, watched)
        except ClientGone:
            watched.status = _GONE
        except asyncio.CancelledError:
            if not watched.status:
                ending = ApiError(503, "The server is stopping. Try again later.", code="stopped")
                await self._error_reply(http.url.path, ending)(scope, receive, watched)
            raise
        finally:
            record = tally.record(http.method, http.url.path, watched.status or _GONE)
            route = scope.get("route")
            self._context.metrics.add_request(record, "" if route is None else route.path)
            self._on_request(record)

    async def _serve(self, http: Request, scope: Scope, body: RequestBody, send: _Watched) -> None:
        """Route a request, and reply with an error to any failure.

        Raises:
            ClientGone: The client disconnected.
        """
        try:
            self._guard.check(http.method, http.url.path, http.headers)
            if http.method == "OPTIONS":
                reply = Response(
                    status_code=204, headers=self._guard.preflight_headers(http.headers)
                )
                await reply(scope, body.receive, send)
                return
            self._check_length(http.headers)
            if http.url.path.startswith(_WITHOUT_VERSION):
                scope["path"] = f"/v1{scope['path']}"
            scope["app"] = self  # then the router raises what it can't route
            await self._router(scope, body.receive, send)
        except ClientGone:
            raise
        except Exception as error:
            if send.status:
                log.exception("a reply failed after its first bytes")
                raise ClientGone from None
            found = _as_api_error(error)
            if found.code != _AMBIGUOUS and found.status != _TIMEOUT:
                await body.drop(self._context.limits)
            await self._error_reply(http.url.path, found)(scope, body.receive, send)

    def _check_length(self, headers: Headers) -> None:
        """Refuse invalid, ambiguous or too large lengths before the body is read."""
        if "transfer-encoding" in headers and "content-length" in headers:
            # Request smuggling: a proxy may see another end of the body than this server.
            raise ApiError(
                400,
                "The request has both Content-Length and Transfer-Encoding; send one of them.",
                code=_AMBIGUOUS,
            )
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            raise ApiError(400, "The header Content-Length is not a number.")
        if len(length) > 12 or int(length) > self._context.limits.body_bytes:
            raise too_large(self._context.limits)

    def _error_reply(self, path: str, error: ApiError) -> Response:
        """Return an error in the form of the called API."""
        path = f"/v1{path}" if path.startswith(_WITHOUT_VERSION) else path
        form = next(spec for prefix, spec in self._forms if path.startswith(prefix))
        headers = {"retry-after": str(error.retry_after_s)} if error.retry_after_s else {}
        if error.status == 413 or error.code == _AMBIGUOUS:
            headers["connection"] = "close"  # the rest of the body isn't read
        return JsonReply(form.error_json(error), error.status, headers)


class _Watched:
    """Sends a reply, adds headers and stores its status; 0 before it begins."""

    def __init__(self, send: Send, headers: dict[str, str], tally: RequestTally) -> None:
        self._send, self._tally = send, tally
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            present = {name for name, _ in message["headers"]}
            more = [pair for pair in self._headers if pair[0] not in present]
            if self._tally.warning:
                more.append((b"x-medusa-warning", _header_value(self._tally.warning)))
            message = {**message, "headers": [*message["headers"], *more]}
        await self._send(message)


def _header_value(text: str) -> bytes:
    """Return a text as a header's value: printable ASCII in one line."""
    line = "".join(char if char.isprintable() else " " for char in text)
    return line.strip().encode("ascii", "backslashreplace")


def _as_api_error(error: Exception) -> ApiError:
    """Convert any exception to an error for the client."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, MedusaError):
        return api_error_of(error)
    if isinstance(error, HTTPException):
        known = {
            404: "There is no such route. The README's page docs/server.md lists them.",
            405: "This route takes another method.",
        }
        return ApiError(error.status_code, known.get(error.status_code, "It isn't possible."))
    log.error("a request failed", exc_info=error)
    return ApiError(500, "The server failed at this request; see its log.")
