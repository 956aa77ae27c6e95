"""Parse the JSON text of a request within limits."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import from_json

from medusa_core.server.api_error import bad_request


def parse_json(body: bytes, most_parts: int) -> Any:
    """Parse a JSON text; the parser refuses more than 200 levels and lone surrogates.

    Args:
        body: JSON text in UTF-8.
        most_parts: Most objects, lists, keys and strings: the interpreter does nothing else while
            it makes them.

    Raises:
        ApiError: The text is not valid JSON, too deep, or has too many parts.
    """
    if _num_parts(body, most_parts) > most_parts:
        raise bad_request(f"The JSON has too many parts; {most_parts:,} are the most.")
    try:
        value = from_json(body, allow_inf_nan=False)
        json.dumps(value, allow_nan=False)  # the parser takes 1e999 for infinity
    except ValueError as error:
        raise bad_request(f"The body is not valid JSON: {error}.") from None
    return value


def _num_parts(body: bytes, enough: int) -> int:
    """Count a lower bound of the objects, lists and strings in a JSON text."""
    most = body.count(b"[") + body.count(b"{") + body.count(b'"') // 2
    if most <= enough:
        return most
    # Without escapes every quote begins or ends a string: each second piece is in one.
    pieces = body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"', 2 * enough)
    rest = b"".join(pieces[::2])
    return len(pieces) // 2 + rest.count(b"[") + rest.count(b"{")
