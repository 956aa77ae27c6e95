"""Logs to a file, and shows uncaught errors in the window."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QCoreApplication, QMessageLogContext, QtMsgType, qInstallMessageHandler

from app.startup.surroundings import advice

log = logging.getLogger(__name__)
translate = QCoreApplication.translate

FILE_NAME = "medusa-chat.log"
MAX_BYTES = 1_000_000
NUM_OLD_FILES = 2
QT_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}

ShowError = Callable[[str, str], object]


class PrivateFileHandler(RotatingFileHandler):
    """Log files that only their user can read, since DEBUG logs prompts and answers."""

    def _open(self) -> TextIOWrapper:
        stream = super()._open()
        Path(self.baseFilename).chmod(0o600)
        return stream


def start_logging(folder: Path, *, is_verbose: bool) -> Path:
    """Log to a file, warnings to the terminal as well.

    Args:
        folder: Folder of the file; if it can't be written, only the terminal is used.
        is_verbose: Whether to log DEBUG, which includes prompts and answers.

    Returns:
        The file.
    """
    path = folder / FILE_NAME
    console = logging.StreamHandler()
    console.setLevel(logging.WARNING)
    handlers: list[logging.Handler] = [console]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handlers.append(
            PrivateFileHandler(
                path, maxBytes=MAX_BYTES, backupCount=NUM_OLD_FILES, encoding="utf-8"
            )
        )
    except OSError as error:
        console.handle(
            logging.LogRecord(__name__, logging.WARNING, __file__, 0, "%s", (error,), None)
        )
    logging.basicConfig(
        level=logging.DEBUG if is_verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        handlers=handlers,
        force=True,
    )
    qInstallMessageHandler(_log_qt)
    return path


def show_uncaught_errors(show: ShowError, log_path: Path) -> None:
    """Log errors that nobody caught and show them, instead of ending the window.

    Args:
        show: Called with a message and a hint, in the window's thread.
        log_path: Log file, which the hint names.
    """

    def in_window(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        log.error("uncaught error", exc_info=(kind, error, trace))
        show(
            translate("Logs", "Something in the window failed: {0}.").format(kind.__name__),
            translate("Logs", "You can go on; the details are in {0}.").format(log_path),
        )

    def in_thread(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None:
            trace = (arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
            log.error("uncaught error in a thread", exc_info=trace)

    sys.excepthook = in_window
    threading.excepthook = in_thread


def _log_qt(kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
    # Platforms without a screen say with each window what they can't do.
    is_noise = message.startswith("This plugin does not support")
    level = logging.DEBUG if is_noise else QT_LEVELS.get(kind, logging.WARNING)
    logging.getLogger("qt").log(level, "%s", message)
    if kind is QtMsgType.QtFatalMsg:
        # Qt ends the process next: mostly for want of a display or of its libraries.
        sys.stderr.write(f"{message}\n{advice(message)}\n")
