"""Read a target's decoder from its files or from saved quantized weights, and make its runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from medusa_core.errors import CheckpointError, ClusterError
from medusa_core.i18n import tr
from medusa_core.loading.memory.plan import (
    weights_bytes,
)
from medusa_core.messages import CpuParts, LoadOptions, MemoryPlan
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter import Adapter
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import Precision, precision_of
from medusa_core.models.quant.choice import (
    PartFormats,
)
from medusa_core.models.quantized_cache.folder import (
    QuantizedModels,
    quantized_key,
)
from medusa_core.models.quantized_cache.weights import QuantizedWeights
from medusa_core.models.weights import AfterPart, CheckpointWeights, Keep
from medusa_core.runtime.backends.decoder import Decoder, build_decoder
from medusa_core.runtime.backends.host_mlp import HostParts
from medusa_core.runtime.cluster.connection import Cluster
from medusa_core.runtime.cluster.opening import (
    Opened,
    open_on,
)
from medusa_core.runtime.kv.offloaded.create import create_kv_store
from medusa_core.runtime.offload.store import (
    OffloadStore,
    TierFolder,
)
from medusa_core.runtime.runner.choice import (
    choose_runner,
)
from medusa_core.runtime.runner.runner import LowerTiers
from medusa_core.system.garbage import trim_heap

OnProgress = Callable[[str, float, str], None]
Join = Callable[[str], Cluster]


@dataclass(frozen=True, slots=True)
class DecoderParts:
    """Inputs for reading a decoder.

    Attributes:
        files: Files of the model.
        config: Its configuration, with the planned context.
        precision: Dtypes and device.
        formats: Weight formats of its parts.
        checkpoint: Its tensors.
        adapter: A LoRA adapter, or None.
        host_formats: Formats of what the processor computes beside a card; None if it may not.
    """

    files: ModelFiles
    config: ModelConfig
    precision: Precision
    formats: PartFormats
    checkpoint: Checkpoint
    adapter: Adapter | None
    host_formats: PartFormats | None = None

    @property
    def title(self) -> str:
        """Name of the model's folder or file, for users."""
        return self.files.path.name

    @property
    def weight_files(self) -> frozenset[Path]:
        """Files of the weights and the adapter."""
        return self.checkpoint.files | (frozenset() if self.adapter is None else self.adapter.files)

    @property
    def key(self) -> str:
        """Key of its quantized weights: files and formats."""
        return quantized_key(self.weight_files | self.files.sources, self.formats.names)

    def decoder(
        self, keep: Keep | None, after_part: AfterPart, cpu: CpuParts | None = None
    ) -> Decoder:
        """Read the decoder.

        Args:
            keep: Saves quantized layers; see `CheckpointWeights`.
            after_part: Called after each part; see `CheckpointWeights`.
            cpu: Parts that the processor computes beside a card; None for none.
        """
        weights = CheckpointWeights(
            *(self.checkpoint, self.config, self.precision, self.formats),
            *(keep, after_part, self.adapter),
        )
        host = None if cpu is None else self._host_parts(cpu, after_part)
        return build_decoder(self.config, self.precision, self.checkpoint, weights, host)

    def _host_parts(self, cpu: CpuParts, after_part: AfterPart) -> HostParts:
        """Describe how to read the parts that the processor computes."""
        assert self.host_formats is not None  # else the plan has no such parts
        precision = precision_of(self.host_formats.compute, torch.device("cpu"))
        weights = CheckpointWeights(
            self.checkpoint, self.config, precision, self.host_formats, None, after_part
        )
        return HostParts(frozenset(cpu.layers), weights, precision)


def open_decoder(
    parts: DecoderParts, plan: MemoryPlan, options: LoadOptions, report: OnProgress, join: Join
) -> Opened:
    """Read the weights, on this computer or on other machines, and make their runner.

    Args:
        parts: Inputs for reading them.
        plan: The memory plan with the placement of layers.
        options: The planned load options.
        report: Called with the stage, the fraction done and a text for users.
        join: Connects to the machines at the options' cluster address.

    Raises:
        ModelError: The weights can't be used.
        OutOfMemoryError: The device has no room.
        ClusterError: The machines for its layers can't be used.
        TierError: The disk has no room for layers, or fails.
    """
    if not parts.config.has_native_family:
        return _open_transformers(parts, report)
    if not options.cluster:
        store = offload_store(plan, parts.precision, options, {"files": parts.key})
        model = _read_decoder(parts, plan, options.quantized_dir, store, report)
        report("weights", 1.0, tr("Reading the weights of {0}", parts.title))
        lower = lower_tiers(plan, parts.config, parts.precision, options)
        runner = choose_runner(model, parts.precision, lower)
        return Opened(model, runner, model.num_parameters)
    if parts.adapter is not None:
        raise ClusterError(
            "Adapters can't be used with layers on other machines.",
            "Merge the adapter into the model, and give that to all machines.",
        )
    if not parts.precision.is_standard:
        raise ClusterError(
            "Layers on other machines keep their caches in plain numbers, and attend to all rows.",
            "Leave out --cache-type and --sparse-attention.",
        )
    report("weights", 0.0, tr("Dividing the layers of {0} at {1}", parts.title, options.cluster))
    return open_on(
        join(options.cluster),
        parts.files,
        parts.config,
        parts.precision,
        parts.formats,
        options.formats,
        options.sessions,
    )


