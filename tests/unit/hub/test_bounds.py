"""No server takes more than was agreed to: bytes, tries, or time."""

import io
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from medusa_core.errors import DiskFullError, IntegrityError, MedusaError, NetworkError
from medusa_core.hub.bounds import MAX_RESTARTS, SMALL_PER_CONNECTION
from medusa_core.hub.cache_folder import RepoCache
from medusa_core.hub.job import Pair
from medusa_core.hub.listing import Listing, list_repo
from medusa_core.hub.pair_download import Tally, download_pair
from medusa_core.hub.part import PartialFile
from medusa_core.hub.settings import HubSettings, HubTimeouts
from medusa_core.hub.speed import StallDetector
from medusa_core.hub.watch import Stopped
from tests.support.hub.fixtures import REPOSITORY, random_file
from tests.support.hub.pairs import MIB, QUICK, fetch, run
from tests.support.hub.scripted import (
    SHA,
    Answer,
    Script,
    ScriptedHub,
    file_script,
    send,
    silent,
)

REPO = "o/model"
PATH = f"/{REPO}/resolve/{SHA}/model.safetensors"


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    return random_file(tmp_path / "random", 3 * MIB).read_bytes()


def refused(hub: ScriptedHub, settings: HubSettings, data: bytes, script: Script) -> MedusaError:
    """A download fails; nothing of it counts as whole, and no more is on the disk than declared."""
    hub.publish(REPO, {"model.safetensors": data})
    hub.answers[PATH] = script
    with pytest.raises(MedusaError) as caught:
        fetch(replace(settings, timeouts=QUICK), Pair(REPO))
    blobs = RepoCache(settings.cache_dir, REPO).folder / "blobs"
    assert [path.suffix for path in blobs.iterdir()] == [".part"]
    assert all(path.stat().st_size <= len(data) for path in blobs.iterdir())
    assert len(caught.value.message) <= 500
    return caught.value


# Bytes.


