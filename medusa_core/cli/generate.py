"""`medusa generate`: print one answer."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import TextIO

from medusa_core.chats.conversation import new_id
from medusa_core.chats.trace_file import (
    Recording,
    write_trace,
)
from medusa_core.cli.arguments import (
    add_drafter_arguments,
    add_measure_argument,
    add_rule_arguments,
    check_files,
    settings_of,
)
from medusa_core.cli.grammar_arguments import add_grammar_arguments, read_grammar
from medusa_core.cli.load_arguments import (
    add_endpoint_argument,
    add_model_arguments,
    load_command,
)
from medusa_core.cli.program import argument_group, check_first
from medusa_core.cli.terminal.screen import escaped, takes_colour
from medusa_core.cli.terminal.statistics import statistics_line
from medusa_core.client import Client
from medusa_core.errors import RequestError
from medusa_core.messages import (
    ChatMessage,
    Generate,
    GenerationDone,
    LayersMoved,
    ModelLoaded,
    Role,
    StepDone,
    StepTrace,
)

# A colour per head; underlined, for people who don't see the colours.
_HEAD_STYLES = ("\x1b[4;36m", "\x1b[4;33m", "\x1b[4;35m", "\x1b[4;32m", "\x1b[4;34m")
_RESET = "\x1b[0m"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `generate`."""
    parser.set_defaults(run=run)
    parser.add_argument(
        *("-p", "--prompt"), required=True, metavar="TEXT", help="what to ask; - for standard input"
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--raw",
        action="store_true",
        help="continue the prompt, without the model's chat template",
    )
    output.add_argument(
        "--max-new-tokens",
        type=int,
        default=0,
        help="longest answer; default: what the context leaves",
    )
    output.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end before this string"
    )
    output.add_argument("--json", action="store_true", help="print one JSON object, don't stream")
    output.add_argument("--trace", type=Path, help="write a trace of every step to this file")
    add_grammar_arguments(parser)
    add_model_arguments(parser)
    add_endpoint_argument(argument_group(parser, "model"))
    add_drafter_arguments(parser)
    add_measure_argument(argument_group(parser, "drafting"))
    add_rule_arguments(parser)
    check_first(parser, lambda args: check_files([args.trace]))


def run(args: argparse.Namespace) -> int:
    """Answer the prompt, and print the answer with statistics."""
    return asyncio.run(_generate(args))


async def _generate(args: argparse.Namespace) -> int:
    """Load the model, print the answer and write its trace and statistics."""
    prompt = sys.stdin.read() if args.prompt == "-" else args.prompt
    messages, grammar = (ChatMessage(Role.USER, prompt),), read_grammar(args)
    printer = None if args.json else _Printer(sys.stdout)
    traces: list[StepTrace] = []
    async with Client() as client:
        loaded = await client.load(load_command(args, "generate"))
        if loaded.is_remote and args.trace is not None:
            raise RequestError("Steps of another machine can't be recorded.", "Leave out --trace.")
        first = loaded.drafters[0].name
        drafter = first if loaded.is_remote else args.drafter or first
        settings = settings_of(args, drafter, args.tree_rows, tuple(args.stop))
        if args.measure_again:
            await client.calibrate(is_anew=True)
        request = Generate(
            new_id(),
            new_id(),
            messages,
            settings,
            records=args.trace is not None,
            grammar=grammar,
        )
        async with aclosing(client.generate(request)) as events:
            async for event in events:
                if isinstance(event, StepDone) and printer is not None:
                    printer.print_step(event)
                elif isinstance(event, LayersMoved):
                    print(event.move.text, file=sys.stderr)
                elif isinstance(event, StepTrace):
                    traces.append(event)
                elif isinstance(event, GenerationDone):
                    done = event
        if printer is None:
            print(json.dumps(as_json(done, loaded), ensure_ascii=False))
        else:
            printer.end()
            print(statistics_line(done))
        if args.trace is not None:
            write_trace(args.trace, Recording(loaded.name, tuple(traces), done))
        if drafter != "none" and not args.tree_rows and not loaded.is_remote:
            sys.stdout.flush()
            await client.finish_calibration(request.session_id)
    return 0


def as_json(done: GenerationDone, loaded: ModelLoaded) -> dict[str, object]:
    """Return the figures of an answer under the documented names of `--json`, null for unknown.

    Remote answers have no steps; the number of draft tokens is known for them alone.
    """
    is_remote = loaded.is_remote
    return {
        "text": done.text,
        "token_ids": None if is_remote else list(done.token_ids),
        "num_tokens": done.num_new_tokens,
        "num_steps": None if is_remote else done.num_steps,
        "accept_lengths": None if is_remote else list(done.accept_lengths),
        "mean_acceptance_length": None if is_remote else done.mean_acceptance_length,
        "time_to_first_token_s": done.time_to_first_token_s,
        "prefill_s": done.prefill_s,
        "decode_s": done.decode_s,
        "tokens_per_s": done.tokens_per_s,
        "stop_reason": done.stop_reason.value,
        "drafter": None if is_remote else done.settings.drafter,
        "rule": done.settings.rule,
        "model": loaded.name,
        "seed": done.settings.seed,
        "num_drafted": done.num_drafted or None,
        "num_draft_accepted": done.num_draft_accepted if done.num_drafted else None,
    }


class _Printer:
    """Prints an answer while it streams; accepted tokens are coloured by head in a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._has_colour = takes_colour(stream, os.environ)
        self._held: list[tuple[bytes, int]] = []
        self._num_shown = 0

    def print_step(self, step: StepDone) -> None:
        """Print the text that became visible."""
        heads = (source.head for source in step.sources)
        self._held.extend(zip(step.pieces, heads, strict=True))
        while self._held and self._num_shown < step.num_visible_bytes:
            piece, head = self._held.pop(0)
            room = step.num_visible_bytes - self._num_shown
            self._write(piece[:room], head)
            if len(piece) > room:
                self._held.insert(0, (piece[room:], head))
        self._stream.flush()

    def end(self) -> None:
        """Print an empty line after the answer."""
        self._stream.write("\n\n")

    def _write(self, piece: bytes, head: int) -> None:
        """Write text in the colour of its head."""
        text = piece.decode("utf-8", "replace")
        if self._stream.isatty():
            text = escaped(text)
        self._num_shown += len(piece)
        if head and self._has_colour and text.strip():
            style = _HEAD_STYLES[(head - 1) % len(_HEAD_STYLES)]
            text = f"{style}{text}{_RESET}"
        self._stream.write(text)
