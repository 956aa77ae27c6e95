"""Training of Hydra heads, which read the drafts before their own; see `Trainee`.

A head adds to the target's state an MLP of that state and the embeddings of root and path; all
heads share one projection, rows of the target's. The loss is the overlap of a head's distribution
with the target's after the same tokens, which the target's states at later positions give.

Source: Ankner et al., "Hydra" (2024), section 3.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from medusa_core.errors import TrainingError
from medusa_core.heads.head_files import HeadFiles, open_head_files
from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.runtime.backends.decoder import scaled_logits
from medusa_core.training.accuracy import UNKNOWN, ranks_of
from medusa_core.training.documents import EncodedDocument
from medusa_core.training.heads import LOSS_DECAY, projection_matrix, published
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.losses import chunked_overlap
from medusa_core.training.positions import has_answer, positions_of
from medusa_core.training.precision import trains_in_bf16
from medusa_core.training.states import Shard

_AT_ONCE = 1024
_NUM_TEACHER = 16  # the target's most likely tokens at each position
_TEACHER_TEMPERATURE = 0.5  # drafts are accepted where they equal a token, mostly the likeliest
_DROPPED = 0.1  # dropout of the input: answers are few


class HydraModule(nn.Module):
    """Heads of one layer each.

    Attributes:
        lm_head: Rows of the target's output projection, frozen. [columns, hidden]
        vectors: The target's token embeddings, frozen. [vocabulary, hidden]
    """

    def __init__(self, num_heads: int, lm_head: Tensor, vectors: Tensor, scale: float) -> None:
        """Initialize untrained heads.

        Args:
            num_heads: Number of heads.
            lm_head: Output projection.
            vectors: The target's token embeddings.
            scale: Factor of embeddings, so that their norm matches a state's.
        """
        super().__init__()
        self.lm_head: Tensor
        self.vectors: Tensor
        self.register_buffer("lm_head", lm_head, persistent=False)
        self.register_buffer("vectors", vectors, persistent=False)
        self._scale, width = scale, lm_head.shape[1]
        self.layers = nn.ModuleList(
            nn.Linear((head + 2) * width, width) for head in range(num_heads)
        )
        for parameter in self.layers.parameters():
            nn.init.zeros_(parameter)

    def state_of(self, head: int, hidden: Tensor, paths: Tensor) -> Tensor:
        """Run the layer of a head.

        Args:
            head: Index of the head.
            hidden: The target's states. [N, hidden]
            paths: Root and drafts. [N, head + 1]

        Returns:
            Input of the projection. [N, hidden]
        """
        vectors = self.vectors[paths.to(self.vectors.device)].to(hidden) * self._scale
        read = torch.cat([hidden, vectors.flatten(1)], dim=1)
        read = F.dropout(read, _DROPPED, self.training)
        return hidden + F.silu(self.layers[head](read))

    def tensors(self) -> dict[str, Tensor]:
        """Return the layers as published, in bfloat16 and for unscaled embeddings."""
        found = {}
        for head, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Linear)
            weight = layer.weight.detach().clone()
            weight[:, layer.out_features :] *= self._scale
            found[f"hydra_mlp.{head}.0.linear.weight"] = published(weight)
            found[f"hydra_mlp.{head}.0.linear.bias"] = published(layer.bias)
        return found

    def load(self, checkpoint: Checkpoint) -> None:
        """Read layers that were written by `tensors`."""
        for head, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Linear)
            weight = checkpoint.floats(f"hydra_mlp.{head}.0.linear.weight", torch.float32)
            weight[:, layer.out_features :] /= self._scale
            layer.weight.data.copy_(weight)
            layer.bias.data.copy_(checkpoint.floats(f"hydra_mlp.{head}.0.linear.bias", None))


def open_trained(config: HeadsConfig, sizes: ModelConfig) -> HeadFiles:
    """Open the heads that training starts from.

    Args:
        config: Configuration of the run.
        sizes: Configuration of the target.

    Raises:
        CheckpointError: A file is missing or damaged.
        HeadsError: There are no heads.
        TrainingError: They weren't trained by this program, or for another model or number of
            heads.
    """
    files, width = open_head_files(Path(config.from_heads)), sizes.hidden_size
    layers = {
        f"hydra_mlp.{head}.0.linear.weight": (width, (head + 2) * width)
        for head in range(config.num_heads)
    }
    found = {name: shape for name, shape in files.shapes.items() if name.endswith("linear.weight")}
    is_whole = "token_map" in files.shapes and found == layers
    if not is_whole or int(files.checkpoint.integers("token_map").max()) >= sizes.vocab_size:
        raise TrainingError(
            tr(
                "{0} doesn't hold {1} Hydra heads that this program trained for this model.",
                config.from_heads,
                config.num_heads,
            ),
            "Name other heads with --from, their number with --num-heads, or leave out --from.",
        )
    return files


class HydraTrainee:
    """Hydra heads in training."""

    has_trees = False

    def __init__(self, target: Target, config: HeadsConfig, token_ids: Tensor | None) -> None:
        """Initialize untrained heads.

        Args:
            target: The target, which isn't changed.
            config: Configuration of the run.
            token_ids: Draft vocabulary; None for all tokens.
        """
        sizes, device = target.config, target.precision.device
        vectors = target.shared_weights.embedding.matrix()
        # States after the final norm have about the norm of a vector of ones.
        size = float(vectors[:4096].float().pow(2).mean().sqrt())
        matrix = projection_matrix(target)
        self._token_ids = torch.arange(sizes.vocab_size) if token_ids is None else token_ids
        self._columns = torch.full((sizes.vocab_size,), UNKNOWN)
        self._columns[self._token_ids] = torch.arange(len(self._token_ids))
        lm_head = matrix[self._token_ids.to(matrix.device)]
        heads = HydraModule(config.num_heads, lm_head, vectors, 1.0 / max(size, 1e-6))
        self.module = heads.to(device)
        self._device, self.context = device, sizes.context_tokens
        self._config = sizes
        self._is_tied = sizes.tie_embeddings
        self._bf16 = trains_in_bf16(device.type)
        self.batch = config.batch
        self.state_width = sizes.hidden_size
        self._num_teacher = min(_NUM_TEACHER, len(self._token_ids))
        self.row_bytes = 2 * sizes.hidden_size + 8 * (config.num_heads + 3) + 6 * self._num_teacher

    @classmethod
    def from_heads(cls, target: Target, config: HeadsConfig) -> HydraTrainee:
        """Start from trained heads, with their draft vocabulary.

        Raises:
            TrainingError: They have other sizes; see `open_trained`.
        """
        checkpoint = open_trained(config, target.config).checkpoint
        trainee = cls(target, config, checkpoint.integers("token_map"))
        trainee.module.load(checkpoint)
        return trainee

    def shard_of(self, documents: Sequence[EncodedDocument], states: Iterable[Tensor]) -> Shard:
        """Return the states at positions in answers, with the tokens after them."""
        pairs = [pair for pair in zip(documents, states, strict=True) if has_answer(pair[0])]
        found, known = [document for document, _ in pairs], (own for _, own in pairs)
        some = positions_of(found, known, len(self.module.layers), self.context)
        hidden = some.hidden[:, : self.state_width].contiguous()
        teacher_columns, teacher_chances = self._teacher_of(hidden)
        return {
            "hidden": hidden,
            "teacher_columns": teacher_columns,
            "teacher_chances": teacher_chances,
            "paths": torch.cat([some.roots[:, None], some.targets], dim=1),
            "places": some.places,
            "seeds": some.seeds,
        }

    def num_samples(self, shard: Shard) -> int:
        """Return the number of positions."""
        return len(shard["paths"])

    def loss(self, shard: Shard, places: Tensor) -> Tensor:
        """Return the discounted sum of the heads' losses.

        Weights by the probability that the earlier drafts are right were tried: no head was right
        more often after right ones.
        """
        total = torch.zeros((), device=self._device)
        hidden, paths = self._rows(shard, places)
        dtype = torch.bfloat16 if self._bf16 else torch.float32
        for head in range(len(self.module.layers)):
            wanted = self._wanted(paths, head)
            known = wanted >= 0
            if not bool(known.any()):
                continue
            with torch.autocast(self._device.type, torch.bfloat16, enabled=self._bf16):
                state = self.module.state_of(head, hidden[known], paths[known, : head + 1])
            some = places[known.to(places.device)]
            columns, chances = self._teacher_at(shard, some, head, wanted[known])
            loss = chunked_overlap(state, self.module.lm_head, columns, chances, dtype)
            total = total + LOSS_DECAY**head * loss
        return total

    @torch.inference_mode()
    def ranks(self, shard: Shard, num_ranks: int, most: int | None = None) -> Tensor:
        """Return the rank at which each head held the true later token."""
        count = len(shard["paths"]) if most is None else min(most, len(shard["paths"]))
        parts = []
        self.module.eval()
        for places in torch.split(torch.arange(count), _AT_ONCE):
            hidden, paths = self._rows(shard, places)
            found = []
            for head in range(len(self.module.layers)):
                state = self.module.state_of(head, hidden, paths[:, : head + 1].clamp(min=0))
                scores = F.linear(state, self.module.lm_head.to(state.dtype))
                rank = ranks_of(self._wanted(paths, head), scores, num_ranks)
                found.append(torch.where(paths[:, head + 1] < 0, UNKNOWN, rank))
            parts.append(torch.stack(found, dim=1).cpu())
        self.module.train()
        return torch.cat(parts)

    def parameters(self, learning_rate: float) -> list[dict[str, Any]]:
        """Return all parameters with one learning rate."""
        return [{"params": list(self.module.parameters()), "lr": learning_rate}]

    def write(self, folder: Path, base_model: str) -> str:
        """Write the heads in Hydra's layout."""
        tensors = {**self.module.tensors(), "token_map": self._token_ids}
        if not self._is_tied:  # tied ones are rows of the target's embeddings
            tensors["lm_head.weight"] = published(self.module.lm_head)
        config = {
            "base_model_name_or_path": base_model,
            "hydra_num_heads": len(self.module.layers),
            "hydra_num_layers": 1,
            "hydra_head_arch": "mlp",
            "grounded_heads": True,
        }
        save_file(tensors, folder / "hydra_lm_head.safetensors", metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        return "hydra"

    def _rows(self, shard: Shard, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return states and paths of some samples. float32 [n, hidden], int64 [n, heads + 1]"""
        hidden = shard["hidden"]
        hidden = hidden[places.to(hidden.device)].to(self._device).float()
        return hidden, shard["paths"][places].to(self._device)

    @torch.inference_mode()
    def _teacher_of(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return the target's most likely columns after each state, and their probabilities.

        Only draft tokens count; the probabilities, at a low temperature, add up to 1. int32 and
        float16 [n, K]
        """
        matrix, parts = self.module.lm_head, []
        dtype = torch.bfloat16 if self._bf16 else torch.float32
        for some in torch.split(hidden.to(self._device, dtype), _AT_ONCE):
            scores, columns = F.linear(some, matrix.to(dtype)).topk(self._num_teacher)
            logits = scaled_logits(scores.float(), self._config)
            chances = torch.softmax(logits / _TEACHER_TEMPERATURE, -1)
            parts.append((columns.int().cpu(), chances.half().cpu()))
        return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])

    def _teacher_at(
        self, shard: Shard, samples: Tensor, head: int, wanted: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the target's distribution of the token that a head drafts.

        The last token of an answer, which no sample follows, has probability 1.

        Args:
            shard: The shard.
            samples: Samples with such a token. int64 [n]
            head: Index of the head.
            wanted: Column of the token. [n]

        Returns:
            Columns and probabilities. int64 and float32 [n, K]
        """
        ahead, roots = 1 + head, shard["paths"][:, 0]
        later = (samples + ahead).clamp(max=len(roots) - 1)
        is_last = shard["places"][later] != shard["places"][samples] + ahead
        is_last |= roots[later] != shard["paths"][samples, ahead]  # it belongs to another answer
        columns = shard["teacher_columns"][later].to(self._device).long()
        chances = shard["teacher_chances"][later].to(self._device).float()
        is_last = is_last.to(self._device)
        chances[is_last] = 0.0
        chances[is_last, 0] = 1.0
        columns[is_last, 0] = wanted[is_last]
        return columns, chances

    def _wanted(self, paths: Tensor, head: int) -> Tensor:
        """Return a head's target column; negative if there is none. [n]"""
        wanted = paths[:, head + 1]
        columns = self._columns.to(wanted.device)[wanted.clamp(min=0)]
        return torch.where(wanted < 0, UNKNOWN, columns)
