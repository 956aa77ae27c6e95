"""A process that downloads is killed: the next one goes on where it was."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from medusa_core.hub.cache_folder import find_snapshot
from medusa_core.hub.listing import list_repo
from medusa_core.hub.settings import HubSettings
from tests.support.hub.child import CHILD
from tests.support.hub.fixtures import REPOSITORY, LoopbackHub, in_library
from tests.support.hub.pairs import HEADS, MIB, MODEL, check_whole, fill, sent


def kill_and_resume(hub: LoopbackHub, settings: HubSettings, nbytes: int, num_kills: int) -> None:
    """Kill the downloader repeatedly: all files are complete, and little was sent twice."""
    fill(hub, nbytes)
    total = sum(list_repo(settings, repo).needed_bytes for repo in (MODEL, HEADS))
    order = random.Random(5)
    command = [sys.executable, "-c", CHILD, hub.endpoint, str(settings.cache_dir)]
    lost = []
    for kill in range(num_kills):
        sent_before, here_before = sent(hub), here(settings.cache_dir)
        target = total * (kill + order.random()) / (num_kills + 1)
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL) as child:
            while here(settings.cache_dir) < target and child.poll() is None:
                time.sleep(0.002)
            assert child.poll() is None, "it ended before it could be killed"
            child.send_signal(signal.SIGKILL)
        time.sleep(0.1)  # the server notices
        came = here(settings.cache_dir) - here_before
        # What the server put on its way and nobody took counts too.
        lost.append(sent(hub) - sent_before - came)
        assert find_snapshot(settings.cache_dir, MODEL) is None
    last = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True)
    model = find_snapshot(settings.cache_dir, MODEL)
    heads = find_snapshot(settings.cache_dir, HEADS)
    assert model is not None
    assert heads is not None
    check_whole(hub, MODEL, model)
    check_whole(hub, HEADS, heads)
    fetched_at_last = int(last.stdout)
    assert fetched_at_last < total
    assert max(lost) <= 16 * MIB, f"{max(lost)} bytes were fetched twice after one kill"
    lost_mib = ", ".join(f"{nbytes / MIB:.0f}" for nbytes in lost)
    print(f"{num_kills} kills of {total / MIB:.0f} MiB: sent twice, in MiB: {lost_mib}")
    code = (
        f"from huggingface_hub import snapshot_download as s; s('{HEADS}', local_files_only=True)"
    )
    in_library(hub, settings.cache_dir, code)


def here(cache: Path) -> int:
    """Bytes of blobs, whole or not."""
    return sum(size_of(path) for path in cache.glob("*/blobs/*"))


def size_of(path: Path) -> int:
    """A file's size; nothing while it changes its name."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


# Without a limit loopback fills the kernel's buffers, megabytes for each connection, whenever the
# reader is kept waiting by other work; a line has no such room.
fast_line = pytest.mark.parametrize("hub", [64 * MIB], indirect=True, ids=["fast_line"])


@fast_line
def test_a_killed_download_resumes_where_it_was(hub: LoopbackHub, settings: HubSettings) -> None:
    kill_and_resume(hub, settings, nbytes=26 * MIB, num_kills=5)


@pytest.mark.slow
@fast_line
def test_a_large_download_that_is_killed_twenty_times(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    kill_and_resume(hub, settings, nbytes=820 * MIB, num_kills=20)


NUM_DOWNLOADS = 3


@pytest.mark.parametrize("hub", [8 * MIB], indirect=True, ids=["slow_line"])
def test_processes_that_fetch_one_model_concurrently_all_get_it_whole(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub, 2 * MIB)
    command = [sys.executable, "-c", CHILD, hub.endpoint, str(settings.cache_dir)]
    children = [
        subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
        for _ in range(NUM_DOWNLOADS)
    ]
    output = [child.communicate(timeout=240)[0] for child in children]
    assert [child.returncode for child in children] == [0] * NUM_DOWNLOADS
    total = sum(list_repo(settings, repo).needed_bytes for repo in (MODEL, HEADS))
    assert sum(int(text) for text in output) == total, "each byte was fetched once"
    for repo in (MODEL, HEADS):
        snapshot = find_snapshot(settings.cache_dir, repo)
        assert snapshot is not None
        check_whole(hub, repo, snapshot)
