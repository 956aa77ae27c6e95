"""Training of EAGLE-3 heads; see `Trainee`."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.loading.target import Target
from medusa_core.training.accuracy import UNKNOWN, ranks_of
from medusa_core.training.deep_texts import pad_texts
from medusa_core.training.deep_trainee import DeepTrainee
from medusa_core.training.draft_layers import draft_config, layer_settings
from medusa_core.training.eagle import EagleModule
from medusa_core.training.heads import LOSS_DECAY, projection_matrix, published
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.losses import chunked_cross_entropy
from medusa_core.training.states import Shard

_NAMES = {
    "fc": "fc",
    "q": "midlayer.self_attn.q_proj",
    "k": "midlayer.self_attn.k_proj",
    "v": "midlayer.self_attn.v_proj",
    "o": "midlayer.self_attn.o_proj",
    "gate": "midlayer.mlp.gate_proj",
    "up": "midlayer.mlp.up_proj",
    "down": "midlayer.mlp.down_proj",
    "vector_norm": "midlayer.input_layernorm",
    "state_norm": "midlayer.hidden_norm",
    "mlp_norm": "midlayer.post_attention_layernorm",
    "last_norm": "norm",
}


class EagleTrainee(DeepTrainee):
    """An EAGLE-3 head in training."""

    def __init__(self, target: Target, config: HeadsConfig, token_ids: Tensor | None) -> None:
        """Initialize an untrained head.

        Args:
            target: The target, whose runner returns the inputs of three layers from now on.
            config: Configuration of the run.
            token_ids: Draft vocabulary; None for all tokens.
        """
        sizes = target.config
        super().__init__(target, config, token_ids, reference_taps(sizes.num_layers))
        matrix, kept = projection_matrix(target), self._kept
        layer = draft_config(sizes, "llama")
        lm_head = matrix[kept.to(matrix.device)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            vectors = target.shared_weights.embedding.matrix()
            module = EagleModule(layer, len(self._taps), vectors, lm_head)
        self.module: EagleModule = module.to(self._device)
        self._num_steps = max(2, config.num_heads)

    def loss(self, shard: Shard, places: Tensor) -> Tensor:
        """Return the discounted sum of the steps' cross-entropies."""
        features, ids, is_answer = pad_texts(shard, places, self._device)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._bf16):
            states = self.module.steps(features, ids[:, 1:], self._num_steps)
        total = torch.zeros((), device=self._device)
        for step, state in enumerate(states):
            columns, known = self._wanted(ids, is_answer, step)
            if not bool(known.any()):
                continue
            normed = self.module.last_norm(state[:, :-1][known].float())
            loss = chunked_cross_entropy(
                normed,
                self.module.lm_head,
                columns[known],
                torch.ones(len(normed), device=self._device),
                self._narrow,
            )
            total = total + LOSS_DECAY**step * loss
        return total

    def _ranks(self, shard: Shard, texts: Tensor, num_ranks: int) -> Tensor:
        """Return the ranks of all steps by the position where drafting starts. [samples, depths]"""
        features, ids, is_answer = pad_texts(shard, texts, self._device)
        columns = []
        for step, state in enumerate(self.module.steps(features, ids[:, 1:], self._num_steps)):
            scores = F.linear(self.module.last_norm(state[:, :-1]), self.module.lm_head)
            wanted, known = self._wanted(ids, is_answer, step)
            rank = torch.where(known, ranks_of(wanted, scores, num_ranks), UNKNOWN)
            # Indexed by the position of the draft's start.
            moved = torch.full_like(rank, UNKNOWN)
            moved[:, : rank.shape[1] - step] = rank[:, step:]
            columns.append(moved)
        together = torch.stack(columns, dim=-1).flatten(0, 1)
        return together[together[:, 0] != UNKNOWN]

    def write(self, folder: Path, base_model: str) -> str:
        """Write the head in the layout of the EAGLE-3 reference."""
        tensors = {
            f"{name}.weight": getattr(self.module, part).weight for part, name in _NAMES.items()
        }
        tensors["lm_head.weight"] = self.module.lm_head
        named = {name: published(tensor) for name, tensor in tensors.items()}
        if self._token_ids is not None:
            named["t2d"] = self._columns >= 0
        settings = {
            "architectures": ["LlamaForCausalLMEagle3"],
            **layer_settings(self.module.config),
            "eagle_aux_hidden_state_layer_ids": list(self._taps),
        }
        self._write(folder, base_model, named, settings)
        return "eagle3"

    def _wanted(self, ids: Tensor, is_answer: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """Return the target column of a step at each position, and where it counts.

        The target at position p is token p + 2; all tokens after the draft's root must be of an
        answer.
        """
        columns = self._columns.to(ids.device)[ids[:, 2:]]
        known = is_answer[:, 2:] & (columns != UNKNOWN)
        for back in range(step + 1):
            earlier = is_answer[:, 1 : is_answer.shape[1] - 1]
            moved = torch.zeros_like(known)
            moved[:, back:] = earlier[:, : earlier.shape[1] - back]
            known = known & moved
        return columns, known


def reference_taps(num_layers: int) -> tuple[int, ...]:
    """Return the layers whose inputs are read: the reference's, if the target has enough layers."""
    taps = tuple(sorted({min(2, num_layers), num_layers // 2, max(0, num_layers - 3)}))
    return taps if len(taps) == 3 else tuple(sorted({0, num_layers // 2, num_layers}))
