"""Heads and a LoRA that learn together: the target may move towards what heads can guess.

What holds it is that with the LoRA it shall say what it says without: the answers are its own, and
its states over them without the LoRA are there already.

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

_EACH_TOKENS = 256  # of a text, about: a step reads `batch` of them
_ADAPTER_SHARE = 0.25  # of the heads' learning rate

Scores = Callable[[Tensor], Tensor]


class JointTrainee:
    """Heads, and the LoRA of their target.

    Attributes:
        batch: Texts of a step.
        module: What learns.
    """

    def __init__(self, target: AdaptedTarget, trainee: Trainee, config: HeadsConfig) -> None:
        """Let a trainee's heads go on together with a LoRA.

        Args:
            target: With the LoRA.
            trainee: Its heads have learned already.
            config: Of the training.
        """
        self._target, self._trainee, self._config = target, trainee, config
        self.batch = texts_of_a_step(config)
        self.module = nn.ModuleDict({"heads": trainee.module, "lora": target.lora})

    def num_texts(self, documents: Sequence[EncodedDocument]) -> int:
        """Texts to learn from among some documents: those with answers."""
        return len(_texts(documents))

    def loss(
        self, documents: Sequence[EncodedDocument], shard: Shard, texts: Tensor, progress: float
    ) -> Tensor:
        """What it costs that the target says other things, and that heads guess wrong. In nats.

        Args:
            documents: Those of the shard.
            shard: What the target makes of them without the LoRA.
            texts: Which of the documents with answers. [n]
            progress: Share of the training that is done.
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
        """What the target makes of documents with the LoRA: of all, or of about `most` places."""
        parts, count = [], 0
        for texts in torch.split(torch.arange(self.num_texts(documents)), self.batch):
            if most is not None and count >= most:
                break
            rows, states = self._read(documents, shard, texts)
            parts.append({**rows, "hidden": states.to("cpu", torch.bfloat16)})
            count += len(states)
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def parameters(self, learning_rate: float) -> list[dict[str, Any]]:
        """Groups of parameters; heads learn four times as fast as the LoRA."""
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
        """Rows of a shard that belong to some texts, and their states with the LoRA."""
        found = _texts(documents)
        starts = np.cumsum([0, *((text.kinds[1:] == ANSWER).sum() for text in found)]).tolist()
        assert starts[-1] == len(shard["places"])  # they are of these documents
        wanted, ids, places, first = [], [], [], 0
        for text in texts.tolist():
            span = torch.arange(starts[text], starts[text + 1])
            own = shard["places"][span]
            whole = torch.from_numpy(found[text].ids.astype(np.int64))
            ids.append(whole[: int(own[-1])])  # what comes before the last place
            wanted.append(span)
            places.append(own - 1 + first)
            first += len(ids[-1])
        chosen = torch.cat(wanted)
        rows = {name: tensor[chosen] for name, tensor in shard.items()}
        states = self._target.states(ids)
        return rows, states[torch.cat(places).to(states.device)]


def texts_of_a_step(config: HeadsConfig) -> int:
    """Texts that a step reads."""
    return max(1, config.batch // _EACH_TOKENS)


def _texts(documents: Sequence[EncodedDocument]) -> list[EncodedDocument]:
    """Documents that places were taken of; see `positions.collect`."""
    return [document for document in documents if (document.kinds[1:] == ANSWER).any()]


def heads_weight(most: float, progress: float) -> float:
    """What the heads' loss weighs: half a sine's rise to the most, over the whole training."""
    return most * math.sin(math.pi / 2 * min(1.0, progress))


def divergence(states: Tensor, teacher: Tensor, logits: Scores) -> Tensor:
    """Mean Kullback-Leibler divergence of what states say from what others say, in nats.

    Args:
        states: Of the target as it learns. [n, hidden]
        teacher: Of the target as it was. [n, hidden]
        logits: The scores behind states.

    Returns:
        A scalar with a gradient for `states`.
    """

    def some(states: Tensor, teacher: Tensor) -> Tensor:
        with torch.no_grad():
            wanted = torch.log_softmax(logits(teacher), dim=-1)
        found = torch.log_softmax(logits(states), dim=-1)
        return (wanted.exp() * (wanted - found)).sum()

    total = states.new_zeros(())
    for start in range(0, len(states), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        # Scores aren't kept: those of all rows would take more than all else.
        total = total + checkpoint(some, states[part], teacher[part], use_reentrant=False)
    return total / len(states)
