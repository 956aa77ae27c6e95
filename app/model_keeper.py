"""Which model is loaded, and how far that is."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge import EngineBridge
from app.chat.conversation import new_id
from medusa_core.messages import (
    Calibrate,
    Calibrated,
    Event,
    Failed,
    LoadModel,
    ModelLoaded,
    Progress,
)

log = logging.getLogger(__name__)

# Belongs to no conversation.
SESSION = "model"


class Phase(Enum):
    """How far the model is."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """What is known about the model.

    Attributes:
        phase: How far it is.
        text: What is being done while it is loading.
        fraction: Share of the present work done, 0 to 1.
        loaded: What was loaded, or None.
        calibrated: Measured step costs, or None.
        failed: Why it could not be loaded, or None.
    """

    phase: Phase = Phase.LOADING
    text: str = "Loading"
    fraction: float = 0.0
    loaded: ModelLoaded | None = None
    calibrated: Calibrated | None = None
    failed: Failed | None = None


class ModelKeeper(QObject):
    """Loads the model and knows its state.

    Attributes:
        status: What is known now.

    Signals:
        changed: The status is another one.
    """

    changed = Signal()

    def __init__(
        self,
        bridge: EngineBridge,
        model: tuple[Path, Path | None],
        *,
        make_id: Callable[[], str] = new_id,
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._model = model
        self._make_id = make_id
        self._load_id = ""
        self._calibrate_id = ""
        self.status = ModelStatus()
        bridge.arrived.connect(self._receive)

    def load(self) -> None:
        """Load the model, again if need be."""
        self._load_id = self._make_id()
        self._become(ModelStatus())
        model_dir, heads_dir = self._model
        self._bridge.submit(LoadModel(SESSION, self._load_id, model_dir, heads_dir))

    def _receive(self, events: tuple[Event, ...]) -> None:
        for event in events:
            if event.request_id in (self._load_id, self._calibrate_id):
                self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case Progress(request_id=self._load_id):
                self._become(replace(self.status, text=event.text, fraction=event.fraction))
            case ModelLoaded():
                self._become(ModelStatus(Phase.READY, loaded=event))
                self._calibrate_id = self._make_id()
                self._bridge.submit(Calibrate(SESSION, self._calibrate_id))
            case Calibrated():
                self._become(replace(self.status, calibrated=event))
            case Failed(request_id=self._load_id):
                self._become(ModelStatus(Phase.FAILED, failed=event))
            case Failed():
                # Without it the window only lacks the figure that compares with plain decoding.
                log.warning("The steps could not be measured: %s", event.message)
            case _:
                log.debug("Nothing to do for %s.", type(event).__name__)

    def _become(self, status: ModelStatus) -> None:
        self.status = status
        self.changed.emit()
