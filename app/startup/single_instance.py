"""One instance for each data folder: a second start raises the first one's window."""

from __future__ import annotations

import hashlib
import logging
import os
from functools import partial
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

log = logging.getLogger(__name__)

LOCK_NAME = "medusa-chat.lock"
_PATIENCE_MS = 2_000
_RAISE = b"raise\n"
_MOST_BYTES = 1 << 16  # of what a second start may say


class SingleInstance(QObject):
    """Lock of a data folder, and the local socket of its holder.

    The lock of a dead process is taken over. Where no lock can be written, as on a read-only
    disk, the application runs without one.

    Signals:
        raise_requested: The application was started again.
        open_requested: The application was started again with a model (a `Path`).
    """

    raise_requested = Signal()
    open_requested = Signal(object)

    def __init__(self, folder: Path) -> None:
        """Prepare; nothing is locked yet.

        Args:
            folder: Data folder.
        """
        super().__init__()
        self._folder = folder
        self._lock = QLockFile(str(folder / LOCK_NAME))
        self._lock.setStaleLockTime(0)  # only where its process is gone
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._read)
        digest = hashlib.sha256(str(folder.absolute()).encode()).hexdigest()
        self._name = f"medusa-chat-{digest[:16]}"

    def acquire(self) -> bool:
        """Acquire the lock; returns False if another instance holds it."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            log.warning("no lock can be kept in %s: %s", self._folder, error.strerror)
            return True
        if not self._lock.tryLock(0):
            if self._lock.error() is QLockFile.LockError.LockFailedError:
                return False
            log.warning("no lock can be kept in %s: %s", self._folder, self._lock.error().name)
            return True
        QLocalServer.removeServer(self._name)  # of an instance that was killed
        if not self._server.listen(self._name):
            log.warning("a second start can't be heard: %s", self._server.errorString())
        return True

    def raise_other(self, model: Path | None = None) -> bool:
        """Ask the other instance to show its window, and to open a model.

        Returns:
            Whether it has answered.
        """
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(_PATIENCE_MS):
            return False
        socket.write(_RAISE + (b"" if model is None else os.fsencode(model)))
        has_gone = socket.waitForBytesWritten(_PATIENCE_MS)
        socket.disconnectFromServer()
        return has_gone

    def release(self) -> None:
        """Release the lock."""
        self._server.close()
        self._lock.unlock()

    def _read(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.setReadBufferSize(_MOST_BYTES)
            socket.disconnected.connect(partial(self._receive, socket))
            if socket.state() is QLocalSocket.LocalSocketState.UnconnectedState:
                self._receive(socket)  # it has gone before anybody listened
            self.raise_requested.emit()

    def _receive(self, socket: QLocalSocket) -> None:
        """Receive the message of a second start."""
        said = bytes(socket.readAll().data())
        socket.deleteLater()
        if model := said.removeprefix(_RAISE):
            self.open_requested.emit(Path(os.fsdecode(model)))
