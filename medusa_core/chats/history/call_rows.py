"""Convert contents and tool calls to and from rows of the database."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from medusa_core.chats.history.part import clean
from medusa_core.chats.rounds import Approval, CallState, RoundCall, ToolResult
from medusa_core.messages import Content, ImagePart, PassagePart, TextPart, ToolCall
from medusa_core.system.storage.database import SqlRow

log = logging.getLogger(__name__)

CALL_COLUMNS = "call_id, name, arguments, state, approval, result, is_error, duration_s"
PASSAGE_COLUMNS = "cited_as, document, place, text, score, chunk, path, bm25_rank, vector_rank"

# Number of characters of the text before each image.
PlacedImages = Iterable[tuple[int, ImagePart]]


def row_of_call(call: RoundCall) -> SqlRow:
    """Return the values of `CALL_COLUMNS`."""
    result = call.result
    return (
        *map(clean, call.call),
        call.state.value,
        call.approval.value,
        None if result is None else clean(result.text),
        result is not None and result.is_error,
        0.0 if result is None else result.duration_s,
    )


def call_of(row: SqlRow, images: PlacedImages) -> RoundCall:
    """Return the call of a row of `CALL_COLUMNS`, with the images of its result."""
    call_id, name, arguments, state, approval, text, is_error, duration_s = row
    result = None
    if text is not None:
        result = ToolResult(content_of(text, images), bool(is_error), duration_s)
    call = ToolCall(call_id, name, arguments)
    try:
        return RoundCall(call, CallState(state), Approval(approval), result)
    except ValueError:  # a changed row: what has run is unknown
        log.debug("the state %r of a call is unknown", state)
        return RoundCall(call, CallState.INTERRUPTED, result=result)


def images_of(content: Content) -> Iterator[tuple[int, ImagePart]]:
    """Yield images with the number of characters of the text before each."""
    num_chars = 0
    for part in content:
        if isinstance(part, ImagePart):
            yield num_chars, part
        elif isinstance(part, TextPart):
            num_chars += len(part.text)


def content_of(text: str, images: PlacedImages) -> Content:
    """Return the content of a text and its images."""
    parts: list[TextPart | ImagePart] = []
    at = 0
    for position, image in images:
        if text[at:position]:
            parts.append(TextPart(text[at:position]))
        parts.append(image)
        at = max(at, position)
    if text[at:]:
        parts.append(TextPart(text[at:]))
    return tuple(parts)


def row_of_passage(passage: PassagePart) -> SqlRow:
    """Return the values of `PASSAGE_COLUMNS`."""
    return (
        passage.number,
        *map(clean, (passage.document, passage.place, passage.text)),
        passage.score,
        *map(clean, (passage.key, passage.path)),
        passage.bm25_rank,
        passage.vector_rank,
    )
