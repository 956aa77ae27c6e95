"""Remove the secrets of tool servers from log lines and errors."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Iterator
from urllib.parse import unquote, unquote_plus, urlsplit

from medusa_core.tools.servers import ToolServer

_HIDDEN = "…"
_LEAST_CHARS = 6  # shorter values occur in ordinary words
_URL = re.compile(
    r"""(https?://)(?:[^\s/?#@'"<>]*@)?([^\s?#'"<>]*)(\?[^\s#'"<>]*)?""", re.IGNORECASE
)
_VALUE = re.compile(r"(?<==)[^&]+|(?<=[?&])[^&=]+(?=&|$)")


def redact(text: str, server: ToolServer) -> str:
    """Return a text without the secrets of a server, and of all addresses.

    A text without secrets is returned itself, as it may have translations.

    Args:
        server: Settings with the values of secrets: headers, variables, and of its address the
            user, the password and the values of the query.
    """
    found = text
    for secret in sorted(set(_secrets(server)), key=len, reverse=True):
        found = found.replace(secret, _HIDDEN)
    found = redact_urls(found)
    return text if found == text else found


def redact_urls(text: str) -> str:
    """Return a text whose addresses have no user, password and values of a query."""
    return _URL.sub(lambda found: _redacted(*found.groups(default="")), text)


def redact_requests(record: logging.LogRecord) -> bool:
    """Redact the address in a record of the HTTP client; a filter of its logger."""
    record.msg, record.args = redact_urls(record.getMessage()), ()
    return True


def _redacted(scheme: str, place: str, query: str) -> str:
    return scheme + place + _VALUE.sub(_HIDDEN, query)


def _secrets(server: ToolServer) -> Iterator[str]:
    """Yield the secrets of a server, in the forms in which they are written."""
    address = urlsplit(server.url)
    in_query = _VALUE.findall(f"?{address.query}")
    code = dict(server.code_variables)
    values = [value for _, value in server.headers]
    values += [value for name, value in server.env if name not in code]
    values += [one for one in (address.username, address.password, *in_query) if one]
    if address.username is not None:
        login = f"{unquote(address.username)}:{unquote(address.password or '')}"
        values.append(base64.b64encode(login.encode()).decode())
    for value in values:
        for part in (value, value.partition(" ")[2], unquote(value), unquote_plus(value)):
            if len(part) >= _LEAST_CHARS:
                yield part
