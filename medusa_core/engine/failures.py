"""Errors as events: what the asker learns of them, and whether the device is lost by them."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable

import torch

from medusa_core.errors import (
    Cancelled,
    EngineError,
    GrammarError,
    MedusaError,
    OutOfMemoryError,
    PlanError,
    RequestError,
    TemplateError,
)
from medusa_core.memory.heap import trim_heap
from medusa_core.messages import EngineLost, Event, Failed, Message
from medusa_core.system import cuda

log = logging.getLogger(__name__)

_LACKS_MEMORY = ("out of memory", "ALLOC_FAILED", "allocate memory")


class Failures:
    """Reports errors as events.

    Attributes:
        is_lost: The device can't be used any more in this process.
    """

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        """Report nothing yet.

        Args:
            on_event: Gets the events.
        """
        self.is_lost = False
        self._send = on_event

    def report(self, command: Message, error: BaseException) -> None:
        """Say that a command failed, and why.

        Args:
            command: The command.
            error: Any error.
        """
        if self.is_lost or poisons_device(error):
            if not self.is_lost:
                log.critical("the device is lost", exc_info=error)
            self.is_lost = True
            self.report_lost(command)
            return
        reported = _as_medusa_error(error)
        if isinstance(reported, OutOfMemoryError) and self._free_memory():
            self.is_lost = True
            self.report_lost(command)
            return
        _log(command, reported, error)
        ids = (command.session_id, command.request_id)
        kind = type(reported).__name__
        self._send(Failed(*ids, kind, reported.message, reported.hint, reported.data))

    def report_lost(self, command: Message) -> None:
        """Say that the device is lost."""
        self._send(
            EngineLost(
                command.session_id,
                command.request_id,
                "EngineLost",
                "The graphics card reported an error and can't be used any more.",
                "Restart Medusa Chat. What you wrote and received so far is kept.",
            )
        )

    @staticmethod
    def _free_memory() -> bool:
        """Give back what can be; returns whether the device turns out to be lost."""
        try:
            gc.collect()
            cuda.release_memory()
            trim_heap()
        except BaseException as error:
            log.exception("nothing could be given back")
            return poisons_device(error)
        return False


def poisons_device(error: BaseException | None) -> bool:
    """Whether the error leaves the device unusable in this process: later CUDA calls fail."""
    while error is not None:
        text = str(error)
        is_cuda = isinstance(error, RuntimeError) and "CUDA error" in text
        is_ours = isinstance(error, torch.AcceleratorError) or is_cuda
        lacks_memory = isinstance(error, torch.OutOfMemoryError) or any(
            part in text for part in _LACKS_MEMORY
        )
        if is_ours and not lacks_memory:
            return True
        error = error.__cause__ or error.__context__  # what it was before it got our words
    return False


def _log(command: Message, reported: MedusaError, error: BaseException) -> None:
    name = type(command).__name__
    if isinstance(reported, GrammarError):
        # What is wrong with a grammar may quote its schema, which belongs to the prompt.
        log.info("%s refused: its grammar can't be used", name)
    elif isinstance(reported, RequestError | PlanError | Cancelled):
        # The asker's mistake, which the asker learns of; nothing here failed.
        log.info("%s refused: %s", name, reported.message)
    elif isinstance(reported, TemplateError):
        # What a template says of a conversation may quote it.
        log.info("%s failed: the chat template refuses or fails", name)
    else:
        log.error("%s failed", name, exc_info=error)


def _as_medusa_error(error: BaseException) -> MedusaError:
    if isinstance(error, MedusaError):
        return error
    lacks_memory = any(part in str(error) for part in _LACKS_MEMORY)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or lacks_memory:
        return OutOfMemoryError(
            "The device ran out of memory.",
            "Close other programs, start a new chat, or choose a smaller model.",
        )
    return EngineError(
        f"The engine failed: {type(error).__name__}.", "Try again; the log has the details."
    )