def test_no_more_is_written_than_declared(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    largest = sent = 0
    blobs = RepoCache(scripted_settings.cache_dir, REPO).folder / "blobs"

    def endless(handler: BaseHTTPRequestHandler) -> None:
        nonlocal largest, sent
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        for _ in range(1000):
            sent += handler.wfile.write(b"x" * MIB)
            largest = max(largest, *(path.stat().st_size for path in blobs.iterdir()))

    error = refused(scripted, scripted_settings, b"y" * 300_000, endless)
    assert isinstance(error, IntegrityError)
    assert largest <= 300_000
    assert sent < 100 * MIB, "the connection is left"


def test_surplus_bytes_after_a_complete_file_are_ignored(
    scripted: ScriptedHub, scripted_settings: HubSettings, data: bytes
) -> None:
    scripted.publish(REPO, {"model.safetensors": data})
    scripted.answers[PATH] = Answer(data + b"more")
    (folder,) = fetch(scripted_settings, Pair(REPO))
    assert (folder / "model.safetensors").read_bytes() == data


def test_a_partial_file_longer_than_the_file_is_restarted(
    scripted: ScriptedHub, scripted_settings: HubSettings, data: bytes
) -> None:
    scripted.publish(REPO, {"model.safetensors": data})
    cache = RepoCache(scripted_settings.cache_dir, REPO)
    cache.prepare()
    cache.part(list_repo(scripted_settings, REPO).files[0]).write_bytes(data + b"x")
    (folder,) = fetch(scripted_settings, Pair(REPO))
    assert (folder / "model.safetensors").read_bytes() == data


# Tries.


def cut_at(data: bytes, share: float) -> Script:
    """Serve from the requested offset, and disconnect."""

    def script(handler: BaseHTTPRequestHandler) -> None:
        requested = handler.headers.get("Range")
        start = int(requested.removeprefix("bytes=").partition("-")[0]) if requested else 0
        handler.send_response(206 if requested else 200)
        if requested:
            handler.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        handler.send_header("Content-Length", str(len(data) - start))
        handler.end_headers()
        handler.wfile.write(data[start : start + int(share * len(data))])
        handler.close_connection = True

    return script


def in_turns(*scripts: Script) -> Script:
    """Serve one script per request, repeatedly."""
    count = -1

    def script(handler: BaseHTTPRequestHandler) -> None:
        nonlocal count
        count += 1
        scripts[count % len(scripts)](handler)

    return script


def bad_range(handler: BaseHTTPRequestHandler) -> None:
    send(handler, Answer(status=416))


def ignoring_ranges(data: bytes, share: float) -> Script:
    """Serve always from the beginning, and never everything."""

    def script(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[: int(share * len(data))])
        handler.close_connection = True

    return script


def test_a_server_without_progress_is_given_up(
    scripted: ScriptedHub, scripted_settings: HubSettings, data: bytes
) -> None:
    more_and_less = in_turns(ignoring_ranges(data, 0.4), ignoring_ranges(data, 0.9))
    for how, (script, kind) in {
        "416": (in_turns(cut_at(data, 0.7), bad_range), NetworkError),
        "no ranges": (ignoring_ranges(data, 0.7), NetworkError),
        "no ranges, more and less": (more_and_less, NetworkError),
        "damage": (file_script(data[::-1]), IntegrityError),
    }.items():
        settings = replace(scripted_settings, cache_dir=scripted_settings.cache_dir / how)
        scripted.requested.clear()
        assert isinstance(refused(scripted, settings, data, script), kind), how
        assert scripted.requested.count(PATH) <= 2 * (MAX_RESTARTS + 1), how


def test_attempts_with_next_to_no_progress_are_counted(
    scripted: ScriptedHub, scripted_settings: HubSettings, data: bytes
) -> None:
    error = refused(scripted, scripted_settings, data, cut_at(data, 0.001))
    assert isinstance(error, NetworkError)
    assert scripted.requested.count(PATH) == QUICK.max_tries + 1


def test_attempts_with_much_progress_are_not_counted(
    scripted: ScriptedHub, scripted_settings: HubSettings, tmp_path: Path
) -> None:
    data = random_file(tmp_path / "large", 10 * MIB).read_bytes()
    scripted.publish(REPO, {"model.safetensors": data})
    scripted.answers[PATH] = cut_at(data, 0.11)
    (folder,) = fetch(replace(scripted_settings, timeouts=QUICK), Pair(REPO))
    assert (folder / "model.safetensors").read_bytes() == data
    assert scripted.requested.count(PATH) > QUICK.max_tries + 1


def test_odd_retry_after_headers_are_accepted(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    reports = ("9" * 5000, "-5", "1e3", "tomorrow", "0.5", "99999999", "\u00b2", "")
    for number, reported in enumerate(reports):
        data = b"%d" % number
        scripted.publish(REPO, {"model.safetensors": data})
        busy = Answer(status=429, headers={"Retry-After": reported})
        scripted.answers[PATH] = in_turns(partial(send, answer=busy), file_script(data))
        (folder,) = fetch(replace(scripted_settings, timeouts=QUICK), Pair(REPO))
        assert (folder / "model.safetensors").read_bytes() == data


def test_a_range_other_than_requested_is_not_written(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    data = b"weights" * 99
    far = "bytes " + "9" * 5000 + "-"
    for reported in ("bytes 9-", "bytes -1-5", "bytes */*", far, "x", ""):
        wrong = Answer(data, 206, {"Content-Range": reported})
        error = refused(scripted, scripted_settings, data, partial(send, answer=wrong))
        assert "another part" in error.message


# Time.


def test_a_server_below_the_minimum_rate_is_given_up() -> None:
    timeouts = HubTimeouts(min_bytes_per_s=100.0, min_rate_window_s=60.0, stall_s=30.0)
    slow, fast = StallDetector(timeouts), StallDetector(timeouts)
    output = [slow.count(0.5, 1) for _ in range(120)]
    assert [bool(text) for text in output] == [False] * 119 + [True]
    assert "bytes a second" in output[-1]
    assert not any(fast.count(0.5, 51) for _ in range(10_000))


def test_a_server_that_slows_down_is_given_up_in_the_next_minute() -> None:
    timeouts = HubTimeouts(min_bytes_per_s=100.0, min_rate_window_s=60.0, stall_s=30.0)
    waiting = StallDetector(timeouts)
    assert not any(waiting.count(1.0, 1 << 20) for _ in range(60))
    assert any(waiting.count(1.0, 1) for _ in range(60))


def test_silence_is_not_offset_by_earlier_speed() -> None:
    waiting = StallDetector(HubTimeouts(stall_s=30.0))
    assert not waiting.count(0.1, 1 << 30)
    assert not any(waiting.count(1.0, 0) for _ in range(29))
    assert "silent" in waiting.count(1.0, 0)


def dripping(hub: ScriptedHub, before: bytes = b"") -> Script:
    """A byte every twentieth of a second, for ever."""

    def script(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(before)
        while not hub.over.wait(0.05):
            handler.wfile.write(b"x")
        handler.close_connection = True

    return script


def test_a_dripping_server_is_given_up(
    scripted: ScriptedHub, scripted_settings: HubSettings, data: bytes
) -> None:
    scripted.publish(REPO, {"model.safetensors": data})
    timeouts = replace(QUICK, min_bytes_per_s=1000.0, min_rate_window_s=0.3, max_tries=1)
    for started in (b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nX: \r\n\r\n"):
        scripted.answers[PATH] = dripping(scripted, started)
        with pytest.raises(NetworkError, match=r"bytes a second|silent"):
            fetch(replace(scripted_settings, timeouts=timeouts), Pair(REPO))


@pytest.mark.parametrize(
    ("path", "before"),
    [
        (f"/api/models/{REPO}/revision/main", b""),
        (f"/api/models/{REPO}/revision/main", b"HTTP/1.1 200 OK\r\n\r\n{"),
        (PATH, b""),
        (PATH, b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nabc"),
    ],
    ids=["listing", "half a listing", "file", "half a file"],
)
def test_a_stop_takes_effect_while_the_server_is_silent(
    path: str,
    before: bytes,
    scripted: ScriptedHub,
    scripted_settings: HubSettings,
    data: bytes,
) -> None:
    """Were it heard after the server's silence only, this test would run into its time limit."""
    scripted.publish(REPO, {"model.safetensors": data})
    reached, stop = threading.Event(), threading.Event()
    scripted.answers[path] = silent(scripted, before, reached)
    patient = replace(scripted_settings, timeouts=HubTimeouts(stall_s=3600.0))
    outcome: list[type[BaseException]] = []

    def work() -> None:
        try:
            run(download_pair(patient, Pair(REPO), Tally(), stop))
        except Stopped as error:
            outcome.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()
    assert reached.wait(120)
    stop.set()
    thread.join(120)
    assert outcome == [Stopped]


def test_many_small_files_are_requested_concurrently(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    """Each answer waits for as many requests as are to be under way: fewer would never end."""
    num = SMALL_PER_CONNECTION * scripted_settings.num_connections
    files = {f"{number}.safetensors": b"%d" % number for number in range(2 * num)}
    scripted.publish(REPO, files)
    together = threading.Barrier(num)

    def waiting(answer: Script) -> Script:
        def script(handler: BaseHTTPRequestHandler) -> None:
            together.wait(120)
            answer(handler)

        return script

    for path, answer in scripted.answers.items():
        if "/resolve/" in path and not isinstance(answer, Answer):
            scripted.answers[path] = waiting(answer)
    (folder,) = fetch(scripted_settings, Pair(REPO))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files


# The disk.


class ShortFile(io.FileIO):
    """Takes a few bytes of each write, as a disk does that is full for a moment."""

    def write(self, data: object) -> int:
        assert isinstance(data, memoryview)
        return super().write(data[: max(1, len(data) // 3)])


class FullFile(io.FileIO):
    """Takes a few bytes, and then none."""

    num_writes = 0

    def write(self, data: object) -> int:
        assert isinstance(data, memoryview)
        self.num_writes += 1
        return super().write(data[:1000]) if self.num_writes == 1 else 0


def part_on(kind: Callable[..., io.FileIO], listing: Listing, settings: HubSettings) -> PartialFile:
    """A part on a disk of that kind."""
    cache = RepoCache(settings.cache_dir, REPO)
    cache.prepare()
    part = PartialFile(cache, listing.files[0])
    part._open.close()
    part._open = kind(cache.part(listing.files[0]), "r+b")
    return part


def test_short_writes_are_completed(
    scripted: ScriptedHub, scripted_settings: HubSettings, data: bytes
) -> None:
    scripted.publish(REPO, {"model.safetensors": data})
    listing = list_repo(scripted_settings, REPO)
    with part_on(ShortFile, listing, scripted_settings) as part:
        part.append(data)
        assert part.missing == 0
        assert part.become_blob(lambda _: None)
    blob = RepoCache(scripted_settings.cache_dir, REPO).blob(listing.files[0])
    assert blob.read_bytes() == data


def test_a_full_disk_is_reported_and_written_bytes_are_counted(
    scripted: ScriptedHub, scripted_settings: HubSettings, data: bytes
) -> None:
    scripted.publish(REPO, {"model.safetensors": data})
    listing = list_repo(scripted_settings, REPO)
    with part_on(FullFile, listing, scripted_settings) as part:
        with pytest.raises(DiskFullError, match="No space left"):
            part.append(data)
        assert part.length == 1000
        assert not part.become_blob(lambda _: None)
    with PartialFile(RepoCache(scripted_settings.cache_dir, REPO), listing.files[0]) as part:
        assert part.length == 1000, "it goes on there"


LIMITED = """
import asyncio, resource, signal, sys, threading
from pathlib import Path
from medusa_core.errors import DiskFullError
from medusa_core.hub.job import Pair
from medusa_core.hub.pair_download import Tally, download_pair
from medusa_core.hub.settings import HubSettings
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
settings = HubSettings(endpoint=sys.argv[1], cache_dir=Path(sys.argv[2]), floor_bytes=0)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_001, hard))
try:
    asyncio.run(download_pair(settings, Pair("o/model"), Tally(), threading.Event()))
except DiskFullError as error:
    print(error.message)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
tally = Tally()
asyncio.run(download_pair(settings, Pair("o/model"), tally, threading.Event()))
print(tally.fetched_bytes)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the limit stands for a disk that is full")
def test_a_file_cut_by_a_full_disk_is_resumed_once_there_is_room(
    scripted: ScriptedHub, scripted_settings: HubSettings, data: bytes
) -> None:
    scripted.publish(REPO, {"model.safetensors": data})
    cache = scripted_settings.cache_dir
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, scripted.endpoint, str(cache)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    output, fetched = done.stdout.splitlines()
    assert "can't be written" in output
    assert int(fetched) == len(data) - 1_000_001
    (weights,) = cache.glob("models--o--model/snapshots/*/model.safetensors")
    assert weights.read_bytes() == data
