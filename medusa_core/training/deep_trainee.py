"""Base class of heads that are trained on whole texts and tapped layers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from medusa_core.loading.target import Target
from medusa_core.training.accuracy import UNKNOWN
from medusa_core.training.deep_texts import deep_texts
from medusa_core.training.documents import EncodedDocument
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.precision import trains_in_bf16
from medusa_core.training.states import Shard

_TEXTS_AT_ONCE = 8  # in evaluation
_EACH_TOKENS = 128  # mean tokens per text: a step reads `batch` tokens


class DeepTrainee(ABC):
    """Heads that read tapped layers; see `Trainee`."""

    has_trees = False
    module: nn.Module

    def __init__(
        self,
        target: Target,
        config: HeadsConfig,
        token_ids: Tensor | None,
        taps: tuple[int, ...],
    ) -> None:
        """Prepare without a module.

        Args:
            target: The target, whose runner returns the inputs of `taps` from now on.
            config: Configuration of the run.
            token_ids: Draft vocabulary; None for all tokens.
            taps: Tapped layers.
        """
        sizes, self._device = target.config, target.precision.device
        target.runner.tap(taps)
        self._taps, self._token_ids = taps, token_ids
        self._kept = torch.arange(sizes.vocab_size) if token_ids is None else token_ids
        self._columns = torch.full((sizes.vocab_size,), UNKNOWN)
        self._columns[self._kept] = torch.arange(len(self._kept))
        self._sizes, self.context = sizes, config.context
        self._bf16 = trains_in_bf16(self._device.type)
        self._narrow = torch.bfloat16 if self._bf16 else torch.float32  # dtype of large products
        self.batch = max(2, config.batch // _EACH_TOKENS)
        self.row_bytes = 2 * len(taps) * sizes.hidden_size + 9
        self.state_width = (1 + len(taps)) * sizes.hidden_size

    def shard_of(self, documents: Sequence[EncodedDocument], states: Iterable[Tensor]) -> Shard:
        """Return whole texts with the inputs of tapped layers at every token."""
        return deep_texts(documents, states, self._sizes.hidden_size, self.context)

    def num_samples(self, shard: Shard) -> int:
        """Return the number of texts."""
        return len(shard["lengths"])

    @torch.inference_mode()
    def ranks(self, shard: Shard, num_ranks: int, most: int | None = None) -> Tensor:
        """Return the rank at which each depth held the true later token, a few texts at a time."""
        parts: list[Tensor] = []
        for texts in torch.split(torch.arange(len(shard["lengths"])), _TEXTS_AT_ONCE):
            if most is not None and sum(map(len, parts)) >= most:
                break
            parts.append(self._ranks(shard, texts, num_ranks).cpu())
        return torch.cat(parts)

    @abstractmethod
    def _ranks(self, shard: Shard, texts: Tensor, num_ranks: int) -> Tensor:
        """Return `ranks` of some texts. [samples, depths]"""

    def parameters(self, learning_rate: float) -> list[dict[str, Any]]:
        """Return all parameters with one learning rate."""
        return [{"params": list(self.module.parameters()), "lr": learning_rate}]

    def _write(
        self,
        folder: Path,
        base_model: str,
        tensors: Mapping[str, Tensor],
        settings: Mapping[str, object],
    ) -> None:
        """Write heads in their published layout.

        Args:
            folder: Destination.
            base_model: Name of the target.
            tensors: Tensors by published name.
            settings: Additional settings of `config.json`.
        """
        named = dict(tensors)
        if self._token_ids is not None:
            named["d2t"] = self._token_ids - torch.arange(len(self._token_ids))
        config = {
            "base_model_name_or_path": base_model,
            "hidden_act": "silu",
            "max_position_embeddings": self.context,
            "vocab_size": self._sizes.vocab_size,
            "draft_vocab_size": len(self._kept),
            "torch_dtype": "bfloat16",
            **settings,
        }
        save_file(named, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
