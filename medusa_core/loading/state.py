"""State of the engine's model, tracked from commands and events."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from medusa_core.chats.conversation import new_id
from medusa_core.i18n import tr
from medusa_core.loading.choice import ModelChoice
from medusa_core.messages import (
    Calibrate,
    Calibrated,
    Command,
    Event,
    Failed,
    LoadModel,
    LoadRemote,
    ModelLoaded,
    Planned,
    Progress,
    Race,
    Raced,
    Unload,
    Unloaded,
    cluster_of,
    local_device,
)
from medusa_core.system.files.gguf import SUFFIX

log = logging.getLogger(__name__)

# The session id of commands that belong to no conversation.
SESSION = "model"


class Phase(Enum):
    """Phase of the model."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"
    ASLEEP = "asleep"


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """Status of the model.

    Attributes:
        phase: Whether the model is loading, ready, failed, or asleep: unloaded until it is needed.
        text: Current work while it is loading.
        fraction: Fraction of this work that is done.
        loaded: The loaded model, or None.
        calibrated: Measured costs of steps, or None.
        planned: The trees that the engine would use, or None.
        failed: Why the requested model couldn't be loaded, even if the previous one is loaded
            again; or None.
    """

    phase: Phase = Phase.LOADING
    text: str = tr("Loading the model")
    fraction: float = 0.0
    loaded: ModelLoaded | None = None
    calibrated: Calibrated | None = None
    planned: Planned | None = None
    failed: Failed | None = None


