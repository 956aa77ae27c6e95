"""The sandboxed process that requests and parses one page."""

from __future__ import annotations

import faulthandler
from typing import Any

from medusa_core.chats.attachments.html_page import decode_page, read_html
from medusa_core.system.sandbox.channel import limit_process, open_channel
from medusa_core.tools.web.address import WebAddress, parse_address
from medusa_core.tools.web.fetch import MOST_BYTES, Response, fetch

MEMORY_BYTES = 400 << 20
_ORPHAN_S = 30.0  # the parent's timeout is shorter
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = ("application/json", "application/xml", "application/javascript", "application/yaml")


def main() -> int:
    """Fetch one page."""
    with open_channel() as channel:
        limit_process(MEMORY_BYTES, 0)
        faulthandler.dump_traceback_later(_ORPHAN_S, exit=True)
        channel.send(ready=True)
        request = channel.receive()
        try:
            address = parse_address(request["url"])
            answer = read_page(address, request["accept"], request["allowed"])
        except ValueError as error:
            answer = {"error": str(error)}
        except (MemoryError, RecursionError):
            answer = {"error": "the page takes too much memory to read"}
        except Exception as error:  # noqa: BLE001 - parsers of untrusted pages raise anything
            answer = {"error": f"the page is damaged ({type(error).__name__})"}
        channel.send(**answer)
    return 0


def read_page(address: WebAddress, accept: str, allowed: list[str]) -> dict[str, Any]:
    """Fetch a page and return its address, title and text.

    Raises:
        ValueError: There is no such page, or it has no text.
    """
    response = fetch(address, accept, allowed)
    title, text = _text(response)
    # JSON of another process must not have lone surrogates.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if not text.strip():
        raise ValueError("the page has no text; it may need a browser that runs scripts")
    if response.is_cut:
        text += f"\n\n[The page has more than {MOST_BYTES >> 20} MB; the rest was left out.]"
    return {"url": response.address.url, "title": title, "text": text}


def _text(response: Response) -> tuple[str, str]:
    """Return title and text of a response.

    Raises:
        ValueError: It isn't text.
    """
    kind = response.media_type
    is_text = kind.startswith("text/") or kind in _TEXT or kind.endswith(("+json", "+xml"))
    if kind and not is_text:
        raise ValueError(f"the address isn't a page but {kind[:80]}, which can't be read as text")
    source = decode_page(response.data, response.charset)
    if not kind and "\0" in source:
        raise ValueError("the address isn't a page and can't be read as text")
    if kind in _HTML or (not kind and source.lstrip()[:1] == "<"):
        return read_html(source)
    return "", source.replace("\r\n", "\n")
