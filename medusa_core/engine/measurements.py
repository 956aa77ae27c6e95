"""Measurements of the loaded model while no answer runs: threads, costs of steps, drafters."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from medusa_core.engine.drafter_race import DrafterRace, default_race
from medusa_core.engine.model_slot import ModelSlot
from medusa_core.errors import Cancelled, OutOfMemoryError, RequestError
from medusa_core.i18n import tr
from medusa_core.messages import (
    Calibrate,
    Calibrated,
    Event,
    GenerateSettings,
    Message,
    Race,
    Raced,
)
from medusa_core.speculation.tuning.calibration import Calibration

log = logging.getLogger(__name__)


class Measurements:
    """Runs queued calibrations and a race of the drafters, one step at a time.

    The best number of threads is measured first, as the other results depend on it. None of them
    begins before a command asks for it or an answer has ended: the first answer doesn't wait.
    Measurements use free rows of the cache only, and are postponed if there are too few.

    Attributes:
        has_work: Something is queued, and there may be room for it.
    """

    def __init__(
        self,
        model: ModelSlot,
        on_event: Callable[[Event], None],
        on_error: Callable[[Message, BaseException], None],
        has_sessions: Callable[[], bool],
    ) -> None:
        """Start without work.

        Args:
            model: The loaded model.
            on_event: Receives results.
            on_error: Receives failed commands with their errors.
            has_sessions: Returns whether conversations hold rows of the cache.
        """
        self._model, self._send, self._fail = model, on_event, on_error
        self._has_sessions = has_sessions
        self._waiting: list[Calibrate] = []
        self._calibrated: Calibrate | None = None
        self._calibration: Calibration | None = None  # of the first waiting or incomplete command
        self._incomplete: Calibrate | None = None  # answered, with costs that are still missing
        self._race_command: Race | None = None
        self._race: DrafterRace | None = None
        self._lacks_room = self._rechecks_threads = False

    @property
    def has_work(self) -> bool:
        """Whether something is queued and isn't waiting for free rows."""
        is_open = self._rechecks_threads or self._waiting or self._incomplete or self._race_command
        return not self._lacks_room and bool(is_open)

    @property
    def _is_answerable(self) -> bool:
        """Whether the first command asks for costs that are known: its sender may be waiting."""
        return bool(self._waiting) and not self._waiting[0].is_anew and self._model.knows_costs

    def retry(self) -> None:
        """Continue postponed work: rows may be free by now, other programs may have ended."""
        self._lacks_room = False
        self._rechecks_threads = bool(self._waiting) or self._calibrated is not None

    def step(self) -> None:
        """Run one step of the work."""
        if not self.has_work:
            return
        if self._rechecks_threads and not self._is_answerable and self._measure_threads():
            return
        command = self._waiting[0] if self._waiting else self._incomplete or self._race_command
        assert command is not None  # there is work
        try:
            self._calibrate(command) if isinstance(command, Calibrate) else self._race_on(command)
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any measurement
            if isinstance(error, OutOfMemoryError) and self._has_sessions():
                log.info("%s waits for free rows of the cache", type(command).__name__)
                self._lacks_room = True
                return
            if isinstance(command, Race):
                self._race = self._race_command = None
            elif self._waiting:
                self._calibration = None
                del self._waiting[0]
            else:
                self._calibration = self._incomplete = None
            self._fail(command, error)

    def wait(self, command: Calibrate) -> None:
        """Queue a calibration."""
        self._waiting.append(command)
        self._rechecks_threads = True
        if command.is_anew:  # a new race follows
            self._end_race()
        if self._incomplete is not None:  # the new command continues it
            self._end_calibration()

    def _end_calibration(self) -> None:
        """Drop the calibration under way, and release its rows."""
        if self._calibration is not None:
            self._calibration.pause()
        self._calibration = self._incomplete = None

    def _calibrate(self, command: Calibrate) -> None:
        """Measure one more step; at the end, send the result.

        The command is answered after the default time; missing costs are measured afterwards.
        """
        if self._calibration is None:
            is_anew = command.is_anew and command is not self._incomplete
            self._calibration = self._model.begin_calibration(
                is_anew=is_anew, is_hurried=command is not self._incomplete
            )
        if self._calibration is not None:
            self._calibration.advance()
            if not self._calibration.is_over:
                return
            self._model.use_costs(self._calibration)
        self._waiting = [other for other in self._waiting if other is not command]
        self._calibration, self._calibrated = None, command
        costs = self._model.row_policy.costs
        assert costs is not None  # measured now or before
        self._incomplete = None if costs.is_complete or command is self._incomplete else command
        step_s = tuple(zip(costs.rows, costs.seconds[0], strict=True))
        self._send(Calibrated(*command.ids, step_s, costs.plain_s(costs.lengths[0])))
        self._model.send_plan(command, GenerateSettings())

    def _measure_threads(self) -> bool:
        """Run a piece of measuring threads; calibrate again if another number is fastest now.

        Returns:
            Whether there was one.
        """
        self._rechecks_threads = self._model.threads_are_due
        if not self._rechecks_threads:
            return False
        try:
            if self._model.measure_threads():
                self._end_calibration()
                if self._calibrated is not None and not self._waiting:
                    self.wait(replace(self._calibrated, is_anew=False))
        except OutOfMemoryError:
            self._rechecks_threads = False
            log.info("no free rows to measure numbers of threads")
        return True

    def race(self, command: Race) -> None:
        """Send the known speeds of the drafters, or begin to measure them.

        Raises:
            RequestError: No model is loaded, or it isn't calibrated.
        """
        if self._model.speeds:
            self._send_speeds(command)
            return
        if self._model.row_policy.costs is None and not self._waiting:
            raise RequestError("What a step costs is not known.", "Calibrate the model first.")
        self._end_race()
        self._race_command = command

    def pause(self) -> None:
        """Release the rows for a request, which uses the costs measured so far."""
        self._model.pause_thread_measurement()
        if self._race is not None:
            self._race.pause()
        if self._calibration is not None:
            self._calibration.pause()
            if self._calibration.is_usable:
                self._model.use_costs(self._calibration)

    def cancel(self, request_id: str) -> bool:
        """End the race of this request, if there is one."""
        if self._race_command is None or self._race_command.request_id != request_id:
            return False
        self._end_race()
        return True

    def clear(self) -> None:
        """Fail all commands, as the model is unloaded."""
        self._lacks_room = self._rechecks_threads = False
        waiting, self._waiting = self._waiting, []
        self._calibrated = self._calibration = self._incomplete = None
        for command in waiting:
            self._fail(command, _stopped())
        self._end_race()

    def _race_on(self, command: Race) -> None:
        """Run one step of the race; at its end, save and send the speeds."""
        if self._race is None:
            costs = self._model.row_policy.costs
            assert costs is not None  # calibrations run first
            self._race = default_race(self._model.target, costs)
        self._race.advance()
        if self._race.is_done:
            self._model.save_speeds(self._race.speeds)
            self._race = self._race_command = None
            self._send_speeds(command)

    def _end_race(self) -> None:
        """Stop the race, if there is one, and fail its command."""
        command, race = self._race_command, self._race
        self._race_command = self._race = None
        if command is not None:
            self._fail(command, _stopped())
        if race is not None:
            race.pause()

    def _send_speeds(self, command: Race) -> None:
        """Send the known speeds in the order of the drafters."""
        specs = self._model.drafters
        by_name = {speed.name: speed for speed in self._model.speeds}
        speeds = tuple(by_name[spec.name] for spec in specs if spec.name in by_name)
        choices = tuple(spec.choice for spec in specs)
        self._send(Raced(*command.ids, choices, speeds))


def _stopped() -> Cancelled:
    """The error of a command whose measurement is stopped."""
    return Cancelled(tr("This was stopped before it was measured."))
