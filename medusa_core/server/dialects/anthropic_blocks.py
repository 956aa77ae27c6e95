"""Content blocks of Anthropic's API, as typed records with their text."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, Tag

from medusa_core.server.dialects.openai_messages import ONLY_TEXT, IgnoredPart, TextPart, as_parts
from medusa_core.server.records import Record, by_type

_MOST_BLOCKS = 1024
_TAGS = {"text": "(text)", "document": "(document)", "search_result": "(search)"}
_USER_TAGS = {**_TAGS, "tool_result": "(result)"}
_RESULT_TAGS = {**_TAGS, "image": "(image)", "tool_reference": "(reference)"}
_ANSWER_TAGS = {
    "text": "(text)",
    "tool_use": "(use)",
    # Earlier reasoning, and the calls that Anthropic's servers run.
    **dict.fromkeys(
        ("thinking", "redacted_thinking", "server_tool_use", "tool_reference"), "(ignored)"
    ),
}


class _Titled(Record):
    """Content block with an optional title and context."""

    title: str = ""
    context: str = ""

    def titled(self, text: str, address: str = "") -> str:
        """Put title, address and context above a text, and delimit it from its surroundings."""
        head = [line for line in (self.title, address, self.context) if line]
        return "\n".join((*head, text, ""))


class DocumentSource(Record):
    """The text of a document; files aren't opened."""

    type: Literal["text", "content"]
    data: str = ""
    content: Content = ()

    @property
    def text(self) -> str:
        """Text of the source."""
        return self.data if self.type == "text" else blocks_text(self.content)


class DocumentBlock(_Titled):
    """A document that the user attached."""

    source: DocumentSource

    @property
    def text(self) -> str:
        """Text of the document under its title."""
        return self.titled(self.source.text)


class SearchResultBlock(_Titled):
    """A search result."""

    source: str = ""
    content: Content = ()

    @property
    def text(self) -> str:
        """Text of the result under title and address."""
        return self.titled("\n".join(block.text for block in self.content), self.source)


class ImageBlock(Record):
    """An image in a tool's result, of which the model reads a note."""

    text: ClassVar[str] = "[image]"


class ToolReferenceBlock(Record):
    """A tool that another tool found."""

    tool_name: str = ""

    @property
    def text(self) -> str:
        """Note that names the tool."""
        return f"[tool: {self.tool_name}]"


class ToolResultBlock(Record):
    """The result of a tool call."""

    tool_use_id: str = ""
    content: ResultContent = ()


class ToolUseBlock(Record):
    """A tool call of an earlier answer."""

    id: str = ""
    name: str = ""
    input: dict[str, Any] = Field(default={})


def blocks_text(blocks: tuple[TextBlock | ImageBlock | ToolReferenceBlock, ...]) -> str:
    """Return the text of content blocks."""
    return "".join(block.text for block in blocks)


def _answer_tag(kind: str) -> str | None:
    """Return the tag of a block in an answer; results of server tools are ignored."""
    return "(ignored)" if kind.endswith("_tool_result") else _ANSWER_TAGS.get(kind)


_Text = Annotated[TextPart, Tag("(text)")]
_Document = Annotated[DocumentBlock, Tag("(document)")]
_Search = Annotated[SearchResultBlock, Tag("(search)")]
_Result = Annotated[ToolResultBlock, Tag("(result)")]
_Image = Annotated[ImageBlock, Tag("(image)")]
_Reference = Annotated[ToolReferenceBlock, Tag("(reference)")]
_Use = Annotated[ToolUseBlock, Tag("(use)")]
_Ignored = Annotated[IgnoredPart, Tag("(ignored)")]

TextBlock = TextPart | DocumentBlock | SearchResultBlock
_TextBlock = Annotated[_Text | _Document | _Search, by_type(_TAGS.get, ONLY_TEXT)]
_ResultBlock = Annotated[
    _Text | _Document | _Search | _Image | _Reference, by_type(_RESULT_TAGS.get, ONLY_TEXT)
]
_UserBlock = Annotated[_Text | _Document | _Search | _Result, by_type(_USER_TAGS.get, ONLY_TEXT)]
_AnswerBlock = Annotated[
    _Text | _Use | _Ignored, by_type(_answer_tag, 'must be "text" or "tool_use"')
]
_Most = Field(max_length=_MOST_BLOCKS)
Content = Annotated[tuple[_TextBlock, ...], BeforeValidator(as_parts), _Most]
ResultContent = Annotated[tuple[_ResultBlock, ...], BeforeValidator(as_parts), _Most]
UserContent = Annotated[tuple[_UserBlock, ...], BeforeValidator(as_parts), _Most]
AnswerContent = Annotated[tuple[_AnswerBlock, ...], BeforeValidator(as_parts), _Most]

for _record in (DocumentSource, DocumentBlock, SearchResultBlock, ToolResultBlock):
    _record.model_rebuild()
