"""`medusa serve-layers`: offer layers of a model to a cluster."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from medusa_core.errors import RequestError
from medusa_core.hub.library.find import installed
from medusa_core.system.resources import start_model

if TYPE_CHECKING:
    from medusa_core.runtime.cluster.protocol import StageOffer

_PORT = 6379
_GIB = 1 << 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `serve-layers`."""
    parser.set_defaults(run=run)
    parser.add_argument(
        "--join",
        default="",
        metavar="HOST:PORT",
        help="address of the cluster to join (default: start one here)",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address of this machine for others, where a cluster is started "
        "(default: %(default)s, which only this machine reaches)",
    )
    parser.add_argument(
        "--port", type=int, default=_PORT, help="port of the cluster (default: %(default)s)"
    )
    parser.add_argument(
        "--model",
        default="",
        help="folder, GGUF file, or repository in the cache (default: as of generate)",
    )
    parser.add_argument(
        "--memory-gib",
        type=float,
        default=0.0,
        help="memory budget of layers and their caches in GiB (default: most of what is free)",
    )
    parser.add_argument("--device", default="", help="cpu, cuda or cuda:N (default: best there is)")
    parser.add_argument(
        "--delay-ms",
        type=float,
        default=0.0,
        help="delay added to each pass, to simulate a slow network",
    )


def run(args: argparse.Namespace) -> int:
    """Offer layers until interrupted."""
    from medusa_core.runtime.cluster.ray_setup import (
        RayNode,
        make_token,
    )
    from medusa_core.runtime.cluster.serving import (
        Offering,
        serve,
    )

    if not 0 <= args.memory_gib < 1 << 20 or not 0 <= args.delay_ms < 60_000:
        raise RequestError("The memory or the delay makes no sense.", "Choose positive numbers.")
    model_dir = (installed(args.model) if args.model else start_model()).absolute()
    address = args.join or f"{args.host}:{args.port}"
    if not args.join:
        make_token()
    offering = Offering(model_dir, int(args.memory_gib * _GIB), args.device, args.delay_ms / 1000)
    node = RayNode(address, is_head=not args.join)
    # Replaces Ray's handler, so that the node is closed, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def print_offer(offer: StageOffer) -> None:
        """Print the offer once the layers are loaded."""
        print(_offer_text(address, model_dir, offer), flush=True)

    try:
        serve(node, offering, print_offer)
    finally:
        node.close()
    return 0


def _offer_text(address: str, model_dir: Path, offer: StageOffer) -> str:
    """Format the address, the memory and the commands for other machines."""
    from medusa_core.runtime.cluster.ray_setup import (
        TOKEN_FILE_VARIABLE,
        TOKEN_VARIABLE,
        token_file,
    )

    where = f"the variable {TOKEN_VARIABLE}" if TOKEN_VARIABLE in os.environ else f"{token_file()}"
    return (
        f"{model_dir.name} at {address}: {offer.name}, {offer.place}, "
        f"{offer.memory_bytes / _GIB:.1f} GiB for layers\n"
        f"  more machines: medusa serve-layers --join {address} --model MODEL\n"
        f"  use them:      medusa generate --cluster {address} --model MODEL ...\n"
        f"  the token:     {where}; other machines need it in the same place,\n"
        f"                 in {TOKEN_VARIABLE}, or in a file that {TOKEN_FILE_VARIABLE} names.\n"
        "  Who has the token can run code on all of these machines: give it to machines that you\n"
        "  own, and to nobody else."
    )
