"""Where commands are carried out, one at a time, and answers are decoded in turns."""

from __future__ import annotations

import gc
import logging
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import torch

from medusa_core.engine.admission import check_threads
from medusa_core.engine.counting import count
from medusa_core.engine.drafter_race import DrafterRace, usual_race
from medusa_core.engine.generation import Generation
from medusa_core.engine.session import Session
from medusa_core.engine.together import step_together, those_together
from medusa_core.engine.verification import verify
from medusa_core.errors import (
    Cancelled,
    EngineError,
    MedusaError,
    OutOfMemoryError,
    PlanError,
    RequestError,
    TemplateError,
)
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.memory.heap import give_back_heap
from medusa_core.messages import (
    AnswerBegun,
    Calibrate,
    Calibrated,
    Cancel,
    CloseSession,
    Command,
    Count,
    DrafterSpeed,
    EngineLost,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    LoadModel,
    Message,
    ModelLoaded,
    Progress,
    Race,
    Raced,
    Unload,
    Unloaded,
    Verify,
)
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.lineup import drafters_for
from medusa_core.speculation.drafters.source import source_registry
from medusa_core.speculation.rules.rule import rules_by_preference
from medusa_core.speculation.tuning.calibration import measure_costs
from medusa_core.speculation.tuning.known import Known
from medusa_core.speculation.tuning.threads import Threads
from medusa_core.speculation.tuning.tuner import Tuner
from medusa_core.system import cuda as card

log = logging.getLogger(__name__)

_LACKS_MEMORY = ("out of memory", "ALLOC_FAILED", "allocate memory")


