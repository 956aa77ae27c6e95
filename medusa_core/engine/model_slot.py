"""The loaded model, its measurements and its row policy."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from medusa_core.engine.admission import check_threads
from medusa_core.errors import Cancelled, RequestError
from medusa_core.i18n import tr
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    DrafterSpeed,
    Event,
    GenerateSettings,
    LoadModel,
    Message,
    ModelLoaded,
    Progress,
    is_plausible_speed_up,
)
from medusa_core.models.advice import tried_sampling
from medusa_core.models.text.reasoning_formats import with_token_ids
from medusa_core.models.text.tokenizer import find_fill_tokens
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.forced_text import GRAMMAR, source_infos
from medusa_core.speculation.drafters.lineup import drafters_for
from medusa_core.speculation.drafters.source import source_registry
from medusa_core.speculation.rules.rule import rules_by_preference
from medusa_core.speculation.tuning.calibration import Calibration
from medusa_core.speculation.tuning.measurements import ModelMeasurements
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.threads import Threads
from medusa_core.system import compute_threads, cuda
from medusa_core.system.garbage import collect_garbage, trim_heap

log = logging.getLogger(__name__)


class ModelSlot:
    """Loads, describes and frees the model; keeps its measurements on this computer.

    Attributes:
        loaded: The command that loaded the model; None without one.
        speeds: Measured speeds of its drafters; empty if unknown.
    """

    def __init__(
        self,
        on_event: Callable[[Event], None],
        is_cancelled: Callable[[Message], bool],
        evict: Callable[[], bool],
    ) -> None:
        """Start empty.

        Args:
            on_event: Receives the events of loading.
            is_cancelled: Returns whether a Cancel of a command is queued.
            evict: Frees the cache of an idle session; returns False if there is none.
        """
        self._send = on_event
        self._is_cancelled = is_cancelled
        self._evict = evict
        self._target: Target | None = None
        self.loaded: LoadModel | None = None
        self._row_policy: RowPolicy | None = None
        self._measurements: ModelMeasurements | None = None
        self.speeds: tuple[DrafterSpeed, ...] = ()
        self._threads: Threads | None = None
        self._most_threads = compute_threads.count()

    @property
    def target(self) -> Target:
        """The model.

        Raises:
            RequestError: No model is loaded.
        """
        return self._need()[0]

    @property
    def row_policy(self) -> RowPolicy:
        """Decides how its answers draft.

        Raises:
            RequestError: No model is loaded.
        """
        return self._need()[1]

    @property
    def drafters(self) -> tuple[DrafterSpec, ...]:
        """Its drafters, the default first."""
        target, _ = self._need()
        assert self.loaded is not None  # there is a model
        return drafters_for(target, self.speeds, shows_drafts=self.loaded.shows_drafts)

    def open(self, command: LoadModel) -> None:
        """Load a model into the empty slot.

        Raises:
            MedusaError: It can't be loaded; `free` releases what was allocated.
        """
        check_threads(command.num_threads)
        started = time.perf_counter()

        def on_progress(stage: str, fraction: float, text: str) -> None:
            """Send the progress of loading; raises `Cancelled` at a queued Cancel."""
            if self._is_cancelled(command):
                raise Cancelled(tr("Loading was stopped."))
            self._send(Progress(*command.ids, stage, fraction, text))

        target = load_target(command.model_dir, command.heads_dir, command.options, on_progress)
        self._measurements = self._open_measurements(command, target)
        if command.num_threads:
            target.runner.use_threads(command.num_threads, command.num_threads)
        else:
            most, saved = self._most_threads, self._measurements
            self._threads = Threads(target, most, None if saved is None else saved.threads(most))
        for caches in target.cache_pools:
            caches.evict = self._evict
        self._target, self.loaded = target, command
        self._row_policy = RowPolicy(target)
        if self._measurements is not None:
            self._measurements.load_learned(self._row_policy)
            self._look_up(self._measurements)
        self._send(_describe(command, target, self.speeds, time.perf_counter() - started))

    def _open_measurements(self, command: LoadModel, target: Target) -> ModelMeasurements | None:
        """Open the measurements of earlier runs; None if they aren't kept."""
        folder = command.calibrations_dir
        return None if folder is None else ModelMeasurements(folder, target, _folders(command))

    def _look_up(self, measurements: ModelMeasurements) -> None:
        """Load what earlier runs measured with the current number of threads."""
        self.speeds = measurements.speeds()
        self.row_policy.costs = measurements.saved_costs()

    @property
    def knows_costs(self) -> bool:
        """Whether a model is loaded and all costs of its steps are known."""
        costs = None if self._row_policy is None else self._row_policy.costs
        return costs is not None and costs.is_complete

    @property
    def threads_are_due(self) -> bool:
        """Whether the best number of threads should be measured."""
        return self._threads is not None and self._threads.is_due

    def measure_threads(self) -> bool:
        """Run a piece of measuring the best number of threads.

        Returns:
            Whether it has ended with another number than before, so that steps have other costs.

        Raises:
            OutOfMemoryError: Conversations hold the rows that it needs.
        """
        assert self._threads is not None  # by `threads_are_due`
        before = self._threads.counts
        if not self._threads.advance():
            return False
        if self._measurements is not None:
            self._measurements.save_threads(self._threads)
        if self._threads.counts == before:
            return False
        if self._measurements is not None:
            self._look_up(self._measurements)
        return True

    def pause_thread_measurement(self) -> None:
        """Interrupt the measurement of thread counts for an answer, which uses the last counts."""
        if self._threads is not None:
            self._threads.pause()

    def begin_calibration(self, *, is_anew: bool, is_hurried: bool) -> Calibration | None:
        """Begin to measure the costs of steps, or the missing ones.

        Args:
            is_anew: Delete earlier measurements.
            is_hurried: End within the default time, even if costs are missing then.

        Returns:
            The calibration; None if all costs are known, which the row policy uses from now on.
        """
        target, row_policy = self._need()
        if is_anew:
            self.speeds = ()
            if self._measurements is not None:
                self._measurements.forget()
        if not is_hurried:
            return Calibration(target, row_policy.costs)  # those of a hurried one
        known = None if self._measurements is None else self._measurements.saved_costs()
        if known is not None:
            row_policy.costs = known
            if known.is_complete:
                return None
        return Calibration(target, known, is_hurried=is_hurried)

    def use_costs(self, calibration: Calibration) -> None:
        """Use the costs measured so far; save them if the calibration is complete."""
        self.row_policy.costs = calibration.costs()
        if calibration.is_over and self._measurements is not None:
            self._measurements.save_costs(calibration)

    def save_speeds(self, speeds: tuple[DrafterSpeed, ...]) -> None:
        """Save the drafters' speeds; implausible ones are measured again."""
        costs = self.row_policy.costs
        is_measured = costs is not None and costs.is_complete
        if not is_measured or not all(is_plausible_speed_up(s.x_plain, s.tau) for s in speeds):
            log.info("the speeds of the drafters aren't saved: the computer was busy")
            return
        self.speeds = speeds
        if self._measurements is not None and speeds:
            self._measurements.save_speeds(speeds)

    def save_learned(self) -> None:
        """Save what its row policy has learned."""
        if self._measurements is not None:
            self._measurements.save_learned(self.row_policy)

    def send_plan(self, command: Message, settings: GenerateSettings) -> None:
        """Send the trees that answers with such settings get, if the costs of steps are known."""
        if self.row_policy.costs is not None:
            self._send(self.row_policy.plan(*command.ids, settings))

    def free(self) -> int:
        """Unload the model, whose sessions must be closed, and check that it was freed.

        Returns:
            The bytes of the model and its caches.
        """
        self._measurements, self.speeds, self._threads = None, (), None
        target, self._target, self.loaded = self._target, None, None
        self._row_policy = None
        if target is None:
            return 0
        in_heads = 0 if target.heads is None else target.heads.nbytes
        held = target.weights_bytes + in_heads + target.caches.nbytes
        left = weakref.ref(target.runner)
        if target.learned is not None:
            target.learned.close()
        if target.folder_texts is not None:
            target.folder_texts.close()
        target.runner.leave()
        del target
        if collect_garbage() and left() is not None:
            log.error("the model is still held after it was unloaded")
        cuda.release_memory()
        trim_heap()
        return held

    def _need(self) -> tuple[Target, RowPolicy]:
        """The model with its row policy; raises `RequestError` if none is loaded."""
        if self._target is None or self._row_policy is None:
            raise RequestError("No model is loaded.", "Load a model first.")
        return self._target, self._row_policy


