"""Results of MCP calls as text for the model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from medusa_core.chats.rounds import ToolResult
from medusa_core.tools.results import text_result

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock


def result_of(raw: CallToolResult, duration_s: float) -> ToolResult:
    """Return a result; images, sounds and files are named, since the model reads text alone."""
    texts = [_text_of(block) for block in raw.content]
    # Servers repeat structured content as text for clients that know no other.
    has_text = any(block.type == "text" for block in raw.content)
    if raw.structured_content is not None and not has_text:
        texts.append(json.dumps(raw.structured_content, ensure_ascii=False))
    text = "\n".join(texts) or "The tool returned nothing."
    return text_result(text, is_error=raw.is_error, duration_s=duration_s)


def _text_of(block: ContentBlock) -> str:
    """Return a part of a result as text."""
    from mcp import types

    match block:
        case types.TextContent(text=text):
            return text
        case types.ImageContent(mime_type=kind, data=data):
            return _note("an image", kind, data)
        case types.AudioContent(mime_type=kind, data=data):
            return _note("a sound", kind, data)
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
            return text
        case types.EmbeddedResource(resource=types.BlobResourceContents(blob=data, mime_type=kind)):
            return _note("a file", kind or "unknown kind", data)
        case types.ResourceLink(name=name, uri=uri):
            return f"[The tool names a resource that wasn't read: {name} {uri}]"
    return "[The tool returned a part of an unknown kind.]"


def _note(what: str, kind: str, base64: str) -> str:
    """Describe content that the model can't read, such as an image, for the model."""
    size = len(base64) * 3 // 4
    return f"[The tool returned {what} that you can't see: {kind[:100]}, {size:,} bytes]"
