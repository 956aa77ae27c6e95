"""The training loop: steps, progress lines, slices."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from medusa_core.training.checkpoint import restore, save
from medusa_core.training.optimizer import Optimizers

log = logging.getLogger(__name__)

CHECKPOINT_EVERY_S = 120.0
REPORT_EVERY_S = 10.0

LossAt = Callable[[int], Tensor]
AfterStep = Callable[[int, float], bool]


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """Length and checkpoint of a training loop.

    Attributes:
        checkpoint: Checkpoint file.
        num_steps: Total steps.
        tokens_per_step: Tokens per step, for progress lines.
        slice_s: Seconds after which to stop with a checkpoint; None to run to the end.
    """

    checkpoint: Path
    num_steps: int
    tokens_per_step: int
    slice_s: float | None = None


@dataclass(frozen=True, slots=True)
class LoopResult:
    """State of a loop: finished and total steps, and the last mean loss."""

    step: int
    num_steps: int
    loss: float

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.step >= self.num_steps


def train(
    module: nn.Module,
    optimizers: Optimizers,
    loss_at: LossAt,
    options: LoopOptions,
    after_step: AfterStep | None = None,
) -> LoopResult:
    """Train a module, starting from its checkpoint if there is one.

    Args:
        module: Module, trained in place.
        loss_at: Returns the loss of a step, which depends on the step alone so that runs can
            resume.
        options: Length and checkpoint.
        after_step: Called with the number of finished steps and the last loss; True stops the
            loop.

    Returns:
        State of the loop.

    Raises:
        TrainingError: The checkpoint is damaged, of another run, or can't be written.
    """
    step = restore(options.checkpoint, module, optimizers)
    meter = Meter(options, step)
    started_s = saved_s = time.monotonic()
    while step < options.num_steps:
        loss = loss_at(step)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizers.step(step)
        step += 1
        meter.add(step, float(loss.detach()))
        stops = after_step is not None and after_step(step, meter.loss)
        now_s = time.monotonic()
        if now_s - saved_s > CHECKPOINT_EVERY_S:
            save(options.checkpoint, module, optimizers, step)
            saved_s = now_s
        if stops or (options.slice_s is not None and now_s - started_s > options.slice_s):
            break
    save(options.checkpoint, module, optimizers, step)
    return LoopResult(step, options.num_steps, meter.loss)


class Meter:
    """Progress lines: step, tokens, loss, tokens per second, time left.

    Attributes:
        loss: Running mean, in nats per weighted token.
    """

    def __init__(self, options: LoopOptions, step: int) -> None:
        self.loss = float("nan")
        self._options = options
        self._reported_step = step
        self._reported_s = time.monotonic()

    def add(self, step: int, loss: float) -> None:
        """Count a step; print a line every few seconds."""
        self.loss = loss if self.loss != self.loss else 0.98 * self.loss + 0.02 * loss
        now_s = time.monotonic()
        num_steps, num_tokens = self._options.num_steps, self._options.tokens_per_step
        if now_s - self._reported_s < REPORT_EVERY_S and step < num_steps:
            return
        per_step_s = (now_s - self._reported_s) / max(1, step - self._reported_step)
        log.info(
            "step %d/%d, %.2f M tokens, loss %.3f, %.0f tokens/s, %.1f min left",
            step,
            num_steps,
            step * num_tokens / 1e6,
            self.loss,
            num_tokens / max(per_step_s, 1e-9),
            (num_steps - step) * per_step_s / 60,
        )
        self._reported_step, self._reported_s = step, now_s
