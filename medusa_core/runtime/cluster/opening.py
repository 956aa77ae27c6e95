"""A target whose layers a cluster has."""

from __future__ import annotations

import platform
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from medusa_core.messages import WeightFormats
from medusa_core.models.config import ModelConfig
from medusa_core.models.decoder import Decoder
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.runtime.cluster.connection import Cluster
from medusa_core.runtime.cluster.fingerprint import (
    hash_of_model,
    libraries_here,
    library_name,
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
from medusa_core.runtime.runner.compiled_decoder import native_decoder
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import Runner

if TYPE_CHECKING:
    from medusa_core.models.through_transformers.weights import TransformersModel


class Opened(NamedTuple):
    """A target that has been read.

    Attributes:
        model: What of it lies here; where its layers are elsewhere, token vectors, the last norm
            and the projection.
        runner: Runs the whole.
        num_parameters: Of the whole; tied ones counted once.
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
    """Let the machines of a cluster read a target's layers, and read the rest here.

    Args:
        cluster: The machines.
        files: This machine's own copy of the model.
        config: Its sizes; the context is what was planned for.
        precision: What is computed in, and where this machine's part runs.
        formats: Weight formats of its parts, as they are settled here.
        formats_wanted: Those that were asked for.
        sessions: Conversations that have room for a whole context at once.

    Raises:
        ClusterError: Nobody offers layers, machines differ, or the layers don't fit.
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
        libraries=libraries_here(),
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
    """What projects states: as the whole model's runner would."""
    native = native_decoder(model, precision)
    if native is None:
        return ResidentRunner(model, precision)
    return NativeRunner(model, precision, native)
