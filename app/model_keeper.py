"""Which model is loaded, and how far that is."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge import EngineBridge
from app.chat.conversation import new_id
from app.model_choice import ModelChoice
from medusa_core.messages import (
    Calibrate,
    Calibrated,
    Cancel,
    Event,
    Failed,
    LoadModel,
    ModelLoaded,
    Planned,
    Progress,
    Unload,
    Unloaded,
)

log = logging.getLogger(__name__)

# Belongs to no conversation.
SESSION = "model"


class Phase(Enum):
    """How far the model is."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"
    ASLEEP = "asleep"


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """What is known about the model.

    Attributes:
        phase: How far it is.
        text: What is being done while it is loading.
        fraction: Share of the present work done, 0 to 1.
        loaded: What was loaded, or None.
        calibrated: Measured step costs, or None.
        planned: Which trees the engine would take by what it has learned, or None.
        failed: Why it could not be loaded, or None.
    """

    phase: Phase = Phase.LOADING
    text: str = "Loading"
    fraction: float = 0.0
    loaded: ModelLoaded | None = None
    calibrated: Calibrated | None = None
    planned: Planned | None = None
    failed: Failed | None = None


class ModelKeeper(QObject):
    """Loads models and knows the state of the one that is chosen.

    Attributes:
        status: What is known now.
        choice: The model that answers, or is being loaded.

    Signals:
        changed: The status is another one.
        chosen: Another model is loaded and is the choice from now on.
    """

    changed = Signal()
    chosen = Signal()

    def __init__(
        self,
        bridge: EngineBridge,
        choice: ModelChoice,
        *,
        kept_dir: Path | None = None,
        calibrations_dir: Path | None = None,
        make_id: Callable[[], str] = new_id,
    ) -> None:
        """Keep a model.

        Args:
            bridge: To the engine.
            choice: The model to begin with.
            kept_dir: Where quantized models are kept; None keeps none.
            calibrations_dir: Where step costs are kept; None keeps none.
            make_id: Names requests.
        """
        super().__init__()
        self._bridge = bridge
        self._kept_dir = kept_dir
        self._calibrations_dir = calibrations_dir
        self._make_id = make_id
        self._loads: dict[str, ModelChoice] = {}
        self._load_id = ""
        self._calibrate_id = ""
        self._unload_id = ""
        self._idle = QTimer(self)
        self._idle.setSingleShot(True)
        self._idle.timeout.connect(self._fall_asleep)
        self.choice = choice
        self.status = ModelStatus()
        bridge.arrived.connect(self._receive)

    def load(self, choice: ModelChoice | None = None) -> None:
        """Load a model, or the chosen one again."""
        self.choice = choice or self.choice
        self._load_id = self._make_id()
        self._loads[self._load_id] = self.choice
        self._become(ModelStatus())
        wanted = self.choice
        self._bridge.submit(
            LoadModel(
                SESSION,
                self._load_id,
                wanted.model_dir,
                wanted.heads_dir,
                formats=wanted.formats,
                context_tokens=wanted.context_tokens,
                ignores_plan=wanted.ignores_plan,
                kept_dir=self._kept_dir,
                calibrations_dir=self._calibrations_dir,
            )
        )

    def cancel(self) -> None:
        """Stop loading; what was loaded before comes back."""
        self._bridge.submit(Cancel(SESSION, self._load_id))

    def unload_after(self, minutes: float) -> None:
        """Give the memory back when nobody has asked for so long; 0 keeps the model."""
        self._idle.stop()
        self._idle.setInterval(round(minutes * 60_000))
        self.touch()

    def touch(self) -> None:
        """Somebody uses the model."""
        if self._idle.interval() > 0 and not self.choice.is_demo:
            self._idle.start()

    def wake(self) -> None:
        """Load the model again if it has been unloaded; what is asked meanwhile waits."""
        self.touch()
        if self.status.phase is Phase.ASLEEP:
            self.load()

    def _fall_asleep(self) -> None:
        if self.status.phase is Phase.READY:
            self._unload_id = self._make_id()
            self._bridge.submit(Unload(SESSION, self._unload_id))

    def _receive(self, events: tuple[Event, ...]) -> None:
        for event in events:
            ours = (self._calibrate_id, self._unload_id)
            is_plan = isinstance(event, Planned)  # of any answer
            if is_plan or event.request_id in self._loads or event.request_id in ours:
                self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case Progress(request_id=self._load_id):
                self._become(replace(self.status, text=event.text, fraction=event.fraction))
            case ModelLoaded():
                self._take_loaded(event)
            case Calibrated():
                self._become(replace(self.status, calibrated=event))
            case Planned():
                self._become(replace(self.status, planned=event))
            case Unloaded():
                self._become(ModelStatus(Phase.ASLEEP))
            case Failed(request_id=self._load_id):
                self._become(ModelStatus(Phase.FAILED, failed=event))
            case Failed():
                # Without it the window only lacks the figure that compares with plain decoding.
                log.warning("The steps could not be measured: %s", event.message)
            case _:
                log.debug("Nothing to do for %s.", type(event).__name__)

    def _take_loaded(self, event: ModelLoaded) -> None:
        """The model that was asked for; or, where that failed, the one from before."""
        self.choice = self._loads[event.request_id]
        self._loads = {event.request_id: self.choice}
        self._become(ModelStatus(Phase.READY, loaded=event))
        self.chosen.emit()
        self.touch()
        self._calibrate_id = self._make_id()
        self._bridge.submit(Calibrate(SESSION, self._calibrate_id))

    def _become(self, status: ModelStatus) -> None:
        self.status = status
        self.changed.emit()
