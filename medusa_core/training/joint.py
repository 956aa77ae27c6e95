"""Joint training of heads and a LoRA of the target (Medusa-2).

The target is regularised by its own output without the LoRA: the answers are its own, and its
states over them are already computed.

Source: Cai et al., "Medusa" (2024), sections 2.2.2 (Medusa-2) and 2.3.2 (self-distillation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from medusa_core.models.lora.adapter_shape import ADAPTER
from medusa_core.models.lora.adapter_writer import write_adapter
from medusa_core.training.adapted import AdaptedTarget
from medusa_core.training.documents import ANSWER, EncodedDocument
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.losses import CHUNK_ROWS
from medusa_core.training.states import Shard
from medusa_core.training.trainee import Trainee

_EACH_TOKENS = 256  # mean tokens per text: a step reads `batch` tokens
_ADAPTER_SHARE = 0.25  # of the heads' learning rate

Scores = Callable[[Tensor], Tensor]


class JointTrainee:
    """Heads, and the LoRA of their target.

    Attributes:
        batch: Texts per step.
        module: All trained parameters.
    """

    def __init__(self, target: AdaptedTarget, trainee: Trainee, config: HeadsConfig) -> None:
        """Prepare to continue the training of heads together with a LoRA.

        Args:
            target: The target with the LoRA.
            trainee: Trained heads.
            config: Configuration of the run.
        """
        self._target, self._trainee, self._config = target, trainee, config
        self.batch = texts_per_step(config)
        self.module = nn.ModuleDict({"heads": trainee.module, "lora": target.lora})

    def num_texts(self, documents: Sequence[EncodedDocument]) -> int:
        """Return the number of documents with answers."""
        return len(_texts(documents))

    def loss(
        self, documents: Sequence[EncodedDocument], shard: Shard, texts: Tensor, progress: float
    ) -> Tensor:
        """Return the loss of the target's divergence plus that of the heads, in nats.

        Args:
            documents: Documents of the shard.
            shard: States of the target without the LoRA.
            texts: Indices among the documents with answers. [n]
            progress: Finished share of the training.
        """
        rows, states = self._read(documents, shard, texts)
        teacher = rows["hidden"].to(states.device, states.dtype)
        kept = divergence(states, teacher, self._target.logits)
        heads = self._trainee.loss({**rows, "hidden": states}, torch.arange(len(states)))
        return kept + heads_weight(self._config.heads_weight, progress) * heads

    @torch.no_grad()
    def adapted(
        self, documents: Sequence[EncodedDocument], shard: Shard, most: int | None = None
    ) -> Shard:
        """Return training data with the LoRA, of all documents or of about `most` samples."""
        parts, count = [], 0
        for texts in torch.split(torch.arange(self.num_texts(documents)), self.batch):
            if most is not None and count >= most:
                break
            rows, states = self._read(documents, shard, texts)
            parts.append({**rows, "hidden": states.to("cpu", torch.bfloat16)})
            count += len(states)
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def parameters(self, learning_rate: float) -> list[dict[str, Any]]:
        """Return parameter groups; the heads' learning rate is four times the LoRA's."""
        own = list(self._target.lora.parameters())
        groups = self._trainee.parameters(learning_rate)
        return [*groups, {"params": own, "lr": learning_rate * _ADAPTER_SHARE}]

    def write(self, folder: Path, base_model: str) -> None:
        """Write the LoRA beside the heads."""
        lora = self._target.lora
        write_adapter(folder / ADAPTER, lora.matrices(), lora.form.alpha, base_model)

    def _read(
        self, documents: Sequence[EncodedDocument], shard: Shard, texts: Tensor
    ) -> tuple[Shard, Tensor]:
        """Return the rows of a shard that belong to some texts, and their states with the LoRA."""
        found = _texts(documents)
        starts = np.cumsum([0, *((text.kinds[1:] == ANSWER).sum() for text in found)]).tolist()
        assert starts[-1] == len(shard["places"])  # the shard's samples are of these documents
        wanted, ids, places, first = [], [], [], 0
        for text in texts.tolist():
            span = torch.arange(starts[text], starts[text + 1])
            own = shard["places"][span]
            whole = torch.from_numpy(found[text].ids.astype(np.int64))
            ids.append(whole[: int(own[-1])])  # inputs up to the last sample
            wanted.append(span)
            places.append(own - 1 + first)
            first += len(ids[-1])
        chosen = torch.cat(wanted)
        rows = {name: tensor[chosen] for name, tensor in shard.items()}
        states = self._target.states(ids)
        return rows, states[torch.cat(places).to(states.device)]


def texts_per_step(config: HeadsConfig) -> int:
    """Return the number of texts per step."""
    return max(1, config.batch // _EACH_TOKENS)


def _texts(documents: Sequence[EncodedDocument]) -> list[EncodedDocument]:
    """Return the documents that have samples; see `positions.collect`."""
    return [document for document in documents if (document.kinds[1:] == ANSWER).any()]


def heads_weight(max_weight: float, progress: float) -> float:
    """Return the weight of the heads' loss, which rises as half a sine over the training."""
    return max_weight * math.sin(math.pi / 2 * min(1.0, progress))


def divergence(states: Tensor, teacher: Tensor, logits: Scores) -> Tensor:
    """Return the mean Kullback-Leibler divergence of two states' distributions, in nats.

    Args:
        states: States of the trained target. [n, hidden]
        teacher: States of the original target. [n, hidden]
        logits: Projects states to logits.

    Returns:
        A scalar with a gradient for `states`.
    """

    def some(states: Tensor, teacher: Tensor) -> Tensor:
        """Return the divergence of some positions; summed so that chunks add up."""
        with torch.no_grad():
            wanted = torch.log_softmax(logits(teacher), dim=-1)
        found = torch.log_softmax(logits(states), dim=-1)
        return (wanted.exp() * (wanted - found)).sum()

    total = states.new_zeros(())
    for start in range(0, len(states), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        # Logits are recomputed: those of all rows would take more memory than all else.
        total = total + checkpoint(some, states[part], teacher[part], use_reentrant=False)
    return total / len(states)
