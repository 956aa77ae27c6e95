"""The two stages that train the network's weights: pretraining and chat tuning."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from medusa_core.training.loop import (
    StageOptions,
    StageResult,
    read_checkpoint,
    run_stage,
    weighted_loss,
)
from medusa_core.training.network import PebbleNetwork, initialise
from medusa_core.training.optimizer import Optimizers
from medusa_core.training.packing import Batch, PackedRows
from medusa_core.training.recipe import Recipe


def pretrain(recipe: Recipe, run_dir: Path, options: StageOptions) -> StageResult:
    """Pretraining: from seeded weights, or from the stage's checkpoint, to its last step."""
    network = PebbleNetwork(recipe.size)
    initialise(network, recipe.seed)
    network.to(options.device)
    rows = PackedRows.load(run_dir / "pretrain.npz")
    optimizers = Optimizers(network, recipe.pretrain)
    loss = loss_function(network, options)
    return run_stage(network, rows, recipe.pretrain, options, optimizers, loss)


def tune(recipe: Recipe, run_dir: Path, start: Path, options: StageOptions) -> StageResult:
    """Chat tuning: from pretraining's checkpoint (weights and momenta), or from its own."""
    network = PebbleNetwork(recipe.size).to(options.device)
    state = read_checkpoint(start)
    network.load_state_dict(state["network"])
    rows = PackedRows.load(run_dir / "tune.npz")
    optimizers = Optimizers(network, recipe.tune)
    optimizers.load_state_dict(state["optimizers"])
    loss = loss_function(network, options)
    return run_stage(network, rows, recipe.tune, options, optimizers, loss)


def load_network(recipe: Recipe, checkpoint: Path) -> PebbleNetwork:
    """The network of a checkpoint, on the CPU, ready for inference."""
    network = PebbleNetwork(recipe.size)
    network.load_state_dict(read_checkpoint(checkpoint)["network"])
    return network.eval()


class LossFunction:
    """Batch to loss, with the network's trunk compiled where that was asked for."""

    def __init__(self, network: PebbleNetwork, options: StageOptions) -> None:
        self._network = network
        self._bf16 = options.bf16
        if options.compiled:
            network.model.compile_blocks()

    def __call__(self, batch: Batch) -> Tensor:
        return weighted_loss(self._network, batch, self._bf16)


def loss_function(network: PebbleNetwork, options: StageOptions) -> LossFunction:
    """The loss of a stage."""
    return LossFunction(network, options)
