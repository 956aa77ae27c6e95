"""What troubleshooting quotes is what the program says."""

from __future__ import annotations

import re
from functools import cache

from docs.pages import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
ROW = re.compile(r"^\| (?!message )(?P<message>[^|]+) \|[^|]+\|$", re.MULTILINE)
MESSAGES = [row["message"].strip() for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))]
JOINED = re.compile(r"\"\s*\n\s*f?\"")
FIELD = re.compile(r"\{[^{}\n]*\}")


@cache
def all_texts() -> str:
    """The program, its texts in one piece each, with … for what is filled in."""
    folders = (ROOT / folder for folder in ("app", "medusa_core", "installer"))
    sources = (path.read_text("utf-8") for folder in folders for path in folder.rglob("*.py"))
    return FIELD.sub("…", JOINED.sub("", "\n".join(sources)))


def test_the_troubleshooting_page_lists_messages() -> None:
    assert len(MESSAGES) >= 40
    assert len(set(MESSAGES)) == len(MESSAGES)


def test_quoted_messages_are_those_of_the_program() -> None:
    assert [message for message in MESSAGES if message not in all_texts()] == []
