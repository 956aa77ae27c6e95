"""Report errors as events, and detect a lost device."""

from __future__ import annotations

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
from medusa_core.i18n import tr
from medusa_core.messages import EngineLost, Event, Failed, Message
from medusa_core.system import cuda
from medusa_core.system.garbage import collect_garbage, trim_heap

log = logging.getLogger(__name__)

_LACKS_MEMORY = ("out of memory", "ALLOC_FAILED", "allocate memory")


class Failures:
    """Reports errors as events.

    Attributes:
        is_lost: The device can't be used in this process any more.
    """

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        """Start without failures.

        Args:
            on_event: Receives the events.
        """
        self.is_lost = False
        self._send = on_event

    def report(self, command: Message, error: BaseException) -> None:
        """Report a failed command."""
        reported = _as_medusa_error(error)
        if not self.is_lost and poisons_device(error):
            log.critical("the device is lost", exc_info=error)
            self.is_lost = True
        elif not self.is_lost and isinstance(reported, OutOfMemoryError):
            self.is_lost = self._free_memory()
        if self.is_lost:
            self.report_lost(command)
            return
        _log(command, reported, error)
        kind = type(reported).__name__
        self._send(Failed(*command.ids, kind, reported.message, reported.hint, reported.data))

    def report_lost(self, command: Message) -> None:
        """Report the lost device to the sender of a command."""
        self._send(
            EngineLost(
                *command.ids,
                "EngineLost",
                tr("The graphics card reported an error and can't be used any more."),
                tr("Restart Medusa Chat. What you wrote and received so far is kept."),
            )
        )

    @staticmethod
    def _free_memory() -> bool:
        """Release unused memory; returns whether the device turns out to be lost."""
        try:
            collect_garbage()
            cuda.release_memory()
            trim_heap()
        except BaseException as error:
            log.exception("unused memory can't be released")
            return poisons_device(error)
        return False


def poisons_device(error: BaseException | None) -> bool:
    """Whether an error makes all later CUDA calls of this process fail."""
    while error is not None:
        text = str(error)
        is_cuda = isinstance(error, RuntimeError) and "CUDA error" in text
        is_ours = isinstance(error, torch.AcceleratorError) or is_cuda
        lacks_memory = isinstance(error, torch.OutOfMemoryError) or any(
            part in text for part in _LACKS_MEMORY
        )
        if is_ours and not lacks_memory:
            return True
        error = error.__cause__ or error.__context__  # the original error
    return False


def _log(command: Message, reported: MedusaError, error: BaseException) -> None:
    """Log a failure, without texts that may quote the conversation."""
    name = type(command).__name__
    if isinstance(reported, GrammarError):
        # The message may quote the grammar's schema, which is private like the prompt.
        log.info("%s refused: its grammar can't be used", name)
    elif isinstance(reported, RequestError | PlanError | Cancelled):
        # The request is wrong, and its sender is told; nothing failed here.
        log.info("%s refused: %s", name, reported.message)
    elif isinstance(reported, TemplateError):
        # The message may quote the conversation.
        log.info("%s failed: the chat template refuses or fails", name)
    else:
        log.error("%s failed", name, exc_info=error)


def _as_medusa_error(error: BaseException) -> MedusaError:
    """Wrap an unexpected error, so that it has a message and a hint for users."""
    if isinstance(error, MedusaError):
        return error
    lacks_memory = any(part in str(error) for part in _LACKS_MEMORY)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or lacks_memory:
        return OutOfMemoryError(
            "The device ran out of memory.",
            "Close other programs, start a new chat, or choose a smaller model.",
        )
    return EngineError(
        tr("The engine failed: {0}.", type(error).__name__), "Try again; the log has the details."
    )
