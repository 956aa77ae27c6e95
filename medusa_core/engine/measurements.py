"""What is measured of the loaded model while nobody is answered: step costs, drafters' speeds."""

from __future__ import annotations

from collections.abc import Callable

from medusa_core.engine.drafter_race import DrafterRace, usual_race
from medusa_core.engine.model_slot import ModelSlot
from medusa_core.errors import Cancelled, RequestError
from medusa_core.messages import (
    Calibrate,
    Calibrated,
    Event,
    GenerateSettings,
    Message,
    Race,
    Raced,
)


class Measurements:
    """Calibrations that wait, and a race of the drafters, which goes on step by step.

    Attributes:
        has_work: Something is to be measured.
    """

    def __init__(
        self,
        model: ModelSlot,
        on_event: Callable[[Event], None],
        on_error: Callable[[Message, BaseException], None],
    ) -> None:
        """Measure nothing yet.

        Args:
            model: What is measured.
            on_event: Gets what was measured.
            on_error: Learns which command failed, and how.
        """
        self._model, self._send, self._fail = model, on_event, on_error
        self._waiting: list[Calibrate] = []
        self._calibrated: Calibrate | None = None
        self._race: tuple[Race, DrafterRace] | None = None

    @property
    def has_work(self) -> bool:
        return bool(self._waiting or self._race)

    def step(self) -> None:
        """One piece of work."""
        if self._waiting:
            command: Calibrate | Race = self._waiting.pop(0)
        elif self._race is not None:
            command = self._race[0]
        else:
            return
        try:
            self.calibrate(command) if isinstance(command, Calibrate) else self._race_on()
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any measurement
            if isinstance(command, Race):
                self._race = None
            self._fail(command, error)

    def wait(self, command: Calibrate) -> None:
        """Calibrate later: measurements need the room that answers have taken."""
        self._waiting.append(command)

    def calibrate(self, command: Calibrate) -> None:
        """Measure what steps cost, if that isn't known, and say so."""
        costs = self._model.measure()
        self._calibrated = command
        step_s = tuple(zip(costs.rows, costs.seconds[0], strict=True))
        ids = (command.session_id, command.request_id)
        self._send(Calibrated(*ids, step_s, costs.plain_s(costs.lengths[0])))
        self._model.send_plan(command, GenerateSettings())

    def refresh(self) -> None:
        """Calibrate again if other programs have left the processor: steps cost something else."""
        if self._model.settle_threads() and self._calibrated is not None:
            self._waiting.append(self._calibrated)

    def race(self, command: Race) -> None:
        """Say what is known of the drafters' speeds, or begin to find it out.

        Raises:
            RequestError: There is no model, or it isn't calibrated.
        """
        target, costs = self._model.target, self._model.tuner.costs
        if self._model.speeds:
            self._send_speeds(command)
            return
        if costs is None:
            raise RequestError("What a step costs is not known.", "Calibrate the model first.")
        self._end_race()
        self._race = (command, usual_race(target, costs))

    def pause(self) -> None:
        """Give back the room that the race takes, for those who ask something."""
        if self._race is not None:
            self._race[1].pause()

    def cancel(self, request_id: str) -> bool:
        """End the race if it was this request that wanted it."""
        if self._race is None or self._race[0].request_id != request_id:
            return False
        self._end_race()
        return True

    def clear(self) -> None:
        """Measure nothing any more: the model goes, and who waits is told."""
        waiting, self._waiting = self._waiting, []
        self._calibrated = None
        for command in waiting:
            self._fail(command, _stopped())
        self._end_race()

    def _race_on(self) -> None:
        assert self._race is not None  # by `step`
        command, race = self._race
        race.advance()
        if race.is_done:
            self._race = None
            self._model.save_speeds(race.speeds)
            self._send_speeds(command)

    def _end_race(self) -> None:
        if self._race is not None:
            command, race = self._race
            self._race = None
            self._fail(command, _stopped())
            race.pause()

    def _send_speeds(self, command: Race) -> None:
        specs = self._model.drafters
        by_name = {speed.name: speed for speed in self._model.speeds}
        speeds = tuple(by_name[spec.name] for spec in specs if spec.name in by_name)
        choices = tuple(spec.choice for spec in specs)
        self._send(Raced(command.session_id, command.request_id, choices, speeds))


def _stopped() -> Cancelled:
    return Cancelled("This was stopped before it was measured.")
