"""Arguments for the grammar of an answer."""

from __future__ import annotations

import argparse
from pathlib import Path

from medusa_core.cli.program import argument_group, check_first
from medusa_core.errors import GrammarError


def add_grammar_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the mutually exclusive arguments for a grammar."""
    parser.set_defaults(endpoint="")
    check_first(parser, _check_grammar)
    group = argument_group(parser, "output").add_mutually_exclusive_group()
    group.add_argument(
        "--json-schema", type=Path, metavar="FILE", help="answer JSON that matches this schema"
    )
    group.add_argument(
        "--grammar", type=Path, metavar="FILE", help="answer what this grammar (Lark) describes"
    )


def _check_grammar(args: argparse.Namespace) -> None:
    """Compile the grammar before a model is loaded; endpoints may accept others.

    Raises:
        GrammarError: See `read_grammar`; or the grammar is invalid or too expensive.
    """
    text = read_grammar(args)
    if text and not args.endpoint:
        from medusa_core.models.text.grammar_process import GrammarProcess

        GrammarProcess().check(text)


def read_grammar(args: argparse.Namespace) -> str:
    """Read the grammar of the arguments; empty for none.

    Raises:
        GrammarError: The file can't be read, or is no JSON schema.
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
