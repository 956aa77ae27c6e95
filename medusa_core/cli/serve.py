"""`medusa serve`: serve a model over HTTP."""

from __future__ import annotations

import argparse
from pathlib import Path

from medusa_core.cli.load_arguments import add_model_arguments
from medusa_core.server.limits import Limits
from medusa_core.server.server_options import DEFAULT_PORT
from medusa_core.system.extras import SERVER_EXTRA

KEY_VARIABLE = "MEDUSA_API_KEY"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `serve`."""
    group = parser.add_argument_group("server")
    group.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen at; others than this computer need a key (default: %(default)s)",
    )
    group.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help="0 for any free port (default: %(default)s)"
    )
    group.add_argument(
        "--api-key",
        default="",
        metavar="K",
        help=f"what clients must send (default: {KEY_VARIABLE}; else none on this computer, and "
        "one that is made and printed elsewhere)",
    )
    group.add_argument(
        "--cors-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let pages of this site use the server, such as https://example.org",
    )
    group.add_argument(
        "--queue",
        type=int,
        default=Limits().most_waiting,
        help="longest queue of waiting requests (default: %(default)s)",
    )
    group.add_argument(
        "--strict-models",
        action="store_true",
        help="refuse requests for a model that isn't here (default: the loaded one answers them)",
    )
    group.add_argument(
        "--json-log", type=Path, metavar="FILE", help="a JSON line for each request, without texts"
    )
    group.add_argument(
        "--embedding-model",
        default="",
        metavar="MODEL",
        help="folder, GGUF file or name of a model for /v1/embeddings, loaded beside the chat "
        "model on first use",
    )
    add_model_arguments(parser)
    parser.add_argument(
        "--no-learned",
        action="store_true",
        help="draft without what the model said in earlier conversations",
    )
    parser.set_defaults(run=run, raw=False)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted.

    Raises:
        MissingExtraError: The extra `server` isn't installed.
    """
    SERVER_EXTRA.need()
    from medusa_core.cli.serving import serve_until_ended

    serve_until_ended(args)
    return 0
