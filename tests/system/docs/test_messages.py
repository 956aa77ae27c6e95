"""Messages and commands that the documents quote are those of the program."""

from __future__ import annotations

import re
from functools import cache

from docs.pages import ROOT, site_files

PAGE = ROOT / "docs" / "troubleshooting.md"
ROW = re.compile(r"^\| (?!message )(?P<message>[^|]+) \|[^|]+\|$", re.MULTILINE)
MESSAGES = [row["message"].strip() for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))]
LABEL = re.compile(r"(?<!\*)\*([A-Z][\w ]+…)\*")
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


def test_commands_that_open_a_dialog_are_named_as_in_the_window() -> None:
    written = {
        label
        for page in site_files()
        if page.endswith(".md")
        for label in LABEL.findall((ROOT / page).read_text("utf-8"))
    }
    assert len(written) >= 10
    texts = all_texts().replace("&", "")
    # The menu adds the ellipsis to titles of pages.
    named = {label for label in written if label in texts or f'"{label[:-1]}"' in texts}
    assert written - named == set()
