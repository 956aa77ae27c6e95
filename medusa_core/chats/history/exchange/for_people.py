"""Convert conversations to Markdown and HTML: the path that was shown last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape

from medusa_core.chats.attachments.attachment import fenced
from medusa_core.chats.history.exchange.html_text import (
    plain,
    rendered,
)
from medusa_core.chats.history.records import (
    ConversationInfo,
    Stored,
)
from medusa_core.chats.passages import source_of
from medusa_core.chats.reasoning import answer_text, reasoning_text
from medusa_core.chats.rounds import RoundCall
from medusa_core.messages import PassagePart, Role, content_images, content_passages

_HEAD_BEFORE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>"""
_STYLE = """body { max-width: 48rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 sans-serif;
  color: #1c1c1c; background: #fff; }
h1 { font-size: 1.4rem; margin-top: 3rem; }
h2 { font-size: 1rem; margin: 1.5rem 0 .2rem; }
section h1, section h2, section h3 { font-size: 1.1rem; margin: 1rem 0 .2rem; }
section, .plain { overflow-wrap: anywhere; }
.plain { white-space: pre-wrap; }
pre, code { font-family: monospace; background: #eeeeee; }
pre { white-space: pre-wrap; padding: .6rem; border-radius: .3rem; }
pre code { background: none; }
blockquote { margin-left: 0; padding-left: 1rem; border-left: 3px solid #888888; }
table { border-collapse: collapse; }
th, td { border: 1px solid #888888; padding: .2rem .6rem; }
@media (prefers-color-scheme: dark) {
  body { color: #e8e8e8; background: #1c1c1c; }
  pre, code { background: #2c2c2c; }
  a { color: #8ab4f8; }
}
"""
_FOOT = "</body>\n</html>\n"


class Markdown:
    """Converts conversations to Markdown."""

    between = "\n---\n\n"
    foot = ""

    def head(self, title: str) -> str:
        """Return the text before the first conversation."""
        return ""

    def conversation(self, info: ConversationInfo, messages: Sequence[Stored]) -> str:
        """Return a conversation as Markdown with a heading per message."""
        parts = [f"# {' '.join(info.title.split())}\n"]
        for message, is_later in _with_rounds(path_to(messages, info.leaf_id)):
            if not is_later:
                parts.append(f"## {_speaker(message)} · {_when(message.created_s)}\n")
            parts += [f"*Attached: {' '.join(name.split())}*\n" for name in _attached(message)]
            if reasoning := reasoning_text(message.text, message.spans).strip():
                parts.append(_quoted(f"*Thought*\n\n{reasoning}") + "\n")
            if text := answer_text(message.text, message.spans).rstrip():
                parts.append(text + "\n")
            parts += [_quoted(_call_as_markdown(call)) + "\n" for call in message.calls]
            parts += [_quoted(_passage_as_markdown(one)) + "\n" for one in _passages(message)]
        return "\n".join(parts)


class Html:
    """Converts conversations to an HTML page; answers are rendered, prompts are plain text.

    Args:
        style: Style sheet of the page; the default one is for browsers.
    """

    between = ""
    foot = _FOOT

    def __init__(self, style: str = _STYLE) -> None:
        self._style = style

    def head(self, title: str) -> str:
        """Return the text before the first conversation."""
        name = escape(" ".join(title.split()))
        return f"{_HEAD_BEFORE}{name}</title>\n<style>\n{self._style}</style>\n</head>\n<body>\n"

    def conversation(self, info: ConversationInfo, messages: Sequence[Stored]) -> str:
        """Return a conversation as a section of the page."""
        parts = [f'<h1 dir="auto">{escape(info.title)}</h1>']
        for message, is_later in _with_rounds(path_to(messages, info.leaf_id)):
            if not is_later:
                who, when = escape(_speaker(message)), _when(message.created_s)
                parts.append(f"<h2>{who} <small>{when}</small></h2>")
            parts += [f"<p>Attached: {escape(name)}</p>" for name in _attached(message)]
            parts.append(f'<section dir="auto">{_answer_text(message)}</section>')
            parts += map(_call_as_html, message.calls)
            parts += map(_passage_as_html, _passages(message))
        return "\n".join(parts) + "\n"


