"""Commands of the documents are those that there are, with options that they have."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Iterator
from functools import cache

from markdown_it import MarkdownIt

from docs.pages import ROOT, site_files
from installer.bootstrap.cli import MAINTENANCE
from medusa_core.__main__ import COMMANDS
from medusa_core.cli.program import program_of_commands

PAGES = [page for page in site_files() if page.endswith(".md") and "changelog" not in page]
NAMES = {*COMMANDS, *MAINTENANCE}
CALL = re.compile(r"^(?:\S+=\S+ |\$ |.*\| )*(?:\S*/bin/)?medusa (?P<rest>[^#>|]*)")
# Not those of the demo model's recipe, which has commands of the same names.
ALONE = re.compile(rf"^(?!(?:train|eval) --)(?P<rest>(?:{'|'.join(sorted(NAMES))}) [^#>|]*--.*)")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def written(page: str) -> Iterator[str]:
    """The commands of a page without their first word."""
    text = (ROOT / page).read_text("utf-8")
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "fence":
            lines = token.content.replace("\\\n", " ").split("\n")
            yield from (found["rest"] for line in lines if (found := CALL.match(line)))
        for child in token.children or ():
            if child.type == "code_inline":
                found = CALL.match(child.content) or ALONE.match(child.content)
                if found:
                    yield found["rest"]


@cache
def parser_of(command: str) -> argparse.ArgumentParser:
    if command in MAINTENANCE:  # the launcher of a package does them without the program
        module = importlib.import_module(f"installer.bootstrap.{MAINTENANCE[command]}")
        parser = getattr(module, f"{command}_parser")()
        assert isinstance(parser, argparse.ArgumentParser)
        return parser
    program = program_of_commands("medusa", "", COMMANDS, (command,))
    return subparsers(program)[command]


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def mistake_of(rest: str) -> str:
    """Return the fault of a command line; empty if it is valid."""
    command, *words = rest.split() or [""]
    if not re.fullmatch(r"[a-z][a-z-]+", command) or command == "help":
        return ""  # a placeholder, or only the program's name
    if command not in NAMES:
        return "no such command"
    parser = parser_of(command)
    for word in words:
        parser = subparsers(parser).get(word, parser)
    return ", ".join(sorted(set(FLAG.findall(rest)) - set(parser._option_string_actions)))


def test_commands_of_pages_exist_and_have_their_options() -> None:
    calls = [(page, rest) for page in PAGES for rest in written(page)]
    assert len(calls) > 50
    wrong = [f"{page}: medusa {rest}: {what}" for page, rest in calls if (what := mistake_of(rest))]
    assert wrong == []


def test_every_command_is_in_the_table_of_the_terminal_page() -> None:
    table = (ROOT / "docs" / "terminal.md").read_text("utf-8").partition("## Commands")[2]
    rows = (line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `"))
    told = {word for row in rows for word in re.findall(r"[a-z-]+", row)}
    assert set(COMMANDS) - told == set()