class ModelState:
    """Makes the commands for one engine's model; its owner submits them and passes events on.

    Attributes:
        status: The current status.
        choice: The loaded model, or the one being loaded.
        device: Device of the next load: torch's name or a cluster's; empty for the best available.
        suffix_dir: Folder of texts that the suffix tree of the next load drafts from; or None.
        keys_dir: Folder of API keys of other machines; None for none.
        is_offline: Nothing may be sent to other machines.
    """

    def __init__(
        self,
        choice: ModelChoice,
        quantized_dir: Path | None = None,
        calibrations_dir: Path | None = None,
        datastore_dir: Path | None = None,
        make_id: Callable[[], str] = new_id,
    ) -> None:
        """Start with a choice.

        Args:
            choice: The model.
            quantized_dir: Folder of quantized models; None saves none.
            calibrations_dir: Folder of measured costs; None saves none.
            datastore_dir: Folder of the models' answers for drafting; None saves none.
            make_id: Makes request ids.
        """
        self.choice = choice
        self.status = ModelStatus()
        self.device = ""
        self.suffix_dir: Path | None = None
        self.keys_dir: Path | None = None
        self.is_offline = False
        self._quantized_dir = quantized_dir
        self._calibrations_dir = calibrations_dir
        self._datastore_dir = datastore_dir
        self._make_id = make_id
        self._loads: dict[str, ModelChoice] = {}  # of this run, as answers refer to theirs
        self._load_id = ""
        self._unload_id = ""

    @property
    def is_unloading(self) -> bool:
        """Whether an unload was requested that hasn't been confirmed, nor followed by a load."""
        return bool(self._unload_id)

    @property
    def is_wanted(self) -> bool:
        """Whether a load was requested and the model hasn't been unloaded since."""
        return bool(self._load_id) and self.status.phase is not Phase.ASLEEP

    def load(self, choice: ModelChoice | None = None) -> LoadModel | LoadRemote:
        """The command that loads a model, or the chosen one again."""
        wanted = self.choice = choice or self.choice
        self._load_id = self._make_id()
        self._loads[self._load_id] = wanted
        self._unload_id = ""
        self.status = ModelStatus()
        if wanted.remote is not None:
            return LoadRemote(
                SESSION,
                self._load_id,
                wanted.remote,
                keys_dir=self.keys_dir,
                is_offline=self.is_offline,
            )
        options = replace(
            wanted.options,
            device=local_device(self.device),
            cluster=cluster_of(self.device),
            quantized_dir=self._quantized_dir,
            datastore_dir=self._datastore_dir,
            suffix_dir=self.suffix_dir,
        )
        return LoadModel(
            SESSION,
            self._load_id,
            wanted.model_dir,
            wanted.heads_dir,
            options,
            calibrations_dir=self._calibrations_dir,
            shows_drafts=wanted.is_demo,
        )

    def choice_of(self, load_id: str) -> ModelChoice | None:
        """The choice of a load request; None if unknown."""
        return self._loads.get(load_id)

    def unload(self) -> Unload | None:
        """The command that unloads the model; None without one, or if it was requested already."""
        if self.status.phase is not Phase.READY or self.is_unloading:
            return None
        self._unload_id = self._make_id()
        return Unload(SESSION, self._unload_id)

    def measure_again(self) -> Calibrate | None:
        """The command that measures the loaded model again; None without a local one."""
        loaded = self.status.loaded
        if self.status.phase is not Phase.READY or loaded is None or loaded.is_remote:
            return None
        self.status = replace(self.status, loaded=replace(loaded, speeds=()), calibrated=None)
        return Calibrate(SESSION, self._make_id(), is_anew=True)

    def handle(self, event: Event) -> Command | None:
        """Update the status by an event about the model.

        Args:
            event: Event of a command from here, or the `ModelLoaded`, `Unloaded` or `Planned` of
                any other.

        Returns:
            A command to submit, or None.
        """
        match event:
            case Progress(request_id=self._load_id):
                self.status = replace(self.status, text=event.text, fraction=event.fraction)
            case ModelLoaded():
                return self._take_loaded(event)
            case Calibrated():
                self.status = replace(self.status, calibrated=event)
                return self._race()
            case Raced():
                self._take_speeds(event)
            case Planned():
                self.status = replace(self.status, planned=event)
            case Unloaded() if self.status.phase is Phase.READY:
                # While a model is loading, it is the previous one that was unloaded.
                self._unload_id = ""
                self.status = ModelStatus(Phase.ASLEEP)
            case Failed(request_id=self._load_id):
                self.status = ModelStatus(Phase.FAILED, failed=event)
            case Failed() if event.request_id in self._loads:
                log.info("another model was requested before this one failed: %s", event.message)
            case Failed(request_id=self._unload_id) if self.is_unloading:
                self._unload_id = ""
                log.warning("the model could not be unloaded: %s", event.message)
            case Failed():
                # Without it only the comparison with plain decoding is missing.
                log.warning("The steps could not be measured: %s", event.message)
            case _:
                log.debug("Nothing to do for %s.", type(event).__name__)
        return None

    def _take_loaded(self, event: ModelLoaded) -> Calibrate | None:
        """Note a loaded model: the requested one or, if its load failed, the previous one again.

        Returns:
            The command that measures its step costs; None for a remote model.
        """
        if event.request_id != self._load_id and self.status.phase is Phase.LOADING:
            return None  # another one was requested meanwhile
        self.choice = _named_as_loaded(self._loads[event.request_id], event)
        self._loads[event.request_id] = self.choice
        # If the previous model is back, the error of the requested one is kept.
        failed = None if event.request_id == self._load_id else self.status.failed
        self.status = ModelStatus(Phase.READY, loaded=event, failed=failed)
        if event.is_remote:
            return None  # costs of steps aren't measured there
        return Calibrate(SESSION, self._make_id())

    def _take_speeds(self, event: Raced) -> None:
        """Store the speeds of the loaded model's drafters."""
        if self.status.loaded is not None:
            loaded = replace(self.status.loaded, drafters=event.drafters, speeds=event.speeds)
            self.status = replace(self.status, loaded=loaded)

    def _race(self) -> Race | None:
        """The command of a race, if its result is saved and there are drafters to choose from."""
        loaded = self.status.loaded
        if self._calibrations_dir is None or loaded is None or len(loaded.drafters) < 2:
            return None
        return Race(SESSION, self._make_id())


def _named_as_loaded(choice: ModelChoice, loaded: ModelLoaded) -> ModelChoice:
    """Rename a GGUF file without a name of its own to the name in its metadata."""
    is_unnamed = choice.name.removesuffix(SUFFIX) == choice.model_dir.stem
    if is_unnamed and choice.model_dir.suffix == SUFFIX and choice.options.adapter_dir is None:
        return replace(choice, name=loaded.name)
    return choice