def _with_rounds(path: Sequence[Stored]) -> Iterator[tuple[Stored, bool]]:
    """Yield messages, and whether each is a later round of the answer before it."""
    before: Stored | None = None
    for message in path:
        is_later = before is not None and before.role is message.role is Role.ASSISTANT
        yield message, is_later
        before = message


def _attached(message: Stored) -> list[str]:
    """Return the names of a message's files, and the types of its images."""
    images = (image.media_type for image in content_images(message.content))
    return [*(attachment.name for attachment in message.attachments), *images]


def _passages(message: Stored) -> tuple[PassagePart, ...]:
    """Return the passages that were read for a prompt."""
    return content_passages(message.content)


def _passage_as_markdown(passage: PassagePart) -> str:
    """Return a passage as Markdown, in which its text can't be markup."""
    return f"Read: {_passage_name(passage)}\n\n{fenced(passage.text)}"


def _passage_as_html(passage: PassagePart) -> str:
    """Return a passage as HTML, folded."""
    summary = f"<summary>Read: {escape(_passage_name(passage))}</summary>"
    return f"<details>{summary}<pre>{escape(passage.text)}</pre></details>"


def _passage_name(passage: PassagePart) -> str:
    """Return number, document and place of a passage."""
    return f"[{passage.number}] {source_of(passage)}"


def _call_as_markdown(call: RoundCall) -> str:
    """Return a tool call and its result as Markdown, in which their texts can't be markup."""
    texts = [call.call.arguments, *([] if call.result is None else [call.result.text])]
    return "\n\n".join((f"*Tool call: {_called(call)}*", *map(fenced, texts)))


def _call_as_html(call: RoundCall) -> str:
    """Return a tool call and its result as HTML, folded."""
    texts = [call.call.arguments, *([] if call.result is None else [call.result.text])]
    blocks = "".join(f"<pre>{escape(text)}</pre>" for text in texts)
    return f"<details><summary>Tool call: {escape(_called(call))}</summary>{blocks}</details>"


def _called(call: RoundCall) -> str:
    """Return the name of a call's function and its state."""
    return f"{' '.join(call.call.name.split())} ({call.state.value})"


def _answer_text(message: Stored) -> str:
    """Return a message as HTML; reasoning is folded."""
    if message.role is not Role.ASSISTANT:
        return plain(message.text)
    text_part = rendered(answer_text(message.text, message.spans))
    reasoning = reasoning_text(message.text, message.spans).strip()
    if not reasoning:
        return text_part
    # In a PDF nothing folds, so a quotation marks the reasoning.
    reasoning_part = f"<blockquote>{rendered(reasoning)}</blockquote>"
    return f"<details><summary>Thought</summary>{reasoning_part}</details>\n{text_part}"


def _quoted(text: str) -> str:
    """Return a text as a block quote in Markdown."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _speaker(message: Stored) -> str:
    """Return the author's name: the model, the system prompt or the user."""
    if message.role is Role.ASSISTANT:
        model = message.answer.model if message.answer is not None else ""
        return " ".join(model.split()) or "Assistant"
    return "System prompt" if message.role is Role.SYSTEM else "You"


def _when(seconds: float) -> str:
    """Format a time in the local time zone."""
    try:
        return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"
    except (ValueError, OSError, OverflowError):  # outside the range of dates
        return "unknown date"


def path_to(messages: Sequence[Stored], leaf_id: str | None) -> tuple[Stored, ...]:
    """Return the messages from the first one to a leaf.

    Args:
        messages: All messages of a conversation.
        leaf_id: Id of the last message of the path; None for the newest message.
    """
    by_id = {message.id: message for message in messages}
    at = by_id.get(leaf_id) if leaf_id is not None else None
    if at is None and messages:
        at = messages[-1]
    path: list[Stored] = []
    while at is not None:
        path.append(at)
        at = by_id.get(at.parent_id) if at.parent_id is not None else None
    return tuple(reversed(path))
