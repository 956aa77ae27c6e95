"""What is measured between answers, and in which order."""

from typing import Any, cast

from medusa_core.engine.measurements import Measurements
from medusa_core.engine.model_slot import ModelSlot
from medusa_core.messages import Calibrate


class MeasuredModel:
    """A model whose threads are measured in three pieces, from the start after each pause."""

    knows_costs = False

    def __init__(self) -> None:
        self.noted: list[str] = []
        self._pieces = 3

    @property
    def threads_are_due(self) -> bool:
        return self._pieces > 0

    def measure_threads(self) -> bool:
        self.noted.append("threads")
        self._pieces -= 1
        return False

    def pause_thread_measurement(self) -> None:
        if self._pieces:
            self._pieces = 3

    def begin_calibration(self, **_: Any) -> None:
        self.noted.append("costs")
        raise RuntimeError("only the order is tested")


def test_threads_are_measured_before_costs_if_an_answer_comes_between() -> None:
    model = MeasuredModel()
    work = Measurements(
        cast(ModelSlot, model), lambda _: None, lambda *_: None, has_sessions=lambda: False
    )
    work.wait(Calibrate("session", "request"))
    work.step()
    work.pause()
    work.retry()
    while work.has_work:
        work.step()
    assert model.noted == [*["threads"] * 4, "costs"]