class Executor:
    """Owns the model, the sessions, and the answers under way.

    Attributes:
        has_work: An answer is under way, or something waits for the last of them.
    """

    def __init__(
        self,
        on_event: Callable[[Event], None],
        is_cancelled: Callable[[Message], bool],
    ) -> None:
        """Serve commands.

        Args:
            on_event: Told every event.
            is_cancelled: Has a Cancel for this command come in that waits to be handled?
        """
        self._tell = on_event
        self._is_cancelled = is_cancelled
        self._target: Target | None = None
        self._loaded: LoadModel | None = None
        self._tuner: Tuner | None = None
        self._known: Known | None = None
        self._speeds: tuple[DrafterSpeed, ...] = ()
        self._race: tuple[Race, DrafterRace] | None = None
        self._threads: Threads | None = None
        self._calibrated: Calibrate | None = None
        self._most_threads = torch.get_num_threads()
        self._sessions: dict[str, Session] = {}
        self._running: list[Generation] = []
        # Measurements need the room that answers have taken.
        self._waiting: list[Calibrate] = []
        self._is_lost = False

    @property
    def has_work(self) -> bool:
        return bool(self._running or self._waiting or self._race)

    def handle(self, command: Command) -> None:
        """Carry out a command; whatever fails becomes a `Failed` event."""
        if self._is_lost:
            self._tell_lost(command)
            return
        try:
            self._dispatch(command)
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any command
            self._fail(command, error)

    def work(self) -> None:
        """Let whose turn it is do one piece of work; after the last answer, measure.

        Answers that decode do so together.
        """
        if not self._running:
            if self._waiting:
                self.handle(self._waiting.pop(0))
            elif self._race is not None:
                self._race_on(*self._race)
            return
        together = those_together(self._running)

        def fail(generation: Generation, error: BaseException) -> None:
            if self._is_lost:  # all who ran are told already
                return
            self._running.remove(generation)
            self._forget(generation.request.session_id)
            self._fail(generation.request, error)

        if len(together) > 1:
            runner = self._need_target()[0].runner
            step_together(runner, together, self._tell_work, fail)
        else:
            try:
                self._tell_work(together[0], together[0].advance())
            except BaseException as error:  # noqa: BLE001 - the thread must outlive any answer
                fail(together[0], error)
        # Whose turn it was comes last; until here it ran, so that its cache gave way to nobody.
        going_on = [one for one in together if one in self._running and not one.is_done]
        self._running = [one for one in self._running if one not in together] + going_on

    def _tell_work(self, generation: Generation, events: Iterable[Event]) -> None:
        self._tell_all(events)
        if generation.is_done:
            self._tell_plan(generation.request, generation.request.settings)
            if self._known is not None:
                self._known.keep_learned(self._need_target()[1])
            generation.teach()

    def close(self) -> None:
        """End all answers and free the model; of a lost device nothing more is asked."""
        if self._is_lost:
            return
        self._cancel_all()
        self._free()

    def _dispatch(self, command: Command) -> None:
        match command:
            case LoadModel():
                self._load(command)
            case Unload():
                self._cancel_all()
                freed = self._free()
                self._tell(Unloaded(command.session_id, command.request_id, freed))
            case Calibrate():
                if self._running:
                    self._waiting.append(command)
                else:
                    self._calibrate(command)
            case Race():
                self._begin_race(command)
            case Generate():
                self._generate(command)
            case Cancel():
                self._cancel(command)
            case CloseSession():
                self._close_session(command)
            case Count():
                self._tell(count(command, self._need_target()[0]))
            case Verify():
                self._tell(verify(command, self._need_target()[0], self._check_cancelled))

    def _check_cancelled(self, command: Message) -> None:
        if self._is_cancelled(command):
            raise Cancelled("This was stopped.")

    def _load(self, command: LoadModel) -> None:
        """Load a model; if that fails, load again what was there before."""
        before = self._loaded
        self._cancel_all()
        self._free()
        try:
            self._open(command)
        except BaseException as error:  # noqa: BLE001 - told, and what was there before comes back
            self._fail(command, error)
            if self._is_lost:
                return
            self._free()
            if before is not None:
                self._open(before)

    def _open(self, command: LoadModel) -> None:
        check_threads(command.num_threads)
        started = time.perf_counter()

        def on_progress(stage: str, fraction: float, text: str) -> None:
            if self._is_cancelled(command):
                raise Cancelled("Loading was stopped.")
            self._tell(Progress(command.session_id, command.request_id, stage, fraction, text))

        target = load_target(command.model_dir, command.heads_dir, command.options, on_progress)
        if command.num_threads:
            target.runner.use_threads(command.num_threads, command.num_threads)
        else:
            self._threads = Threads(target, self._most_threads)
        target.caches.give_way = self._give_way
        self._target, self._loaded = target, command
        self._tuner = Tuner(target)
        self._look_up(command, target, self._tuner)
        self._tell(_describe(command, target, self._speeds, time.perf_counter() - started))

    def _look_up(self, command: LoadModel, target: Target, tuner: Tuner) -> None:
        """Take what is known of a model on this computer, with as many threads as it has now."""
        if command.calibrations_dir is not None:
            self._known = Known(command.calibrations_dir, target, _folders(command))
            self._known.learn_on(tuner)
            self._speeds = self._known.speeds()

    def _settle_again(self) -> None:
        """Take as many threads as serve best now; then steps cost something else."""
        if self._running or self._threads is None or not self._threads.settle_again():
            return
        target, tuner = self._need_target()
        assert self._loaded is not None  # by `_need_target`
        self._look_up(self._loaded, target, tuner)
        if self._calibrated is not None:
            self._waiting.append(self._calibrated)

    def _calibrate(self, command: Calibrate) -> None:
        self._calibrated = command
        target, tuner = self._need_target()
        costs = tuner.costs = measure_costs(target) if self._known is None else self._known.costs()
        ids = (command.session_id, command.request_id)
        step_s = tuple(zip(costs.rows, costs.seconds[0], strict=True))
        self._tell(Calibrated(*ids, step_s, costs.plain_s(costs.lengths[0])))
        self._tell_plan(command, GenerateSettings())

    def _tell_plan(self, command: Message, settings: GenerateSettings) -> None:
        """Tell which trees answers like this get now, if step costs are known."""
        _, tuner = self._need_target()
        if tuner.costs is not None:
            self._tell(tuner.plan(command.session_id, command.request_id, settings))

    def _begin_race(self, command: Race) -> None:
        """Tell what is known of the drafters' speeds, or find it out in spare time."""
        target, tuner = self._need_target()
        if self._speeds:
            self._tell_speeds(command, target)
            return
        if tuner.costs is None:
            raise RequestError("What a step costs is not known.", "Calibrate the model first.")
        self._race = (command, usual_race(target, tuner.costs))

    def _race_on(self, command: Race, race: DrafterRace) -> None:
        try:
            race.advance()
            if not race.is_done:
                return
            self._race, self._speeds = None, race.speeds
            if self._known is not None and self._speeds:
                self._known.keep_speeds(self._speeds)
            self._tell_speeds(command, self._need_target()[0])
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any race
            self._race = None
            self._fail(command, error)

    def _tell_speeds(self, command: Race, target: Target) -> None:
        specs = self._drafters()
        by_name = {speed.name: speed for speed in self._speeds}
        speeds = tuple(by_name[spec.name] for spec in specs if spec.name in by_name)
        choices = tuple(spec.choice for spec in specs)
        self._tell(Raced(command.session_id, command.request_id, choices, speeds))

    def _generate(self, command: Generate) -> None:
        target, tuner = self._need_target()
        if self._race is not None:
            self._race[1].pause()  # its room is for those who ask
        self._settle_again()
        if not command.settings.drafter:
            first = self._drafters()[0].name
            command = replace(command, settings=replace(command.settings, drafter=first))
        if any(g.request.session_id == command.session_id for g in self._running):
            raise RequestError(
                "This conversation is still being answered.", "Wait for the answer, or stop it."
            )
        if target.learned is not None:
            target.learned.refresh()
        known = self._sessions.pop(command.session_id, None)  # else it could give way to itself
        try:
            session = known or Session(target)
            self._running.append(Generation(command, target, session, tuner))
            assert self._loaded is not None  # by `_need_target`
            begun = AnswerBegun(command.session_id, command.request_id, self._loaded.request_id)
            self._tell(begun)
            known = session
        finally:
            if known is not None:
                self._sessions[command.session_id] = known  # the last one used is the last

    def _drafters(self) -> tuple[DrafterSpec, ...]:
        """Those that can draft for the loaded model, the default first."""
        assert self._loaded is not None  # by `_need_target`
        target, _ = self._need_target()
        return drafters_for(target, self._speeds, shows_drafts=self._loaded.shows_drafts)

    def _give_way(self) -> bool:
        """Forget the session that hasn't been used for longest; False where all are busy."""
        busy = {generation.request.session_id for generation in self._running}
        idle = [name for name in self._sessions if name not in busy]
        if idle:
            log.info("the cache of a session gives way to another one")
            self._sessions.pop(idle[0]).close()
        return bool(idle)

    def _cancel(self, command: Cancel) -> None:
        if self._race is not None and self._race[0].request_id == command.request_id:
            self._end_race()
            return
        for generation in self._running:
            request = generation.request
            if (request.session_id, request.request_id) == (command.session_id, command.request_id):
                self._running.remove(generation)
                self._tell_all(generation.cancel())
                generation.teach()
                return

    def _close_session(self, command: CloseSession) -> None:
        for generation in list(self._running):
            if generation.request.session_id == command.session_id:
                self._running.remove(generation)
                self._tell_all(generation.cancel())
        self._forget(command.session_id)
        if self._target is not None and self._target.learned is not None:
            self._target.learned.refresh()
        give_back_heap()

    def _forget(self, session_id: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _cancel_all(self) -> None:
        for generation in self._running:
            self._tell_all(generation.cancel())
        self._running.clear()

    def _end_race(self) -> None:
        if self._race is not None:
            self._race[1].pause()
            self._race = None

    def _tell_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self._tell(event)

    def _need_target(self) -> tuple[Target, Tuner]:
        if self._target is None or self._tuner is None:
            raise RequestError("No model is loaded.", "Load a model first.")
        return self._target, self._tuner

    def _free(self) -> int:
        """Forget the model and its caches, and see that they are gone.

        Returns:
            The bytes that they had taken.
        """
        self._waiting.clear()
        self._end_race()
        self._known, self._speeds = None, ()
        self._threads, self._calibrated = None, None
        target, self._target, self._loaded = self._target, None, None
        self._tuner = None
        if target is None:
            return 0
        in_heads = 0 if target.heads is None else target.heads.nbytes
        held = target.weights_bytes + in_heads + target.caches.nbytes
        left = weakref.ref(target.runner)
        self._sessions.clear()
        if target.learned is not None:
            target.learned.close()
        target.leave_cluster()
        del target
        gc.collect()
        if left() is not None:
            log.error("the model is still held after it was unloaded")
        card.give_back_memory()
        give_back_heap()
        return held

    def _tell_lost(self, command: Message) -> None:
        self._tell(
            EngineLost(
                command.session_id,
                command.request_id,
                "EngineLost",
                "The graphics card reported an error and can't be used any more.",
                "Restart Medusa Chat. What you wrote and received so far is kept.",
            )
        )

    def _fail(self, command: Message, error: BaseException) -> None:
        if poisons_device(error):
            log.critical("the device is lost", exc_info=error)
            self._is_lost = True
            for request in (command, *(generation.request for generation in self._running)):
                self._tell_lost(request)
            self._running.clear()
            return
        told = _as_medusa_error(error)
        if isinstance(told, RequestError | PlanError | Cancelled):
            # The asker's mistake, which the asker is told; nothing here failed.
            log.info("%s refused: %s", type(command).__name__, told.message)
        elif isinstance(told, TemplateError):
            # What a template says of a conversation may quote it.
            log.info("%s failed: the chat template refuses or fails", type(command).__name__)
        else:
            log.error("%s failed", type(command).__name__, exc_info=error)
        ids = (command.session_id, command.request_id)
        self._tell(Failed(*ids, type(told).__name__, told.message, told.hint))
        if isinstance(told, OutOfMemoryError):
            self._make_room(command)

    def _make_room(self, command: Message) -> None:
        """Give back what can be; a card that was lost shows here, too."""
        try:
            gc.collect()
            card.give_back_memory()
            give_back_heap()
        except RuntimeError as error:
            log.exception("nothing could be given back")
            if poisons_device(error):
                self._fail(command, error)


def poisons_device(error: BaseException | None) -> bool:
    """Whether the error leaves the device unusable in this process: later CUDA calls fail."""
    while error is not None:
        text = str(error)
        is_cuda = isinstance(error, RuntimeError) and "CUDA error" in text
        is_ours = isinstance(error, torch.AcceleratorError) or is_cuda
        lacks_memory = isinstance(error, torch.OutOfMemoryError) or any(
            said in text for said in _LACKS_MEMORY
        )
        if is_ours and not lacks_memory:
            return True
        error = error.__cause__ or error.__context__  # what it was before it was told in our words
    return False


def _as_medusa_error(error: BaseException) -> MedusaError:
    if isinstance(error, MedusaError):
        return error
    lacks_memory = any(said in str(error) for said in _LACKS_MEMORY)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or lacks_memory:
        return OutOfMemoryError(
            "The device ran out of memory.",
            "Close other programs, start a new chat, or choose a smaller model.",
        )
    return EngineError(
        f"The engine failed: {type(error).__name__}.", "Try again; the log has the details."
    )


def _folders(command: LoadModel) -> tuple[Path, ...]:
    """Where what is loaded lies."""
    options = command.options
    beside = (command.heads_dir, options.assistant_dir, options.adapter_dir)
    named = (command.model_dir, *beside)
    return tuple(folder for folder in named if folder is not None)


def _describe(
    command: LoadModel, target: Target, speeds: tuple[DrafterSpeed, ...], load_s: float
) -> ModelLoaded:
    return ModelLoaded(
        session_id=command.session_id,
        request_id=command.request_id,
        name=target.name,
        num_parameters=target.num_parameters,
        num_heads=0 if target.heads is None else target.heads.num_heads,
        context_tokens=target.config.context_tokens,
        vocab_size=target.config.vocab_size,
        dtype=target.precision.name,
        quant=target.formats.linears.name,
        plan=target.plan,
        device=str(target.precision.device),
        drafters=tuple(
            spec.choice for spec in drafters_for(target, speeds, shows_drafts=command.shows_drafts)
        ),
        rules=rules_by_preference(),
        sources=tuple(spec.info for spec in source_registry().specs),
        serving=frozenset(s.info.name for s in source_registry().specs if s.serves(target)),
        load_s=load_s,
        device_note=target.device_note,
        end_ids=target.eos_token_ids,
        special_tokens=target.tokenizer.special_tokens,
        advice=target.config.advice,
        thinking=target.template.thinking,
        continues_text=target.template.continues_text,
        head_source=_head_source(target),
        speeds=speeds,
        machines=target.machines,
    )


def _head_source(target: Target) -> str:
    """The source that is a target's heads: each of them has a mark of its own."""
    specs = source_registry().specs
    return next((spec.name for spec in specs if spec.info.is_numbered and spec.serves(target)), "")
