"""How fast a download is, and what it costs.

`python -m tests.benchmarks.downloads [--mb 1000] [--limit 125]`.

The server runs in a process of its own and is limited; the figures are the downloader's.
"""

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path

from medusa_core.hub.job import Pair
from medusa_core.hub.pair_download import Tally, download_pair
from medusa_core.hub.settings import HubSettings
from tests.support.hub.fixtures import LoopbackHub, random_file


def main() -> int:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--limit", type=int, default=125, help="of the server, in MB/s")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        hub = LoopbackHub(Path(folder) / "hub", args.limit * 10**6)
        random_file(hub.root / "org" / "model" / "model.safetensors", args.mb * 10**6)
        settings = HubSettings(endpoint=hub.endpoint, cache_dir=Path(folder) / "cache")
        asyncio.run(_warm_up(hub))
        tally, before, started = Tally(), _cpu_s(), time.perf_counter()
        asyncio.run(download_pair(settings, Pair("org/model"), tally, threading.Event()))
        seconds, cpu = time.perf_counter() - started, _cpu_s() - before
    figures = {
        "mb_per_s": round(tally.fetched_bytes / seconds / 1e6, 1),
        "of_limit": round(tally.fetched_bytes / seconds / 1e6 / args.limit, 3),
        "cores": round(cpu / seconds, 2),
    }
    print(json.dumps(figures))
    return 0


async def _warm_up(hub: LoopbackHub) -> None:
    """Request each file once, so that the server has hashed it and libraries are imported."""
    from medusa_core.hub.listing import list_repo

    await asyncio.to_thread(list_repo, HubSettings(endpoint=hub.endpoint), "org/model")


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