def _folders(command: LoadModel) -> tuple[Path, ...]:
    """The folders that a command loads from."""
    options = command.options
    extra = (command.heads_dir, options.assistant_dir, options.adapter_dir)
    return (command.model_dir, *(folder for folder in extra if folder is not None))


def _describe(
    command: LoadModel, target: Target, speeds: tuple[DrafterSpeed, ...], load_s: float
) -> ModelLoaded:
    """The event that describes a loaded model."""
    return ModelLoaded(
        session_id=command.session_id,
        request_id=command.request_id,
        name=target.name,
        num_parameters=target.num_parameters,
        num_heads=0 if target.heads is None else target.heads.num_heads,
        context_tokens=target.config.context_tokens,
        vocab_size=target.config.vocab_size,
        dtype=target.precision.name,
        quant=target.format_name,
        plan=target.plan,
        device=str(target.precision.device),
        drafters=tuple(
            spec.choice for spec in drafters_for(target, speeds, shows_drafts=command.shows_drafts)
        ),
        rules=rules_by_preference(),
        sources=source_infos(),
        serving=_serving(target),
        load_s=load_s,
        device_note=target.device_note,
        runner_note=target.runner_note,
        not_compiled=target.not_compiled,
        end_ids=target.eos_token_ids,
        special_tokens=target.tokenizer.special_tokens,
        advice=target.config.advice or tried_sampling(target.name),
        thinking=target.template.thinking,
        reasoning=with_token_ids(target.template.reasoning, target.tokenizer),
        tool_calls=target.template.tool_calls,
        chat_template=target.template.source,
        fill_tokens=find_fill_tokens(target.tokenizer),
        continues_text=target.template.continues_text,
        head_source=_head_source(target),
        speeds=speeds,
        machines=target.runner.machines,
        draft_model="" if target.assistant is None else target.assistant.name,
    )


def _serving(target: Target) -> frozenset[str]:
    """Names of the sources that can draft for a target."""
    serving = (spec.name for spec in source_registry().specs if spec.serves(target))
    return frozenset((*serving, GRAMMAR.name))


def _head_source(target: Target) -> str:
    """Name of the source of a target's heads, each of which has its own mark; empty without."""
    specs = source_registry().specs
    return next((spec.name for spec in specs if spec.info.is_numbered and spec.serves(target)), "")
