"""The training loop of pretraining and chat tuning: steps, progress, checkpoints, slices."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medusa_core.training.losses import chunked_cross_entropy
from medusa_core.training.network import PebbleNetwork
from medusa_core.training.optimizer import Optimizers
from medusa_core.training.packing import Batch, PackedRows, batch_at, document_mask, document_runs
from medusa_core.training.recipe import Schedule

log = logging.getLogger(__name__)

CHECKPOINT_EVERY_S = 120.0
REPORT_EVERY_S = 10.0

LossFunction = Callable[[Batch], Tensor]


@dataclass(frozen=True, slots=True)
class StageOptions:
    """How one stage runs.

    Attributes:
        checkpoint: file that holds the stage's state.
        seed: of the order of the rows.
        device: where the network is.
        slice_s: stop (with a checkpoint) after this many seconds; None runs to the end.
        compiled: fuse the network with torch.compile.
        bf16: matrix products in bfloat16 (autocast).
    """

    checkpoint: Path
    seed: int
    device: str = "cpu"
    slice_s: float | None = None
    compiled: bool = False
    bf16: bool = True


@dataclass(frozen=True, slots=True)
class StageResult:
    """Where a stage stands after a run: `step` of `num_steps` done, and its last mean loss."""

    step: int
    num_steps: int
    loss: float

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.step >= self.num_steps


def weighted_loss(network: PebbleNetwork, batch: Batch, bf16: bool) -> Tensor:
    """Mean cross-entropy over the weighted targets, in nats; a scalar tensor with gradient."""
    on_cpu = batch.input_ids.device.type == "cpu"
    # many small products are what a processor is good at, and one masked product a GPU
    visible = (document_runs if on_cpu else document_mask)(batch.document_ids)
    with torch.autocast(batch.input_ids.device.type, torch.bfloat16, enabled=bf16):
        hidden = network.hidden_states(batch.input_ids, visible)
    flat_weights = batch.weights.flatten()
    chosen = flat_weights.nonzero().squeeze(1)
    return chunked_cross_entropy(
        hidden.flatten(0, 1)[chosen],
        network.model.embed_tokens.weight,
        batch.target_ids.flatten()[chosen],
        flat_weights[chosen],
        torch.bfloat16 if bf16 else torch.float32,
    )


def run_stage(
    network: PebbleNetwork,
    rows: PackedRows,
    schedule: Schedule,
    options: StageOptions,
    optimizers: Optimizers,
    loss_function: LossFunction,
) -> StageResult:
    """Train one stage, from its checkpoint where there is one.

    Args:
        network: trained in place.
        rows: packed training rows.
        schedule: length, batch size and learning rates.
        options: checkpoint file, seed, slice.
        optimizers: of the network, possibly with state of the stage before.
        loss_function: batch to scalar loss.

    Returns:
        Where the stage stands.
    """
    step = restore(options.checkpoint, network, optimizers)
    meter = Meter(schedule, step)
    started_s = saved_s = time.monotonic()
    while step < schedule.num_steps:
        batch = batch_at(rows, step, schedule.num_rows, schedule.prompt_weight, options.seed)
        loss = loss_function(batch_to(batch, options.device))
        loss.backward()  # type: ignore[no-untyped-call]
        optimizers.step(step)
        step += 1
        meter.add(step, float(loss.detach()))
        now_s = time.monotonic()
        if now_s - saved_s > CHECKPOINT_EVERY_S:
            save(options.checkpoint, network, optimizers, step)
            saved_s = now_s
        if options.slice_s is not None and now_s - started_s > options.slice_s:
            break
    save(options.checkpoint, network, optimizers, step)
    return StageResult(step, schedule.num_steps, meter.loss)


def batch_to(batch: Batch, device: str) -> Batch:
    """The same batch on another device."""
    return Batch(
        batch.input_ids.to(device),
        batch.target_ids.to(device),
        batch.weights.to(device),
        batch.document_ids.to(device),
    )


def save(path: Path, network: PebbleNetwork, optimizers: Optimizers, step: int) -> None:
    """Write a checkpoint; a kill at any moment leaves the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    state = {"step": step, "network": network.state_dict(), "optimizers": optimizers.state_dict()}
    torch.save(state, partial)
    partial.replace(path)


def restore(path: Path, network: PebbleNetwork, optimizers: Optimizers) -> int:
    """Load a checkpoint into both; returns its step, 0 where there is none."""
    if not path.is_file():
        return 0
    state = read_checkpoint(path)
    network.load_state_dict(state["network"])
    optimizers.load_state_dict(state["optimizers"])
    return int(state["step"])


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint's tensors."""
    state: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    return state


class Meter:
    """Progress lines: step, tokens, loss, tokens per second, time left.

    Attributes:
        loss: running mean, in nats per weighted token.
    """

    def __init__(self, schedule: Schedule, step: int) -> None:
        self.loss = float("nan")
        self._schedule = schedule
        self._reported_step = step
        self._reported_s = time.monotonic()

    def add(self, step: int, loss: float) -> None:
        """Count one step; writes a line every few seconds."""
        self.loss = loss if self.loss != self.loss else 0.98 * self.loss + 0.02 * loss
        now_s = time.monotonic()
        if now_s - self._reported_s < REPORT_EVERY_S and step < self._schedule.num_steps:
            return
        per_step_s = (now_s - self._reported_s) / max(1, step - self._reported_step)
        log.info(
            "step %d/%d, %.2f M tokens, loss %.3f, %.0f tokens/s, %.1f min left",
            step,
            self._schedule.num_steps,
            step * self._schedule.tokens_per_step / 1e6,
            self.loss,
            self._schedule.tokens_per_step / max(per_step_s, 1e-9),
            (self._schedule.num_steps - step) * per_step_s / 60,
        )
        self._reported_step, self._reported_s = step, now_s
