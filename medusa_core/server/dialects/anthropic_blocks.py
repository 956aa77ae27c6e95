"""Convert content blocks of a user's turn in Anthropic's API to text."""

from __future__ import annotations

from collections.abc import Iterable

from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.fields import Fields

_MOST_BLOCKS = 1024
_IMAGE = "[image]"


def read_blocks(blocks: Iterable[Fields]) -> str:
    """Join the text of a user's content blocks.

    Args:
        blocks: Blocks of text, text documents and search results.

    Raises:
        ApiError: A block has another type, such as a picture.
    """
    return "".join(_block_text(block) for block in blocks)


def read_result(block: Fields) -> str:
    """Return a tool's result as text; a picture becomes the note `[image]`.

    Args:
        block: The `tool_result`.

    Raises:
        ApiError: The result contains a block other than text, pictures, documents and references.
    """
    content = block.values.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(_result_text(part) for part in block.records("content", _MOST_BLOCKS))


def _result_text(part: Fields) -> str:
    kind = part.text("type")
    if kind == "image":
        return _IMAGE
    if kind == "tool_reference":
        return f"[tool: {part.text('tool_name')}]"
    return _block_text(part)


def _block_text(block: Fields) -> str:
    kind = block.text("type")
    if kind == "text":
        if not block.has("text"):
            raise block.missing("text")
        return block.text("text")
    if kind == "document":
        return _titled(block, _document_text(block))
    if kind == "search_result":
        texts = [_block_text(part) for part in block.records("content", _MOST_BLOCKS)]
        return _titled(block, "\n".join(texts), block.text("source"))
    raise _no_text(block, kind)


def _document_text(block: Fields) -> str:
    source = block.record("source")
    if source is None:
        raise block.missing("source (of a document)")
    kind = source.text("type")
    if kind == "text":
        return source.text("data")
    if kind != "content":
        raise source.invalid("type", '"text" or "content": a document\'s file isn\'t opened here')
    if isinstance(source.values.get("content"), str):
        return source.text("content")
    return read_blocks(source.records("content", _MOST_BLOCKS))


def _titled(block: Fields, text: str, address: str = "") -> str:
    """Put a title above a text, and delimit both from their surroundings."""
    head = [one for one in (block.text("title"), address, block.text("context")) if one]
    return "\n".join((*head, text, ""))


def _no_text(block: Fields, kind: str) -> ApiError:
    where = block.where("type")
    return bad_request(f"`{where}` is {kind[:40]!r}, but the models here read text alone.", where)
