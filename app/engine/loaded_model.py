"""The window's model: loads it, unloads it when idle, and reports changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine.bridge import EngineBridge, Request
from medusa_core.chats.conversation import new_id
from medusa_core.loading.choice import ModelChoice
from medusa_core.loading.state import (
    ModelState,
    ModelStatus,
    Phase,
)
from medusa_core.messages import Command, Event


class LoadedModel(QObject):
    """Loads models and holds the state of the selected one.

    Attributes:
        status: State of the selected model.
        choice: The loaded model, or the one being loaded.
        opening: File or folder that is being opened to be loaded; None once any load is requested.

    Signals:
        changed: `status` has changed.
        chosen: Another model was loaded and is the new `choice`.
    """

    changed = Signal()
    chosen = Signal()

    def __init__(
        self,
        bridge: EngineBridge,
        choice: ModelChoice,
        *,
        opening: Path | None = None,
        quantized_dir: Path | None = None,
        calibrations_dir: Path | None = None,
        datastore_dir: Path | None = None,
        make_id: Callable[[], str] = new_id,
    ) -> None:
        """Create the object without loading a model.

        Args:
            bridge: Bridge to the engine.
            choice: The initial model.
            opening: File or folder that is being opened to be loaded instead; or None.
            quantized_dir: Folder of cached quantized models; None caches none.
            calibrations_dir: Folder of measured step costs; None saves none.
            datastore_dir: Folder of the draft datastore; None for none.
            make_id: Returns a new request id.
        """
        super().__init__()
        self._bridge = bridge
        self.opening = opening
        self._state = ModelState(choice, quantized_dir, calibrations_dir, datastore_dir, make_id)
        self._load: Request | None = None
        self._idle = QTimer(self)
        self._idle.setSingleShot(True)
        self._idle.timeout.connect(self.sleep)
        bridge.model_changed.connect(self._handle_event)
        bridge.restarted.connect(self.load)

    @property
    def choice(self) -> ModelChoice:
        return self._state.choice

    @property
    def display_choice(self) -> ModelChoice:
        """The model to name to the user: the one being opened, or `choice`."""
        opening = self.opening
        return self.choice if opening is None else ModelChoice(opening.name, opening)

    @property
    def status(self) -> ModelStatus:
        return self._state.status

    @property
    def device(self) -> str:
        """Device of the next load: torch's name or a cluster's; empty for the best one."""
        return self._state.device

    @property
    def is_wanted(self) -> bool:
        """Whether a load was requested and the model hasn't been unloaded since."""
        return self._state.is_wanted

    @property
    def model_bytes(self) -> int:
        """Memory of the loaded model, which loading another one frees."""
        return 0 if self.status.loaded is None else self.status.loaded.plan.model_bytes

    def choice_of(self, load_id: str) -> ModelChoice | None:
        """Return the model that a load request was for; None if unknown."""
        return self._state.choice_of(load_id)

    def load(self, choice: ModelChoice | None = None) -> None:
        """Load a model, or reload the selected one."""
        self.opening = None
        command = self._state.load(choice)
        self.changed.emit()
        self._load = self._bridge.ask(command, self._on_events)

    def use_device(self, device: str) -> None:
        """Move the model to another device; empty selects the best one."""
        if device != self._state.device:
            self._state.device = device
            if self.is_wanted:
                self.load()

    def draft_from(self, folder: Path | None) -> None:
        """Let the suffix tree draft from the text files of a folder, too; None for none."""
        if folder != self._state.suffix_dir:
            self._state.suffix_dir = folder
            if self.is_wanted and self.choice.remote is None:
                self.load()

    def move_layers(self, folder: Path) -> None:
        """Read layers from another folder if the model has layers on disk."""
        choice = self.choice
        if choice.options.tier_disk not in (None, folder):
            self._state.choice = choice.with_layers_in(folder)
            if self.is_wanted:
                self.load()

    def find_keys_in(self, folder: Path | None) -> None:
        """Set the configuration folder with API keys of other machines; None for none."""
        self._state.keys_dir = folder

    def go_offline(self, is_offline: bool) -> None:
        """Turn offline mode on or off; on, a remote model is unloaded."""
        self._state.is_offline = is_offline
        if is_offline and self.choice.remote is not None:
            self.cancel()
            self.sleep()

    def cancel(self) -> None:
        """Cancel loading and return to the previous model."""
        if self._load is not None:
            self._load.cancel()

    def unload_after(self, minutes: float) -> None:
        """Set the idle time until the model is unloaded; 0 never unloads it."""
        self._idle.stop()
        self._idle.setInterval(round(minutes * 60_000))
        self.touch()

    def touch(self) -> None:
        """Restart the idle timer."""
        if self._idle.interval() > 0 and not self.choice.is_demo:
            self._idle.start()

    def wake(self) -> None:
        """Reload an unloaded model; requests wait meanwhile."""
        self.touch()
        if self.status.phase is Phase.ASLEEP or self._state.is_unloading:
            self.load()

    def sleep(self) -> None:
        """Unload the model to free its memory; the next message loads it again."""
        self._ask(self._state.unload())

    def measure_again(self) -> None:
        """Discard the model's measurements and repeat them while idle."""
        if (command := self._state.measure_again()) is not None:
            self.changed.emit()
            self._ask(command)

    def _ask(self, command: Command | None) -> None:
        if command is not None:
            self._bridge.ask(command, self._on_events)

    def _on_events(self, events: tuple[Event, ...]) -> None:
        for event in events:
            self._handle_event(event)

    def _handle_event(self, event: Event) -> None:
        command = self._state.handle(event)
        self.changed.emit()
        if event is self.status.loaded:
            self.chosen.emit()
            self.touch()
            if self._state.is_offline and self.choice.remote is not None:
                self.sleep()  # it was loaded before the cancel of its load arrived
        self._ask(command)
