"""Web search: asks the SearXNG server that the user has set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from medusa_core.i18n import tr
from medusa_core.tools.builtin_tool import BuiltinTool, CallContext
from medusa_core.tools.web.address import WebAddress, parse_address
from medusa_core.tools.web.page import fetch_page
from medusa_core.tools.web.settings import WebSettings

_MOST_RESULTS = 8
_MOST_TITLE_CHARS = 200
_MOST_SNIPPET_CHARS = 400
_MOST_QUERY_CHARS = 400
_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": _MOST_QUERY_CHARS,
            "description": "What to search for, in a few words.",
        }
    },
    "required": ["query"],
    "additionalProperties": False,
}


def _run(arguments: Mapping[str, Any], context: CallContext) -> str:
    """Return titles, addresses and snippets of results."""
    server = _server(context.web)
    query = urlencode({"q": arguments["query"], "format": "json"})
    path = server.target.partition("?")[0].rstrip("/").removesuffix("/search")
    address = server._replace(target=f"{path}/search?{query}")
    # Whoever sets the address of a server on this computer allows it.
    web = replace(context.web, allowed_hosts=(server.site,))
    page = fetch_page(address, "application/json", web, context.stop)
    try:
        results = json.loads(page.text)["results"]
        found = [text for result in results if (text := _described(result))][:_MOST_RESULTS]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            "the search server doesn't answer as SearXNG does: its settings must allow JSON"
        ) from error
    if not found:
        return "No results."
    return "\n\n".join(f"{number}. {text}" for number, text in enumerate(found, 1))


def _server(web: WebSettings) -> WebAddress:
    """Return the address of the search server.

    Raises:
        ValueError: None is set, or an invalid one.
    """
    if not web.search_url:
        raise ValueError("the user has set no search server")
    return parse_address(web.search_url)


def _described(result: Mapping[str, Any]) -> str:
    """Return a result as text; empty if it is no page."""
    title = _short(result.get("title"), _MOST_TITLE_CHARS) or "(no title)"
    snippet = _short(result.get("content"), _MOST_SNIPPET_CHARS)
    try:
        address = parse_address(str(result["url"])).url
    except ValueError:
        return ""
    return "\n".join(filter(None, (title, address, snippet)))


def _short(text: object, most_chars: int) -> str:
    """Return a text on one line, shortened."""
    line = " ".join(str(text or "").split())
    return line if len(line) <= most_chars else line[: most_chars - 1] + "…"


def _host(_: Mapping[str, Any], web: WebSettings) -> str:
    """Return the host of the search server."""
    return _server(web).site


def _missing_setting(web: WebSettings) -> str:
    """Return what the user must set before anything can be searched."""
    return "" if web.search_url else tr("Set the address of a search server (SearXNG) first.")


SPEC = BuiltinTool(
    "web_search",
    "Web search",
    "Searches the web and returns titles, addresses and snippets of pages.",
    _SCHEMA,
    _run,
    _host,
    _missing_setting,
)
