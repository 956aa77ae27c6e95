"""Conversations as Markdown and as a page that needs nothing else: the path that was shown last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape

from medusa_core.history.records import ConversationInfo, Stored
from medusa_core.history.tree import path_to
from medusa_core.messages import Role

_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>Conversations</title>
<style>
body { max-width: 48rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 sans-serif;
  color: #1c1c1c; background: #fff; }
@media (prefers-color-scheme: dark) { body { color: #e8e8e8; background: #1c1c1c; } }
h1 { font-size: 1.4rem; margin-top: 3rem; }
h2 { font-size: 1rem; margin: 1.5rem 0 .2rem; }
small { font-weight: normal; opacity: .7; }
div { white-space: pre-wrap; overflow-wrap: anywhere; }
</style>
</head>
<body>
"""
_FOOT = "</body>\n</html>\n"


class Markdown:
    """Conversations as Markdown; what was said is Markdown itself."""

    head = ""
    between = "\n---\n\n"
    foot = ""

    def conversation(self, info: ConversationInfo, messages: Sequence[Stored]) -> str:
        """One conversation."""
        parts = [f"# {' '.join(info.title.split())}\n"]
        for message in path_to(messages, info.leaf_id):
            parts.append(f"## {_speaker(message)} · {_when(message.created_s)}\n")
            parts += [f"*Attached: {' '.join(a.name.split())}*\n" for a in message.attachments]
            parts.append(message.text.rstrip() + "\n")
        return "\n".join(parts)


class Html:
    """Conversations as a page; what was said is shown as it is, whatever it holds."""

    head = _HEAD
    between = ""
    foot = _FOOT

    def conversation(self, info: ConversationInfo, messages: Sequence[Stored]) -> str:
        """One conversation."""
        parts = [f'<h1 dir="auto">{escape(info.title)}</h1>']
        for message in path_to(messages, info.leaf_id):
            who, when = escape(_speaker(message)), _when(message.created_s)
            parts.append(f"<h2>{who} <small>{when}</small></h2>")
            parts += [f"<p>Attached: {escape(a.name)}</p>" for a in message.attachments]
            parts.append(f'<div dir="auto">{escape(message.text)}</div>')
        return "\n".join(parts) + "\n"


def _speaker(message: Stored) -> str:
    if message.role is Role.ASSISTANT:
        model = message.answer.model if message.answer is not None else ""
        return " ".join(model.split()) or "Assistant"
    return "System prompt" if message.role is Role.SYSTEM else "You"


def _when(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"
    except (ValueError, OSError, OverflowError):  # a clock beyond what calendars hold
        return "unknown date"
