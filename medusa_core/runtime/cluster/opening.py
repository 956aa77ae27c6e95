"""Loads a target whose layers other machines compute."""

from __future__ import annotations

import platform
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from medusa_core.messages import WeightFormats
from medusa_core.models.config import ModelConfig
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.backends.native_blocks import native_decoder
from medusa_core.runtime.cluster.connection import Cluster
from medusa_core.runtime.cluster.fingerprint import (
    hash_of_model,
    library_name,
    usable_libraries,
    versions,
)
from medusa_core.runtime.cluster.layer_range import NO_LAYERS
from medusa_core.runtime.cluster.pipeline import Pipeline
from medusa_core.runtime.cluster.protocol import (
    ComputeSettings,
    StageOffer,
)
from medusa_core.runtime.cluster.runner import ClusterRunner
from medusa_core.runtime.cluster.stage_weights import read_share
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import Runner

if TYPE_CHECKING:
    from medusa_core.models.through_transformers.weights import TransformersModel


class Opened(NamedTuple):
    """A loaded target.

    Attributes:
        model: The part on this machine: of a cluster's target, embedding, last norm and lm_head.
        runner: Runs the whole target.
        num_parameters: Parameters of the whole target; tied ones are counted once.
    """

    model: Decoder | TransformersModel
    runner: Runner
    num_parameters: int


def open_on(
    cluster: Cluster,
    files: ModelFiles,
    config: ModelConfig,
    precision: Precision,
    formats: PartFormats,
    formats_wanted: WeightFormats,
    sessions: int,
) -> Opened:
    """Let the machines of a cluster load a target's layers, and load the rest here.

    Args:
        cluster: The machines.
        files: This machine's copy of the model.
        config: Sizes of the target; its context is the planned one.
        precision: Dtypes and device of this machine's part.
        formats: Resolved weight formats.
        formats_wanted: Weight formats as the user set them.
        sessions: Whole contexts at once.

    Raises:
        ClusterError: No machine offers layers, machines differ, or the layers don't fit.
        ModelError: The model can't be used.
    """
    wanted = ComputeSettings(
        formats_wanted,
        precision.name,
        library_name(),
        config.context_tokens,
        sessions,
        token_hex(8),
    )
    ours = StageOffer(
        name="client",
        place=platform.node(),
        model_hash=hash_of_model(files),
        libraries=usable_libraries(),
        versions=versions(precision.device),
        memory_bytes=0,
    )
    pipeline = Pipeline(cluster, ours, wanted, formats.names, config.num_layers)
    try:
        model = read_share(files, config, NO_LAYERS, precision, formats)
    except BaseException:
        pipeline.leave()
        raise
    runner = ClusterRunner(config, model, _runner_of(model, precision), pipeline)
    held = [member.held for member in pipeline.active if member.held is not None]
    return Opened(
        model=model,
        runner=runner,
        num_parameters=model.num_parameters + sum(each.num_parameters for each in held),
    )


def _runner_of(model: Decoder, precision: Precision) -> Runner:
    """Return the runner that computes logits, of the same kind as for the whole model."""
    native = native_decoder(model, precision)
    if native is None:
        return ResidentRunner(model, precision)
    return NativeRunner(model, precision, native)
