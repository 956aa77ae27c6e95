"""Which model is loaded and how far that is, told from commands and events alone."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from medusa_core.chats.conversation import new_id
from medusa_core.loading.choice import ModelChoice
from medusa_core.messages import (
    Calibrate,
    Calibrated,
    Cancel,
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
        failed: Why it could not be loaded; or why the one that was asked for isn't the one that
            is loaded; or None.
    """

    phase: Phase = Phase.LOADING
    text: str = "Loading the model"
    fraction: float = 0.0
    loaded: ModelLoaded | None = None
    calibrated: Calibrated | None = None
    planned: Planned | None = None
    failed: Failed | None = None


class ModelState:
    """The model of one engine; whoever owns it submits the commands and hands in the events.

    Attributes:
        status: What is known now.
        choice: The model that answers, or is being loaded.
        device: Of what is loaded next: torch's name, or a cluster's; empty for the best there is.
        keys_dir: Where keys of other machines are looked up; None for nowhere.
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
        """Begin with a model.

        Args:
            choice: The model.
            quantized_dir: Where quantized models are kept; None keeps none.
            calibrations_dir: Where step costs are kept; None keeps none.
            datastore_dir: Where what models say is kept; None keeps nothing.
            make_id: Names requests.
        """
        self.choice = choice
        self.status = ModelStatus()
        self.device = ""
        self.keys_dir: Path | None = None
        self.is_offline = False
        self._quantized_dir = quantized_dir
        self._calibrations_dir = calibrations_dir
        self._datastore_dir = datastore_dir
        self._make_id = make_id
        self._loads: dict[str, ModelChoice] = {}  # all of this run: answers name theirs
        self._load_id = self._calibrate_id = self._race_id = self._unload_id = ""

    def load(self, choice: ModelChoice | None = None) -> LoadModel | LoadRemote:
        """The command that loads a model, or the chosen one again."""
        wanted = self.choice = choice or self.choice
        self._load_id = self._make_id()
        self._loads[self._load_id] = wanted
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
        """What was asked for with a request to load; None where that isn't known."""
        return self._loads.get(load_id)

    def cancel(self) -> Cancel:
        """The command that stops loading; what was loaded before comes back."""
        return Cancel(SESSION, self._load_id)

    def unload(self) -> Unload | None:
        """The command that frees a loaded model; None where none is."""
        if self.status.phase is not Phase.READY:
            return None
        self._unload_id = self._make_id()
        return Unload(SESSION, self._unload_id)

    def measure_again(self) -> Calibrate | None:
        """The command that measures the loaded model anew; None where none runs on this machine."""
        loaded = self.status.loaded
        if self.status.phase is not Phase.READY or loaded is None or loaded.is_remote:
            return None
        self.status = replace(self.status, loaded=replace(loaded, speeds=()), calibrated=None)
        self._calibrate_id = self._make_id()
        return Calibrate(SESSION, self._calibrate_id, is_anew=True)

    def concerns(self, event: Event) -> bool:
        """Whether an event tells something of the model."""
        ours = (*self._loads, self._calibrate_id, self._race_id, self._unload_id)
        return isinstance(event, Planned) or event.request_id in ours  # plans are of any answer

    def take(self, event: Event) -> Command | None:
        """Take an event that concerns the model; returns a command to submit, if one follows."""
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
            case Unloaded() if self.status.phase is not Phase.FAILED:
                self.status = ModelStatus(Phase.ASLEEP)
            case Failed(request_id=self._load_id):
                self.status = ModelStatus(Phase.FAILED, failed=event)
            case Failed() if event.request_id in self._loads:
                log.info("another model was asked for before this one failed: %s", event.message)
            case Failed():
                # Without it only the figure that compares with plain decoding is missing.
                log.warning("The steps could not be measured: %s", event.message)
            case _:
                log.debug("Nothing to do for %s.", type(event).__name__)
        return None

    def _take_loaded(self, event: ModelLoaded) -> Calibrate | None:
        """The model that was asked for; or, where that failed, the one from before."""
        if event.request_id != self._load_id and self.status.phase is Phase.LOADING:
            return None  # another one was asked for meanwhile
        self.choice = _named_as_loaded(self._loads[event.request_id], event)
        self._loads[event.request_id] = self.choice
        # Where the one from before is back, it stays known why the other one isn't here.
        failed = None if event.request_id == self._load_id else self.status.failed
        self.status = ModelStatus(Phase.READY, loaded=event, failed=failed)
        if event.is_remote:
            return None  # what a step takes there is that machine's business
        self._calibrate_id = self._make_id()
        return Calibrate(SESSION, self._calibrate_id)

    def _take_speeds(self, event: Raced) -> None:
        """What was loaded knows its fastest drafter now."""
        if self.status.loaded is not None:
            loaded = replace(self.status.loaded, drafters=event.drafters, speeds=event.speeds)
            self.status = replace(self.status, loaded=loaded)

    def _race(self) -> Race | None:
        """Where what comes of it is kept; where there is nobody to choose from, nobody races."""
        loaded = self.status.loaded
        if self._calibrations_dir is None or loaded is None or len(loaded.drafters) < 2:
            return None
        self._race_id = self._make_id()
        return Race(SESSION, self._race_id)


def _named_as_loaded(choice: ModelChoice, loaded: ModelLoaded) -> ModelChoice:
    """A GGUF file that is known by its file's name is called as its metadata says from now on."""
    is_unnamed = choice.name.removesuffix(SUFFIX) == choice.model_dir.stem
    if is_unnamed and choice.model_dir.suffix == SUFFIX and choice.options.adapter_dir is None:
        return replace(choice, name=loaded.name)
    return choice
