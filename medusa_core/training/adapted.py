"""A target with a LoRA in training: its decoder, with gradients through frozen weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from medusa_core.errors import TrainingError
from medusa_core.i18n import tr
from medusa_core.messages import WeightFormats
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.checkpoints.header import check_header
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import recurrent_part
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import Precision, choose_device, hardware_of, precision_of
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.runtime.backends.caches import LayerState, PassCache, RowTree, SequenceRows
from medusa_core.runtime.backends.decoder import Decoder, build_decoder
from medusa_core.runtime.runner.rows import additive_mask
from medusa_core.training.frozen import FrozenWeights
from medusa_core.training.lora import LoraModule, LoraSpec
from medusa_core.training.precision import trains_in_bf16

_MAX_ACTIVATION_BYTES = 1 << 30  # per pass; beyond it blocks are recomputed
_NUMBERS_OF_A_ROW = 12  # of hidden and inner width each, kept per row for the backward pass


class _TextCache(PassCache):
    """Cache of a text that is processed as a whole, from empty recurrent states."""

    def __init__(self, config: ModelConfig, precision: Precision) -> None:
        super().__init__(precision.device)
        self._config = config
        self._dtype = torch.promote_types(precision.compute, torch.float32)

    def state(self, layer: int) -> LayerState:
        """Return an empty state of a recurrent layer."""
        shape = recurrent_part(self._config.layers[layer])
        assert shape is not None  # a recurrent layer asks
        sizes = (shape.num_heads, shape.key_dim, shape.value_dim)
        state, tail = (
            torch.zeros(each, dtype=self._dtype, device=self._device)
            for each in (sizes, (shape.conv_width - 1, shape.channels))
        )
        return LayerState(state, tail)


class AdaptedTarget:
    """A target with frozen weights, and the LoRA that is trained.

    Attributes:
        config: Sizes of the target.
        nbytes: Bytes of the frozen weights.
    """

    def __init__(self, config: ModelConfig, precision: Precision, lora: LoraModule) -> None:
        """Prepare without weights, which `read` loads.

        Raises:
            TrainingError: The architecture can't be trained.
        """
        check_family(config)
        self.config = config
        self.lora = lora
        self.nbytes = 0
        self._precision = precision
        self._group = config.num_heads // config.num_kv_heads
        self._decoder: Decoder | None = None

    def read(self, model_checkpoint: Checkpoint, weights: FrozenWeights) -> None:
        """Load the frozen weights.

        Raises:
            CheckpointError: A tensor is missing or has a wrong shape.
        """
        decoder = build_decoder(self.config, self._precision, model_checkpoint, weights)
        self._decoder, self.nbytes = decoder, weights.nbytes

    def states(self, texts: Sequence[Tensor]) -> Tensor:
        """Compute the final states of some texts. int64 [n] each → [all tokens, hidden]"""
        decoder = self._decoder
        assert decoder is not None  # from `read`
        device, scores = self._precision.device, self._precision.scores
        lengths = [len(text) for text in texts]
        positions = torch.cat([torch.arange(length) for length in lengths]).to(device)
        context = decoder.begin(positions, max(lengths))
        sequences, start = [], 0
        for length in lengths:
            visible = torch.ones(length, length, dtype=torch.bool, device=device).tril_()
            mask = additive_mask(visible, 0, self._group, scores) if length > 1 else None
            rows = slice(start, start + length)
            tree = RowTree.chain(length, device)
            sequences.append(
                SequenceRows(rows, mask, _TextCache(self.config, self._precision), tree)
            )
            start += length
        token_ids = torch.cat(list(texts))
        looked_up = decoder.offloaded_vectors(token_ids.tolist())
        brought = None if looked_up is None else looked_up.to(device)
        embedded = decoder.entering(token_ids.to(device), brought, context)
        x = embedded.to(torch.promote_types(embedded.dtype, torch.float32))
        again = torch.is_grad_enabled() and recomputes(self.config, start)
        for index in range(self.config.num_layers):
            block = (index, x, context, sequences)
            if again:
                x = checkpoint(decoder.block, *block, use_reentrant=False)
            else:
                x = decoder.block(*block)
        return decoder.final_norm(x).to(x.dtype)

    def logits(self, states: Tensor) -> Tensor:
        """Compute logits. [n, hidden] → [n, vocabulary]"""
        assert self._decoder is not None  # from `read`
        return self._decoder.logits(states)


def load_adapted(
    model_dir: Path,
    form: LoraSpec,
    quant: str = "",
    device: str = "",
    seed: int = 1,
    dtype: str = "",
) -> AdaptedTarget:
    """Load a target with an untrained LoRA.

    Args:
        model_dir: Folder of the target.
        form: Rank and scale of the LoRA.
        quant: Weight format; empty for the default.
        device: Device; empty for the best one.
        seed: Seed of the LoRA's initial weights.
        dtype: Compute dtype; empty for the default.

    Raises:
        MedusaError: It can't be loaded.
        TrainingError: The architecture can't be trained.
    """
    place = choose_device(device)
    files = ModelFiles.open(model_dir)
    config = files.config
    formats = resolve_formats(WeightFormats(quant), dtype, hardware_of(place), config.stored)
    precision = precision_of(formats.compute, place)
    wide = torch.promote_types(precision.compute, torch.float32)
    products = wide
    if wide == torch.float32 and trains_in_bf16(place.type):
        products = torch.bfloat16
    lora = LoraModule(form, config, wide, seed).to(place)
    target = AdaptedTarget(config, precision, lora)
    opened = files.checkpoint()
    check_header(opened, config)
    weights = FrozenWeights(
        *(opened, config, precision, formats, products),
        lambda part: lora.added_to(part, products),
    )
    target.read(opened, weights)
    return target


def check_family(config: ModelConfig) -> None:
    """Check that the architecture can be trained with a LoRA.

    Raises:
        TrainingError: It can't.
    """
    if not config.has_native_family:
        raise TrainingError(
            tr(
                "Models of type {0} run through transformers, and can't be trained together with "
                "heads.",
                config.model_type,
            ),
            "Leave out --joint: heads alone learn from such a model, too.",
        )
    if config.moe is not None:
        raise TrainingError(
            "Models whose rows pass through experts can't be trained together with heads.",
            "Leave out --joint: heads alone learn from such a model, too.",
        )


def activation_bytes(config: ModelConfig, num_rows: int) -> int:
    """Return about how many bytes one block keeps for the backward pass."""
    width = config.hidden_size + config.intermediate_size
    return 4 * num_rows * _NUMBERS_OF_A_ROW * width


def recomputes(config: ModelConfig, num_rows: int) -> bool:
    """Whether blocks are recomputed in the backward pass (gradient checkpointing)."""
    return config.num_layers * activation_bytes(config, num_rows) > _MAX_ACTIVATION_BYTES
