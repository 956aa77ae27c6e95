"""A process that downloads a model, to be killed."""

CHILD = """
import asyncio, sys, threading
from pathlib import Path
from medusa_core.hub.job import Pair
from medusa_core.hub.pair_download import Tally, download_pair
from medusa_core.hub.settings import HubSettings
settings = HubSettings(endpoint=sys.argv[1], cache_dir=Path(sys.argv[2]), floor_bytes=0)
tally = Tally()
asyncio.run(download_pair(settings, Pair("org/model", "org/heads"), tally, threading.Event()))
print(tally.fetched_bytes)
"""
