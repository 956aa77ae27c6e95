"""The only public door of the engine.

Importing this module loads neither torch nor Qt: both are slow, and a window must open first.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from medusa_core import messages
from medusa_core.resources import demo_heads_dir, demo_model_dir, resources_dir
from medusa_core.trace_file import Recording, read_trace, write_trace

EventSink = Callable[[messages.Event], None]


class Engine(Protocol):
    """What an application needs of an engine; tests bring their own."""

    def submit(self, command: messages.Command) -> None:
        """Queue a command; returns at once. `Cancel` overtakes everything that waits."""

    def close(self, timeout_s: float = 10.0) -> None:
        """Cancel what runs, free the model and end the worker; safe to call twice."""


def start_engine(on_event: EventSink) -> Engine:
    """Start an engine in a thread of its own.

    Args:
        on_event: Called in the worker's thread with every event, in order; must return quickly
            and not raise.

    Returns:
        The running engine. Torch is imported by the worker, not by the caller.
    """
    from medusa_core.engine.worker import Worker

    return Worker(on_event)


def demo_model() -> tuple[Path, Path]:
    """Folders of the embedded demo model and of its Medusa heads."""
    return demo_model_dir(), demo_heads_dir()


__all__ = [
    "Engine",
    "EventSink",
    "Recording",
    "demo_model",
    "messages",
    "read_trace",
    "resources_dir",
    "start_engine",
    "write_trace",
]
