"""`medusa run`: a chat in the terminal."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from medusa_core.chats.history.history import open_history
from medusa_core.chats.presets import Presets
from medusa_core.chats.settings import ChatSettings
from medusa_core.cli.arguments import add_measure_argument, check_drafters, check_rule
from medusa_core.cli.load_arguments import (
    NO_HEADS,
    add_endpoint_argument,
    add_loading_arguments,
    load_command,
    model_key_of,
)
from medusa_core.cli.program import check_first
from medusa_core.cli.terminal.chat import ChosenModel, TerminalChat
from medusa_core.cli.terminal.chat_record import ChatRecord
from medusa_core.cli.terminal.line_editor import LineEditor, ask_user
from medusa_core.cli.terminal.screen import Screen, escaped
from medusa_core.cli.terminal.setting_texts import with_parsed
from medusa_core.cli.terminal.slash_commands import SlashCommands
from medusa_core.cli.terminal.tool_calls import TerminalTools
from medusa_core.client import Client
from medusa_core.errors import MedusaError, RequestError
from medusa_core.hub.first_model import is_first_model_offered
from medusa_core.hub.library.find import find_named, loadable_models
from medusa_core.hub.settings import settings_from
from medusa_core.messages import ModelLoaded, Progress
from medusa_core.system.resources import FIRST_MODEL_FILE, FIRST_MODEL_NAME
from medusa_core.system.running_models import RunningFile
from medusa_core.system.user_folders import Places, places
from medusa_core.tools.toolbox import Toolbox

_SESSION = "run"
_LINES_FILE = "typed-lines"
_FAILED, _STOPPED = 1, 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `run`."""
    parser.add_argument(
        "model",
        nargs="?",
        default="",
        metavar="MODEL",
        help="the same as --model; without one, the prompt goes to the default model",
    )
    parser.add_argument(
        "prompt", nargs="*", metavar="PROMPT", help="what to ask; then it answers once and ends"
    )
    chat = parser.add_argument_group("chat")
    chat.add_argument("--system", default="", metavar="TEXT", help="system prompt")
    chat.add_argument(
        "--set",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="a setting, such as temperature 0.5; /set in the chat lists them",
    )
    chat.add_argument(
        "--no-history", action="store_true", help="save neither the conversation nor what is typed"
    )
    chat.add_argument(
        "--no-learned",
        action="store_true",
        help="draft without what the model said in earlier conversations",
    )
    chat.add_argument(
        "--tools",
        default="",
        metavar="NAMES",
        help="tools that the model may call, each call after a question: built-in ones such as "
        "calculate, tools of servers such as 'time/*', separated by commas",
    )
    add_measure_argument(chat)
    chat.add_argument("--data-dir", type=Path, help="the folder that the window is started with")
    model = parser.add_argument_group("model")
    model.add_argument(
        *("-m", "--model"),
        dest="named_model",
        default="",
        help="folder, GGUF file, or a name that list shows (default: the model of the first "
        "start, or the demo model where that wasn't fetched)",
    )
    add_endpoint_argument(model)
    add_loading_arguments(parser, model)
    parser.set_defaults(run=run, raw=False)
    check_first(parser, _check_set)


def run(args: argparse.Namespace) -> int:
    """Chat until the user leaves; with a prompt or piped input, answer once."""
    if args.named_model:  # then all words are the prompt's
        args.prompt = [*filter(None, (args.model,)), *args.prompt]
        args.model = args.named_model
    elif _is_prompt(args):  # `run "Say hi"`: the default model is asked
        args.prompt = [args.model, *args.prompt]
        args.model = ""
    args.data_places = places(args.data_dir)
    question = _question(args.prompt)
    screen = Screen(sys.stdout, sys.stderr, os.environ)
    return asyncio.run(_chat(args, screen, question))


def _is_prompt(args: argparse.Namespace) -> bool:
    """Return whether the first word of the command line is a question instead of a model."""
    words = args.model.split()
    return len(words) > 1 and not args.endpoint and find_named(args.model) is None


def _question(words: Sequence[str]) -> str | None:
    """Return the prompt of the command line and of standard input; None to chat.

    Raises:
        RequestError: The piped input is empty.
    """
    given = " ".join(words)
    if sys.stdin.isatty():
        return given or None
    piped = sys.stdin.read().strip()
    question = "\n\n".join(filter(None, (given, piped)))
    if not question:
        raise RequestError("There is no prompt.", "Pipe one in, or write it behind the model.")
    return question


async def _chat(args: argparse.Namespace, screen: Screen, question: str | None) -> int:
    """Load the model, then answer one question or talk."""
    # First the tools: a name without one must not wait for the model.
    async with _tools(args, screen) as tools, Client() as client, _listed(args, client):
        models = LoadedModels(client, args, screen)
        model = await models.load(args.model)
        if args.measure_again and not model.loaded.is_remote:
            await _measure_again(client, screen)
        settings = _settings(args, model.loaded)
        if question is not None:
            record = ChatRecord(None, screen.print_error)
            chat = TerminalChat(client, model, settings, screen, record, tools)
            status = await _answer_once(chat, question)
            if status == 0 and not model.loaded.is_remote:
                await client.finish_calibration(chat.conversation.session_id)
            return status
        if not model.loaded.is_remote:
            client.calibrate_when_idle()
        record = _record(args, screen)
        try:
            chat = TerminalChat(client, model, settings, screen, record, tools)
            commands = SlashCommands(chat, screen, record, models)
            await _talk(chat, commands, screen, _editor(args, commands))
        finally:
            record.close()
    return 0


