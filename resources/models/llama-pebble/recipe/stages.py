"""The two stages that train the network's weights: pretraining and chat tuning."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from medusa_core.training.checkpoint import read_checkpoint
from medusa_core.training.loop import LoopOptions, LoopResult, train
from medusa_core.training.losses import chunked_cross_entropy
from medusa_core.training.optimizer import Optimizers
from recipe.attention import document_mask, document_runs
from recipe.muon import network_optimizers
from recipe.network import PebbleNetwork, initialise
from recipe.packing import Batch, PackedRows, batch_at
from recipe.recipe import Recipe, Schedule


@dataclass(frozen=True, slots=True)
class StageOptions:
    """How one stage runs.

    Attributes:
        run_dir: holds rows and checkpoints.
        device: where the network is.
        slice_s: stop (with a checkpoint) after this many seconds; None runs to the end.
        compiled: fuse the network with torch.compile.
        bf16: matrix products in bfloat16 (autocast).
    """

    run_dir: Path
    device: str = "cpu"
    slice_s: float | None = None
    compiled: bool = False
    bf16: bool = True


def pretrain(recipe: Recipe, options: StageOptions) -> LoopResult:
    """Pretraining: from seeded weights, or from the stage's checkpoint, to its last step."""
    network = PebbleNetwork(recipe.size)
    initialise(network, recipe.seed)
    network.to(options.device)
    optimizers = network_optimizers(network, recipe.pretrain)
    return _train("pretrain", network, optimizers, recipe.pretrain, recipe.seed, options)


def tune(recipe: Recipe, options: StageOptions) -> LoopResult:
    """Chat tuning: from pretraining's checkpoint (weights and momenta), or from its own."""
    network = PebbleNetwork(recipe.size).to(options.device)
    optimizers = network_optimizers(network, recipe.tune)
    state = read_checkpoint(options.run_dir / "pretrain.pt")
    network.load_state_dict(state["module"])
    optimizers.load_state_dict(state["optimizers"])
    return _train("tune", network, optimizers, recipe.tune, recipe.seed, options)


def _train(
    name: str,
    network: PebbleNetwork,
    optimizers: Optimizers,
    schedule: Schedule,
    seed: int,
    options: StageOptions,
) -> LoopResult:
    """Train one stage on its rows."""
    rows = PackedRows.load(options.run_dir / f"{name}.npz")
    if options.compiled:
        network.model.compile_blocks()

    def loss_at(step: int) -> Tensor:
        batch = batch_at(rows, step, schedule.num_rows, schedule.prompt_weight, seed)
        return weighted_loss(network, batch.to(options.device), options.bf16)

    checkpoint = options.run_dir / f"{name}.pt"
    length = LoopOptions(checkpoint, schedule.num_steps, schedule.tokens_per_step, options.slice_s)
    return train(network, optimizers, loss_at, length)


def load_network(recipe: Recipe, checkpoint: Path) -> PebbleNetwork:
    """The network of a checkpoint, on the CPU, ready for inference."""
    network = PebbleNetwork(recipe.size)
    network.load_state_dict(read_checkpoint(checkpoint)["module"])
    return network.eval()


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
