"""Errors of endpoints.

Error texts of the server are quoted in a bounded length, on one line and without the key, which
some servers repeat.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin, urlsplit

from medusa_core.errors import (
    EndpointAnswerError,
    EndpointBusyError,
    EndpointError,
    EndpointFailedError,
    EndpointKeyError,
    EndpointModelError,
    EndpointUnreachableError,
    OfflineError,
)
from medusa_core.i18n import tr

_NO_KEY, _FORBIDDEN, _NOT_FOUND, _TOO_MANY = 401, 403, 404, 429
_REDIRECTS, _WRONG, _FAILED = 300, 400, 500
_MOST_QUOTED = 200
_MOST_WAIT_S = 24 * 3600
_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?")


def offline_error() -> OfflineError:
    """Return the error for a request in offline mode."""
    return OfflineError(
        "Offline mode is on: nothing is sent to other machines.",
        "Switch it off in the model manager, or load a model of this computer.",
    )


def refusal_of(
    status: int, headers: Mapping[str, str], body: bytes, *, url: str, server: str, key: str
) -> EndpointError:
    """Return the error for an HTTP status.

    Args:
        status: HTTP status without success.
        headers: Headers of the response.
        body: Beginning of the body.
        url: Requested URL.
        server: Name of the endpoint.
        key: API key, which the error must not quote.
    """
    reason = quoted(_reason_in(body), key) or tr("it says no more")
    if _REDIRECTS <= status < _WRONG:
        target = _host_of(headers.get("location", ""), url)
        return EndpointUnreachableError(
            tr("{0} sends requests on to {1}.", server, quoted(target, key) or "another address"),
            "Nothing was sent there. Connect that address itself if you trust it.",
        )
    if status in (_NO_KEY, _FORBIDDEN):
        return _key_error(server, has_key=bool(key))
    if status == _NOT_FOUND:
        return EndpointModelError(
            tr("{0} doesn't know the model or the address: {1}.", server, reason),
            "Check the address and the model under Models, Other machines.",
        )
    if status == _TOO_MANY:
        return _busy_error(server, headers.get("retry-after", ""))
    if status >= _FAILED:
        return EndpointFailedError(
            tr("{0} failed ({1}): {2}.", server, status, reason), "Try again later."
        )
    return EndpointFailedError(
        tr("{0} refuses the request ({1}): {2}.", server, status, reason),
        "It may not know one of the settings of this chat; choose the usual ones.",
    )


def no_connection(server: str, reason: str) -> EndpointUnreachableError:
    """Return the error for a failed connection."""
    return EndpointUnreachableError(
        tr("{0} can't be reached: {1}.", server, reason),
        "See whether the server runs, and check its address and the network.",
    )


def untrusted(server: str, reason: str) -> EndpointUnreachableError:
    """Return the error for an invalid certificate."""
    return EndpointUnreachableError(
        tr("{0} can't prove who it is: {1}.", server, reason),
        "Nothing was sent. Its certificate must be valid for this address.",
    )


def unreadable_answer(server: str, reason: str) -> EndpointAnswerError:
    """Return the error for a response that can't be parsed."""
    return EndpointAnswerError(
        tr("The answer of {0} can't be read: {1}.", server, reason),
        "Check that the address is that of an OpenAI-compatible server.",
    )


def broken_off(server: str, reason: str) -> EndpointAnswerError:
    """Return the error for an answer that was cut off."""
    return EndpointAnswerError(
        tr("The answer of {0} broke off: {1}.", server, reason),
        "What has come is kept; Continue goes on with it.",
    )


def failed_within(server: str, message: str, key: str) -> EndpointFailedError:
    """Return the error that a server sends within an answer."""
    reason = quoted(message, key) or tr("it says no more")
    return EndpointFailedError(
        tr("{0} failed while it answered: {1}.", server, reason),
        "Try again later.",
    )


def unknown_model(server: str, model_id: str, offered: tuple[str, ...]) -> EndpointModelError:
    """Return the error for a model that the endpoint doesn't have."""
    return EndpointModelError(
        tr("{0} has no model {1}.", server, quoted(model_id, "")),
        tr("It offers: {0}.", quoted(", ".join(offered), "") or "none"),
    )


def quoted(text: str, key: str) -> str:
    """Return a server's text for an error: one line, bounded, without the key."""
    shown = text.replace(key, "***") if key else text
    shown = " ".join("".join(c if c.isprintable() else " " for c in shown).split()).rstrip(".")
    return shown if len(shown) <= _MOST_QUOTED else f"{shown[: _MOST_QUOTED - 1]}…"


def message_in(error: object) -> str:
    """Return the message of an `error` object; empty for none."""
    if isinstance(error, dict):
        error = error.get("message", "")
    return error if isinstance(error, str) else ""


def _host_of(location: str, url: str) -> str:
    """Return the host of a redirect; empty if it is invalid."""
    try:
        return urlsplit(urljoin(url, location)).netloc
    except ValueError:
        return ""


def _key_error(server: str, *, has_key: bool) -> EndpointKeyError:
    """Make the error for a missing or wrong key."""
    message = tr("{0} refuses the key.", server) if has_key else tr("{0} wants a key.", server)
    return EndpointKeyError(
        message, "Enter it under Models, Other machines, or set MEDUSA_ENDPOINT_KEY."
    )


def _busy_error(server: str, retry_after: str) -> EndpointBusyError:
    """Make the error for an overloaded endpoint."""
    wait_s = _wait_s(retry_after)
    hint = tr("Try again later.") if wait_s is None else tr("Try again in {0} s.", wait_s)
    return EndpointBusyError(tr("{0} has too much to do.", server), hint, retry_after_s=wait_s or 0)


def _wait_s(retry_after: str) -> int | None:
    """Parse `Retry-After`, in seconds or as a date; None if it is missing."""
    if _SECONDS.fullmatch(retry_after):
        return min(round(float(retry_after)), _MOST_WAIT_S)
    try:
        wait_s = parsedate_to_datetime(retry_after).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0, min(round(wait_s), _MOST_WAIT_S))


def _reason_in(body: bytes) -> str:
    """Return the message in an error's body; empty for none."""
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(raw, dict):
        return ""
    messages = (message_in(raw.get(name)) for name in ("error", "message", "detail"))
    return next(filter(None, messages), "")
