"""Keys of other machines: in the system's keyring, else in a file that only the user can read.

A keyring may be missing, fail, or wait for a password that nobody enters; so it is asked in a
thread of its own, and for a bounded time. A portable program leaves no key in the keyring of a
computer: it has the file in its own folder.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from medusa_core.errors import CheckpointError, StorageError
from medusa_core.remote.endpoints import Endpoints
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.json_file import read_json
from medusa_core.system.user_folders import portable_home

log = logging.getLogger(__name__)

SERVICE = "Medusa Chat"
_FILE_NAME = "keys.json"
_PATIENCE_S = 10.0  # somebody may have to enter a password
_T = TypeVar("_T")


class Keyring(Protocol):
    """What keeps passwords on a system, as the package of that name has it."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


class _NoKeyringError(Exception):
    """There is none, it failed, or it doesn't answer."""


class KeyStore:
    """Keys by the addresses that they are for."""

    def __init__(
        self, folder: Path, keyring: Keyring | None = None, patience_s: float = _PATIENCE_S
    ) -> None:
        """Use what this user has.

        Args:
            folder: Of the file, where the keyring can't be used.
            keyring: Keeps passwords; None for the system's.
            patience_s: How long it is waited for.
        """
        self._path = folder / _FILE_NAME
        self._keyring = keyring
        self._patience_s = patience_s
        self._is_given_up = False

    def key_of(self, url: str) -> str:
        """The key for an address; empty where none is kept."""
        if url in (in_file := self._in_file()):
            return in_file[url]
        try:
            return self._ask(lambda keyring: keyring.get_password(SERVICE, url)) or ""
        except _NoKeyringError as error:
            log.info("no key from the keyring: %s", error)
            return ""

    def save_key(self, url: str, key: str) -> bool:
        """Keep a key; blocks. Returns whether the keyring has it, else the file does.

        Raises:
            StorageError: The file can't be written either.
        """

        def keep(keyring: Keyring) -> bool:
            keyring.set_password(SERVICE, url, key)
            return (
                keyring.get_password(SERVICE, url) == key
            )  # some take everything and keep nothing

        try:
            is_kept = self._ask(keep)
        except _NoKeyringError as error:
            log.info("the key goes into a file: %s", error)
            is_kept = False
        others = {name: other for name, other in self._in_file().items() if name != url}
        if not is_kept:
            self._write(others | {url: key})
        elif len(others) < len(self._in_file()):
            self._write(others)
        return is_kept

    def remove_key(self, url: str) -> None:
        """Forget a key, wherever it lies; blocks.

        Raises:
            StorageError: The file can't be written.
        """
        in_file = self._in_file()
        if url in in_file:
            self._write({name: other for name, other in in_file.items() if name != url})
            return
        try:
            self._ask(lambda keyring: keyring.delete_password(SERVICE, url))
        except _NoKeyringError as error:
            log.info("the keyring has no key to remove: %s", error)

    def _ask(self, call: Callable[[Keyring], _T]) -> _T:
        """What the keyring says, if it does so in time."""
        if self._is_given_up:
            raise _NoKeyringError("it didn't answer before")
        if self._keyring is None and portable_home() is not None:
            raise _NoKeyringError("portable")
        answers: queue.SimpleQueue[tuple[_T | None, str]] = queue.SimpleQueue()

        def work() -> None:
            try:
                answers.put((call(self._keyring or _system_keyring()), ""))
            except Exception as error:  # noqa: BLE001 - backends of all systems, each with its own
                answers.put((None, type(error).__name__))  # its text might hold the key

        threading.Thread(target=work, name="keyring", daemon=True).start()
        try:
            answer, trouble = answers.get(timeout=self._patience_s)
        except queue.Empty:
            self._is_given_up = True
            raise _NoKeyringError("it doesn't answer") from None
        if trouble:
            raise _NoKeyringError(trouble)
        return answer  # type: ignore[return-value]  # without trouble it is what the call gave

    def _in_file(self) -> dict[str, str]:
        if not self._path.exists():
            return {}
        try:
            return {url: key for url, key in read_json(self._path).items() if isinstance(key, str)}
        except CheckpointError as error:
            log.warning("no keys from a file: %s", error.message)
            return {}

    def _write(self, keys: dict[str, str]) -> None:
        try:
            if keys:
                replace_text(self._path, json.dumps(keys))
            else:
                self._path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(
                f"{self._path} can't be written: {error.strerror or error}.",
                "Make room on the disk, or see who may write there.",
            ) from error


def saved_key(folder: Path | None, url: str) -> str:
    """The key that a user keeps for an address; empty for none. Blocks.

    Args:
        folder: Of the user's configuration; None for nowhere.
        url: The address. The keyring isn't asked about one that was never connected with a key.
    """
    endpoint = None if folder is None else Endpoints(folder).find(url)
    if folder is None or endpoint is None or not endpoint.has_key:
        return ""
    return KeyStore(folder).key_of(url)


def _system_keyring() -> Keyring:
    import keyring

    return keyring.get_keyring()
