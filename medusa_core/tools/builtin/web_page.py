"""Web page: fetches a page and returns its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.tools.builtin_tool import BuiltinTool, CallContext
from medusa_core.tools.web.address import parse_address
from medusa_core.tools.web.page import fetch_page
from medusa_core.tools.web.settings import WebSettings

_MOST_CHARS = 16_000  # about 4,000 tokens
_ACCEPT = "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.5"
_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "description": "Address, such as https://example.org/page."},
        "start": {
            "type": "integer",
            "minimum": 0,
            "description": "Character at which to begin, to read on in a long page; 0 by default.",
        },
    },
    "required": ["url"],
    "additionalProperties": False,
}


def _run(arguments: Mapping[str, Any], context: CallContext) -> str:
    """Return title, address and text of a page."""
    page = fetch_page(parse_address(arguments["url"]), _ACCEPT, context.web, context.stop)
    start = int(arguments.get("start", 0))  # JSON schema takes 0.0 for an integer
    text = page.text[start : start + _MOST_CHARS]
    end = start + len(text)
    if not text:
        raise ValueError(f"the page has only {len(page.text):,} characters")
    if end < len(page.text):
        text += f"\n\n[The page goes on for {len(page.text) - end:,} characters; start: {end}]"
    return f"Title: {page.title or '(none)'}\nAddress: {page.url}\n\n{text}"


def _host(arguments: Mapping[str, Any], _: WebSettings) -> str:
    """Return the host of the page."""
    return parse_address(arguments["url"]).site


SPEC = BuiltinTool(
    "web_page",
    "Web page",
    "Fetches a web page and returns its title and text, without scripts and pictures.",
    _SCHEMA,
    _run,
    _host,
)
