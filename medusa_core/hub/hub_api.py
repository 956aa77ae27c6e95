"""Requests to the Hub's JSON API, with limits on the response."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from medusa_core.errors import HubError, NotFoundError
from medusa_core.hub.bounds import MAX_JSON_BYTES, MAX_JSON_S
from medusa_core.hub.refusals import (
    access_error,
    no_repository,
    unknown_token,
    unreachable,
    unreadable,
)
from medusa_core.hub.settings import HubSettings
from medusa_core.hub.wire import BrokenError, Exchange, Head, Wire, with_deadline
from medusa_core.i18n import tr

_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _BAD = 200, 401, 403, 404, 400
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_MAX_ACCOUNT_CHARS = 100


def query_hub(
    settings: HubSettings,
    path: str,
    about: str,
    parameters: Mapping[str, str | int] | None = None,
    stop: threading.Event | None = None,
) -> Any:
    """Send a request to the API; blocks.

    Args:
        settings: Settings of the Hub.
        path: Path after `/api/`.
        about: Repository or search words, for messages.
        parameters: Query parameters.
        stop: Set to cancel.

    Returns:
        The parsed JSON, unchecked.

    Raises:
        HubError: It can't be reached, has no such repository, requires a token, or its answer
            can't be read.
        Stopped: `stop` was set.
    """
    settings.require_online()
    url = f"{settings.endpoint}/api/{path}"
    if parameters:
        url += f"?{urlencode(parameters)}"
    wire = Wire(settings)
    try:
        with wire.get(url, stop or threading.Event(), {"Accept-Encoding": "gzip"}) as exchange:
            text = _text(settings, about, exchange)
    except BrokenError as error:
        raise unreachable(settings, str(error)) from error
    finally:
        wire.close()
    try:
        return json.loads(text)
    # Deep nesting, numbers of thousands of digits, and invalid UTF-8.
    except (ValueError, RecursionError) as error:
        raise unreadable(about, tr("it is no JSON ({0})", type(error).__name__)) from error


def whoami(settings: HubSettings, token: str) -> str:
    """Request the account name of a token; blocks.

    Raises:
        AccessError: The Hub rejects the token.
        HubError: The Hub can't be reached.
    """
    try:
        answer = query_hub(replace(settings, token=token), "whoami-v2", "this token")
    except NotFoundError as error:  # a mirror's answer
        raise unknown_token() from error
    if not isinstance(answer, dict) or not isinstance(answer.get("name"), str):
        raise unreadable(tr("this token"), tr("it names nobody"))
    return str(answer["name"])[:_MAX_ACCOUNT_CHARS]


def _refusal(settings: HubSettings, about: str, head: Head) -> HubError | None:
    """Return the error of a response; None if it succeeded."""
    status, code = head.status, head.headers.get("X-Error-Code", "")
    if status == _OK:
        return None
    if status < _BAD:
        return unreadable(about, tr("its status is {0}", status))
    if code == "RevisionNotFound":
        return NotFoundError(tr("{0} has no such revision.", about), "Leave the revision out.")
    if code == "GatedRepo" or status == _FORBIDDEN:
        return access_error(settings, about)
    if status == _UNAUTHORIZED and settings.token and not code:
        return unknown_token()
    if status in (_UNAUTHORIZED, _NOT_FOUND):
        return no_repository(about)
    return unreachable(settings, tr("its status is {0}", status))


def _text(settings: HubSettings, about: str, exchange: Exchange) -> bytes:
    """Read the whole body of a JSON response, decompressed and limited in size and time."""
    head = exchange.head()
    if error := _refusal(settings, about, head):
        raise error
    pieces = with_deadline(exchange.pieces(), MAX_JSON_S)
    encoding = head.headers.get("Content-Encoding", "identity").lower()
    if encoding in ("gzip", "deflate"):
        pieces = _unfold(pieces, about)
    elif encoding != "identity":
        raise unreadable(about, tr("it is encoded as {0}", encoding))
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) > MAX_JSON_BYTES:
            raise unreadable(about, tr("it is longer than {0} MB", MAX_JSON_BYTES >> 20))
    return bytes(found)


def _unfold(pieces: Iterator[bytes], about: str) -> Iterator[bytes]:
    """Decompress pieces of a response in bounded steps, against zip bombs."""
    unfolder = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        for piece in pieces:
            rest = piece
            while rest:
                yield unfolder.decompress(rest, 1 << 20)
                rest = unfolder.unconsumed_tail
    except zlib.error as error:
        raise unreadable(about, tr("it is compressed and damaged")) from error
    if not unfolder.eof:
        raise unreadable(about, tr("it breaks off"))
