"""Shows the model's device and its free memory; measures in a background thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Qt, QTimer, Signal

from app.chat.strip.steps_strip import StepsStrip
from app.engine.loaded_model import LoadedModel
from app.i18n.numbers import Number
from medusa_core.api import memory_status
from medusa_core.errors import MedusaError
from medusa_core.messages import ModelLoaded

if TYPE_CHECKING:
    from medusa_core.api import MemoryStatus

    MeasureMemory = Callable[[str], MemoryStatus]

log = logging.getLogger(__name__)

EVERY_MS = 3000
GIB = 1 << 30


class MemoryWatch(QObject):
    """Measures every few seconds while a model is loaded and the strip is visible.

    Args:
        measure: Returns a device's memory status.
    """

    _measured = Signal(object)

    def __init__(
        self, strip: StepsStrip, loaded_model: LoadedModel, measure: MeasureMemory = memory_status
    ) -> None:
        super().__init__(strip)
        self._strip = strip
        self._loaded_model = loaded_model
        self._measure = measure
        self._is_measuring = False
        self._timer = QTimer(self)
        self._timer.setInterval(EVERY_MS)
        self._timer.timeout.connect(self.look)
        self._measured.connect(self._show, Qt.ConnectionType.QueuedConnection)
        loaded_model.chosen.connect(self.look)
        self._timer.start()

    def look(self) -> None:
        """Measure now."""
        loaded = self._loaded_model.status.loaded
        if loaded is None or self._is_measuring or not self._strip.isVisible():
            return
        self._is_measuring = True
        work = threading.Thread(
            target=self._work, args=(loaded.device,), name="memory-now", daemon=True
        )
        work.start()

    def _work(self, device: str) -> None:
        memory: MemoryStatus | None = None
        try:
            memory = self._measure(device)
        except (MedusaError, RuntimeError, OSError) as error:
            log.info("the memory of %s isn't known: %s", device, error)
        try:
            self._measured.emit(memory)
        except RuntimeError:
            log.debug("the window is gone")

    def _show(self, memory: MemoryStatus | None) -> None:
        self._is_measuring = False
        loaded = self._loaded_model.status.loaded
        if memory is None or loaded is None:
            self._strip.show_memory("", "")
            return
        self._strip.show_memory(*memory_texts(memory, loaded))


def memory_texts(memory: MemoryStatus, loaded: ModelLoaded) -> tuple[str, str]:
    """Return a device's memory as a short text and as a sentence."""
    kind = "GPU" if loaded.device.startswith("cuda") else "CPU"
    used, free = memory.used_bytes / GIB, memory.free_bytes / GIB
    # The name comes last: it is the first to be cut short.
    text = QCoreApplication.translate("MemoryWatch", "{kind} · {free} of {all} GiB free · {name}")
    meaning = QCoreApplication.translate(
        "MemoryWatch",
        "{name} computes the answers. All programs together use {used} GiB of its {all} GiB of "
        "memory.",
    )
    values = {"used": f"{Number(used):.1f}", "free": f"{Number(free):.1f}", "name": memory.name}
    values |= {"kind": kind, "all": f"{Number(memory.total_bytes / GIB):.1f}"}
    return text.format(**values), meaning.format(**values)
