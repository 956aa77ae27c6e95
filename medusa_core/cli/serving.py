"""Implementation of `medusa serve`; needs the extra `server`."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import secrets
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO

from medusa_core.cli.load_arguments import (
    NO_HEADS,
    local_load_command,
    model_dirs,
)
from medusa_core.cli.serve import KEY_VARIABLE
from medusa_core.client import Client
from medusa_core.errors import RequestError
from medusa_core.hub.library.find import folder_list, installed
from medusa_core.hub.settings import settings_from
from medusa_core.messages import LoadModel
from medusa_core.server.guard import is_loopback
from medusa_core.server.installed_models import InstalledModels, served_model
from medusa_core.server.limits import Limits
from medusa_core.server.request_log import JsonLog, RequestListener, RequestRecord
from medusa_core.server.served_models import ServedModel
from medusa_core.server.server import Server
from medusa_core.server.server_options import ServerOptions
from medusa_core.system.files.disk_errors import disk_errors
from medusa_core.system.running_models import RunningFile
from medusa_core.system.user_folders import places

_SESSION = "server"
_MOST_WAITING = 10_000
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[^\s/?#@:*,\[\]]+)(?::([0-9]{1,5}))?")
_DEFAULT_PORTS = {("http", "80"), ("https", "443")}


def serve_until_ended(args: argparse.Namespace) -> None:
    """Serve until interrupted."""
    options = _options(args)
    with ExitStack() as stack:
        on_request: RequestListener = _ignore
        if args.json_log is not None:
            on_request = JsonLog(stack.enter_context(_open_log(args.json_log)))
        model_dir, _ = model_dirs(args)
        source = InstalledModels(
            model_dir,
            settings_from(os.environ).cache_dir,
            folder_list().read,
            _loading(args, model_dir),
        )
        file = RunningFile(places().running, "serve")
        stack.callback(file.close)

        def make_client() -> Client:
            """Return a client whose loaded model is listed in `medusa ps`."""
            client = Client()
            client.listen(file.receive)
            return client

        def announce(address: str) -> None:
            """Print and list the server's address."""
            file.set_address(address)
            _announce(address, args, options, server)

        server = Server(options, make_client, source, on_request)
        asyncio.run(server.serve(announce))


def _options(args: argparse.Namespace) -> ServerOptions:
    """Return the options of the server; generates a key if other computers can reach it.

    Raises:
        RequestError: An argument is invalid.
    """
    if not 0 <= args.port < 1 << 16 or not 0 <= args.queue <= _MOST_WAITING:
        raise RequestError(
            "--port or --queue is out of range.",
            f"Choose a port below 65,536 and a queue of at most {_MOST_WAITING:,}.",
        )
    key = _given_key(args)
    if not key and not is_loopback(args.host):
        key = secrets.token_urlsafe(24)
    if not key.isascii() or not key.isprintable() or key != key.strip():
        raise RequestError(
            "The key can't be sent in a header.",
            "Choose one of ASCII letters, digits and marks, without space around it.",
        )
    limits = replace(Limits(), most_waiting=args.queue)
    origins = frozenset(map(_origin, args.cors_origin))
    return ServerOptions(
        *(args.host, args.port, key, origins, limits, args.strict_models),
        embedding_model=_embedding_model(args),
        embedding_device=args.device,
    )


def _embedding_model(args: argparse.Namespace) -> ServedModel | None:
    """Return the embedding model; None for none.

    Raises:
        RequestError: It isn't installed.
        ModelError: It is no embedding model, or an unsupported one.
    """
    if not args.embedding_model:
        return None
    from medusa_core.engine.embeddings.files import open_embedding_files  # imports torch

    path = installed(args.embedding_model)
    open_embedding_files(path)
    return served_model(path)


def _origin(text: str) -> str:
    """Normalize an origin to the form of browsers.

    Raises:
        RequestError: The text is no origin.
    """
    found = _ORIGIN.fullmatch(text.strip().rstrip("/").lower())
    if found is None:
        raise RequestError(
            f"{text!r} is no origin of pages.",
            "Write scheme and host, such as https://example.org; several are given one by one.",
        )
    scheme, host, port = found.groups()
    is_default = port is None or (scheme, port) in _DEFAULT_PORTS
    return f"{scheme}://{host}" if is_default else f"{scheme}://{host}:{port}"


def _given_key(args: argparse.Namespace) -> str:
    """Return the API key of arguments or environment."""
    key: str = args.api_key or os.environ.get(KEY_VARIABLE, "")
    return key


def _loading(args: argparse.Namespace, first: Path) -> Callable[[Path], LoadModel]:
    """Return `load_command` of `InstalledModels`; heads and adapters are for the first model.

    Its plan keeps memory free for the embedding model.
    """
    reserved = 0
    if args.embedding_model:
        from medusa_core.engine.embeddings.load import planned_bytes  # imports torch

        reserved = planned_bytes(installed(args.embedding_model), args.device)

    def command(path: Path) -> LoadModel:
        """Return the command that loads a model."""
        named = argparse.Namespace(**vars(args))
        if path.resolve() != first.resolve():
            named.model = str(path)
            named.heads = NO_HEADS if args.heads == NO_HEADS else ""
            named.assistant = named.adapter = ""
            named.phrases = None
        load = local_load_command(named, _SESSION)
        return replace(load, options=replace(load.options, reserved_bytes=reserved))

    return command


def _announce(
    address: str, args: argparse.Namespace, options: ServerOptions, server: Server
) -> None:
    """Print the address, and handle signals from now on."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: server.stop())
    print(f"listening at {address}/v1")
    if options.api_key != _given_key(args):
        print(f"  key for clients, made for this run: {options.api_key}")
    print("ready; Ctrl-C ends it", flush=True)


def _ignore(record: RequestRecord) -> None:
    """Drop a record: there is no log."""


def _open_log(path: Path) -> IO[str]:
    """Open the request log for appending."""
    with disk_errors(RequestError, path, "Choose another --json-log."):
        return path.open("a", encoding="utf-8")