@asynccontextmanager
async def _listed(args: argparse.Namespace, client: Client) -> AsyncIterator[None]:
    """List the loaded model in `medusa ps`."""
    where: Places = args.data_places
    file = RunningFile(where.running, "run")
    client.listen(file.receive)
    try:
        yield
    finally:
        file.close()


@asynccontextmanager
async def _tools(args: argparse.Namespace, screen: Screen) -> AsyncIterator[TerminalTools | None]:
    """Open the tools that the command line names; None for none.

    Raises:
        RequestError: There is no such tool.
    """
    names = tuple(filter(None, map(str.strip, args.tools.split(","))))
    if not names:
        yield None
        return
    where: Places = args.data_places
    where.make_private()
    toolbox = Toolbox(where.config, is_offline=settings_from(os.environ).is_offline)
    try:
        tools = TerminalTools(toolbox, names, screen, ask_user if sys.stdin.isatty() else None)
        await tools.connect()
        yield tools
    finally:
        await asyncio.to_thread(toolbox.close)


async def _answer_once(chat: TerminalChat, question: str) -> int:
    """Answer one question and return the exit status."""
    with _stopped_by_signal(chat):
        has_answered = await chat.ask(question, records=False)
    if chat.last.is_stopped:
        return _STOPPED
    return 0 if has_answered else _FAILED


async def _talk(
    chat: TerminalChat, commands: SlashCommands, screen: Screen, editor: LineEditor
) -> None:
    """Read and answer lines until the user leaves."""
    screen.print_dim(f"{escaped(chat.description)} · /help")
    if is_first_model_offered():
        name = FIRST_MODEL_FILE[0]
        screen.print_dim(
            f"medusa pull {name} fetches {FIRST_MODEL_NAME}, a small chat model (93 MB)"
        )
    while not commands.is_over:
        try:
            line = await editor.read()
        except KeyboardInterrupt:
            screen.print_dim("Ctrl-D or /bye leaves.")
            continue
        except EOFError:
            return
        if not line.strip():
            continue
        try:
            if commands.is_command(line):
                await commands.run(line)
                continue
            with _stopped_by_signal(chat):
                await chat.ask(line, records=True)
            screen.print()
        except MedusaError as error:
            screen.print_error(error.message, error.hint)


@contextmanager
def _stopped_by_signal(chat: TerminalChat) -> Iterator[None]:
    """Let Ctrl-C stop the answer, and a second one the program."""
    loop = asyncio.get_running_loop()

    def stop(*_: object) -> None:
        """Stop the answer; the next Ctrl-C ends the program."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        loop.call_soon_threadsafe(chat.stop)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def _measure_again(client: Client, screen: Screen) -> None:
    """Measure step costs, which takes seconds."""
    screen.progress("measuring steps …")
    try:
        await client.calibrate(is_anew=True)
    finally:
        screen.progress("")


def _settings(args: argparse.Namespace, loaded: ModelLoaded) -> ChatSettings:
    """Return the window's settings for new conversations, with those of the command line.

    Raises:
        RequestError: A setting or value is invalid.
    """
    where: Places = args.data_places
    presets = Presets(where.config)
    presets.apply_advice(loaded.advice)
    settings = replace(presets.beginning, system_prompt=args.system)
    for name, value in args.set:
        settings = with_parsed(settings, name, value, loaded)
    return settings


def _check_set(args: argparse.Namespace) -> None:
    """Check settings before a model is loaded.

    Raises:
        RequestError: A setting or value is invalid.
    """
    settings = ChatSettings()
    for name, value in args.set:
        settings = with_parsed(settings, name, value, None)
    if args.set and not args.endpoint:
        check_drafters([settings.drafter])
        check_rule(settings.rule)


def _record(args: argparse.Namespace, screen: Screen) -> ChatRecord:
    """Open the window's history; in memory if that fails."""
    if args.no_history:
        return ChatRecord(None, screen.print_error)
    where: Places = args.data_places
    where.make_private()
    history = open_history(where.history)
    if history.notice:
        screen.print_dim(history.notice)
    return ChatRecord(history, screen.print_error)


def _editor(args: argparse.Namespace, commands: SlashCommands) -> LineEditor:
    """Return the prompt line with the history of earlier lines."""
    where: Places = args.data_places
    file = None
    if not args.no_history and os.access(where.state, os.W_OK):
        file = where.state / _LINES_FILE
        file.touch(mode=0o600)
    return LineEditor(file, commands.completions)


class LoadedModels:
    """Loads models with the arguments of the command line."""

    def __init__(self, client: Client, args: argparse.Namespace, screen: Screen) -> None:
        self._client, self._args, self._screen = client, args, screen
        self._loads_others = False

    def names(self) -> tuple[str, ...]:
        """Return the names of installed models."""
        return tuple(loadable_models())

    async def load(self, name: str) -> ChosenModel:
        """Load a model; given heads and adapters are for the first one only.

        Raises:
            MedusaError: The model can't be loaded.
        """
        args = argparse.Namespace(**vars(self._args))
        args.model = name
        if self._loads_others:
            args.heads = NO_HEADS if self._args.heads == NO_HEADS else ""
            args.assistant = args.adapter = ""
            args.phrases = None
        self._loads_others = True
        command = load_command(args, _SESSION)
        try:
            loaded = await self._client.load(command, self._show)
        finally:
            self._screen.progress("")
        return ChosenModel(model_key_of(args, loaded), loaded)

    def _show(self, event: Progress) -> None:
        """Show the progress of loading."""
        self._screen.progress(f"{event.text} {event.fraction:.0%}")
