"""Keys and tokens: in the system's keyring, else in a file that only the user can read.

A keyring may be missing, fail, or wait for a password that nobody enters, so it is called in a
thread with a timeout. A portable installation doesn't use the computer's keyring: its file is in
its own folder.
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
from medusa_core.i18n import tr
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.disk_errors import disk_errors
from medusa_core.system.files.json_file import read_json
from medusa_core.system.user_folders import portable_home

log = logging.getLogger(__name__)

SERVICE = "Medusa Chat"
_FILE_NAME = "keys.json"
_TIMEOUT_S = 10.0  # the user may have to enter a password
_T = TypeVar("_T")


class Keyring(Protocol):
    """Interface of a backend of the package `keyring`."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


class _NoKeyringError(Exception):
    """There is no keyring, or it failed or timed out."""


class KeyStore:
    """Secrets by name: API keys by the URLs of their endpoints, tokens of tool servers."""

    def __init__(
        self, folder: Path, keyring: Keyring | None = None, timeout_s: float = _TIMEOUT_S
    ) -> None:
        """Open the store.

        Args:
            folder: Folder of the file.
            keyring: Keyring to use; None for the system's.
            timeout_s: Timeout of the keyring in seconds.
        """
        self._path = folder / _FILE_NAME
        self._keyring = keyring
        self._timeout_s = timeout_s
        self._has_timed_out = False

    def key_of(self, name: str) -> str:
        """Return a key; empty if there is none."""
        if name in (in_file := self._in_file()):
            return in_file[name]
        try:
            return self._call(lambda keyring: keyring.get_password(SERVICE, name)) or ""
        except _NoKeyringError as error:
            log.info("no key from the keyring: %s", error)
            return ""

    def save_key(self, name: str, key: str) -> bool:
        """Save a key; blocks. Returns whether the keyring has it, else the file does.

        Raises:
            StorageError: The file can't be written either.
        """

        def save(keyring: Keyring) -> bool:
            """Save the key and check that the keyring really has it."""
            keyring.set_password(SERVICE, name, key)
            # Some backends accept everything and save nothing.
            return keyring.get_password(SERVICE, name) == key

        try:
            is_saved = self._call(save)
        except _NoKeyringError as error:
            log.info("the key is saved in a file: %s", error)
            is_saved = False
        others = {known: other for known, other in self._in_file().items() if known != name}
        if not is_saved:
            self._write(others | {name: key})
        elif len(others) < len(self._in_file()):
            self._write(others)
        return is_saved

    def remove_key(self, name: str) -> None:
        """Remove a key from the file or the keyring; blocks.

        Raises:
            StorageError: The file can't be written.
        """
        in_file = self._in_file()
        if name in in_file:
            self._write({known: other for known, other in in_file.items() if known != name})
            return
        try:
            self._call(lambda keyring: keyring.delete_password(SERVICE, name))
        except _NoKeyringError as error:
            log.info("the keyring has no key to remove: %s", error)

    def _call(self, call: Callable[[Keyring], _T]) -> _T:
        """Call the keyring in a thread, with a timeout."""
        if self._has_timed_out:
            raise _NoKeyringError("it didn't answer before")
        if self._keyring is None and portable_home() is not None:
            raise _NoKeyringError("portable")
        answers: queue.SimpleQueue[tuple[_T | None, str]] = queue.SimpleQueue()

        def work() -> None:
            """Call the keyring and pass on its answer or the type of its error."""
            try:
                answers.put((call(self._keyring or _system_keyring()), ""))
            except Exception as error:  # noqa: BLE001 - backends of all systems, each with its own
                answers.put((None, type(error).__name__))  # the text might hold the key

        threading.Thread(target=work, name="keyring", daemon=True).start()
        try:
            answer, failure = answers.get(timeout=self._timeout_s)
        except queue.Empty:
            self._has_timed_out = True
            raise _NoKeyringError("it doesn't answer") from None
        if failure:
            raise _NoKeyringError(failure)
        return answer  # type: ignore[return-value]  # not None without a failure

    def _in_file(self) -> dict[str, str]:
        """Return the keys in the file; empty if it is damaged."""
        if not self._path.exists():
            return {}
        try:
            values = read_json(self._path)
            return {name: key for name, key in values.items() if isinstance(key, str)}
        except CheckpointError as error:
            log.warning("no keys from a file: %s", error.message)
            return {}

    def _write(self, keys: dict[str, str]) -> None:
        """Write the file; without keys it is deleted."""
        with disk_errors(
            StorageError, self._path, tr("Make room on the disk, or see who may write there.")
        ):
            if keys:
                replace_text(self._path, json.dumps(keys))
            else:
                self._path.unlink(missing_ok=True)


def _system_keyring() -> Keyring:
    """Return the system's keyring."""
    import keyring

    return keyring.get_keyring()
