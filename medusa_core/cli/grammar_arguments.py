"""Arguments of the command line that say what an answer must match."""

from __future__ import annotations

import argparse
from pathlib import Path

from medusa_core.cli.program import check_first, subject
from medusa_core.errors import GrammarError


def add_grammar_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments for a grammar; at most one of them may be given."""
    parser.set_defaults(endpoint="")
    check_first(parser, _check_grammar)
    group = subject(parser, "output").add_mutually_exclusive_group()
    group.add_argument(
        "--json-schema", type=Path, metavar="FILE", help="answer JSON that matches this schema"
    )
    group.add_argument(
        "--grammar", type=Path, metavar="FILE", help="answer what this grammar (Lark) describes"
    )


def _check_grammar(args: argparse.Namespace) -> None:
    """Refuse a grammar that can't be compiled; another machine may take others.

    Raises:
        GrammarError: As `read_grammar`; or it isn't valid, or takes too much time or memory.
    """
    text = read_grammar(args)
    if text and not args.endpoint:
        from medusa_core.models.text.grammar_process import GrammarProcess

        GrammarProcess().check(text)


def read_grammar(args: argparse.Namespace) -> str:
    """The grammar that the arguments name; empty for none.

    Raises:
        GrammarError: Its file can't be read, or holds no JSON.
    """
    path: Path | None = args.json_schema or args.grammar
    if path is None:
        return ""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GrammarError(f"{path} can't be read: {error}.", "Name another file.") from error
    if args.json_schema is None:
        return text
    from medusa_core.models.text.grammar_compiler import json_schema_grammar

    return json_schema_grammar(text)