def _open_transformers(parts: DecoderParts, report: OnProgress) -> Opened:
    """Open a model that transformers runs; imported only now, as that takes a second."""
    from medusa_core.models.through_transformers.weights import read_transformers_model
    from medusa_core.runtime.runner.transformers import TransformersRunner

    report("weights", 0.0, tr("Reading the weights of {0}", parts.title))
    model = read_transformers_model(parts.files.path, parts.config, parts.precision, parts.formats)
    report("weights", 1.0, tr("Trying what {0} can do", parts.title))
    return Opened(model, TransformersRunner(model, parts.precision), model.num_parameters)


def _read_decoder(
    parts: DecoderParts,
    plan: MemoryPlan,
    quantized_dir: Path | None,
    store: OffloadStore | None,
    report: OnProgress,
) -> Decoder:
    """Read the decoder, from saved quantized weights if there are any."""
    if store is not None:
        return _read_in_tiers(parts, store, report)
    config, formats = parts.config, parts.formats
    text = tr("Reading the weights of {0}", parts.title)
    after_part = _progress(config, formats, text, report)
    if plan.cpu_parts is not None:
        return parts.decoder(None, after_part, plan.cpu_parts)
    is_worth_keeping = not formats.linears.is_dense and not config.quantization
    if quantized_dir is None or not is_worth_keeping:
        return parts.decoder(None, after_part)
    kept = QuantizedModels(quantized_dir)
    if (path := kept.find(parts.key)) is not None:
        try:
            quantized_weights = QuantizedWeights(
                path, config, parts.precision, formats, after_part, parts.checkpoint
            )
            return Decoder(config, parts.precision, quantized_weights)
        except CheckpointError as error:
            kept.discard(path, error)
            after_part = _progress(config, formats, text, report)
    writer = kept.writer(parts.key, weights_bytes(config, formats))
    if writer is None:
        return parts.decoder(None, after_part)
    with writer:
        return parts.decoder(writer.keep, after_part)


def _read_in_tiers(parts: DecoderParts, store: OffloadStore, report: OnProgress) -> Decoder:
    """Read the decoder, and offload layers to memory or disk."""
    config, precision, formats = parts.config, parts.precision, parts.formats
    if store.is_stored:
        text = tr("Finding the layers of {0}", parts.title)
    else:
        text = tr("Storing the layers of {0}", parts.title)
    after_part = _progress(config, formats, text, report)
    weights = CheckpointWeights(
        parts.checkpoint, config, precision, formats, None, after_part, parts.adapter
    )
    with store:
        if store.is_stored:  # unread tensors aren't unknown ones
            model = Decoder(config, precision, store.wrap(weights))
        else:
            model = build_decoder(config, precision, parts.checkpoint, store.wrap(weights))
    trim_heap()  # memory for reading isn't part of the plan
    return model


def offload_store(
    plan: MemoryPlan, precision: Precision, options: LoadOptions, made_from: Mapping[str, object]
) -> OffloadStore | None:
    """The store of offloaded layers; None without any.

    Raises:
        TierError: The disk has no room for them, or can't be written.
    """
    if plan.placement is None:
        return None
    folder = None if options.tier_disk is None else TierFolder(options.tier_disk, made_from)
    return OffloadStore(plan.placement, precision, folder)


def lower_tiers(
    plan: MemoryPlan, config: ModelConfig, precision: Precision, options: LoadOptions
) -> LowerTiers | None:
    """Offloaded KV rows and activations of a target; None if all layers are on the device.

    Raises:
        TierError: KV rows are placed on a disk without a folder.
    """
    placement, folder = plan.placement, options.tier_disk
    if placement is None:
        return None
    policy = options.policy
    sessions = options.sessions if policy is None else policy.num_sequences
    rows = create_kv_store(placement, config, precision, sessions, folder)
    return LowerTiers(placement, rows, folder)


def _progress(
    config: ModelConfig, formats: PartFormats, text: str, report: OnProgress
) -> AfterPart:
    """Report the fraction of the planned bytes that are read, in whole percents."""
    report("weights", 0.0, text)
    total, done, reported = weights_bytes(config, formats), 0, 0

    def after_part(nbytes: int) -> None:
        """Report that `nbytes` more bytes were read."""
        nonlocal done, reported
        done += nbytes
        percents = min(100, 100 * done // total)
        if percents > reported:
            reported = percents
            report("weights", percents / 100, text)

    return after_part
