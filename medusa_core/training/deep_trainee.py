"""What heads that learn from whole texts and tapped layers have in common; see `Trainee`."""

from __future__ import annotations

import json
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

_EACH_TOKENS = 128  # of a text, about: a step reads `batch` of them


class DeepTrainee:
    """See the module."""

    has_trees = False
    module: nn.Module

    def __init__(
        self,
        target: Target,
        config: HeadsConfig,
        token_ids: Tensor | None,
        taps: tuple[int, ...],
    ) -> None:
        """Prepare, without a module.

        Args:
            target: The target; its runner tells of some layers from now on.
            config: Sizes of the training.
            token_ids: That the heads draft from; None for all.
            taps: Those layers.
        """
        sizes, self._device = target.config, target.precision.device
        target.runner.tap(taps)
        self._taps, self._token_ids = taps, token_ids
        self._kept = torch.arange(sizes.vocab_size) if token_ids is None else token_ids
        self._columns = torch.full((sizes.vocab_size,), UNKNOWN)
        self._columns[self._kept] = torch.arange(len(self._kept))
        self._sizes, self.context = sizes, config.context
        self._bf16 = trains_in_bf16(self._device.type)
        self._narrow = torch.bfloat16 if self._bf16 else torch.float32  # of large products
        self.batch = max(2, config.batch // _EACH_TOKENS)
        self.row_bytes = 2 * len(taps) * sizes.hidden_size + 9
        self.state_width = (1 + len(taps)) * sizes.hidden_size

    def shard_of(self, documents: Sequence[EncodedDocument], states: Iterable[Tensor]) -> Shard:
        return deep_texts(documents, states, self._sizes.hidden_size, self.context)

    def num_places(self, shard: Shard) -> int:
        return len(shard["lengths"])

    def parameters(self, learning_rate: float) -> list[dict[str, Any]]:
        return [{"params": list(self.module.parameters()), "lr": learning_rate}]

    def _write(
        self,
        folder: Path,
        base_model: str,
        tensors: Mapping[str, Tensor],
        settings: Mapping[str, object],
    ) -> None:
        """Write a folder as heads are published.

        Args:
            folder: Where.
            base_model: The target's name.
            tensors: As they are published, by their names there.
            settings: What `config.json` says besides what all such heads say.
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
