"""DSpark drafters in training: a block of drafts per pass, each biased by the token before.

A block starts with an anchor, a token of the text, followed by MASK tokens. Its rows attend to the
target's states before the anchor, as keys and values that the drafter makes of them, and to each
other. Row k predicts the token k + 1 positions after the anchor.

Source: DSpark (arXiv 2607.05147); the pass itself is DFlash's (arXiv 2602.06036).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from medusa_core.models.config import ModelConfig
from medusa_core.runtime.backends.caches import PassCache, SequenceRows
from medusa_core.runtime.backends.rope import Rope
from medusa_core.runtime.backends.torch_blocks import PassContext, project, run_block
from medusa_core.training.draft_layers import DraftLayer, Norm

_MARKOV_SIZE = 0.01  # initial scale of the Markov head, as published


@dataclass(frozen=True, slots=True)
class DSparkSizes:
    """Sizes of a drafter besides those of its layers.

    Attributes:
        num_taps: Hidden states of the target that it reads.
        columns: Size of the draft vocabulary.
        block: Tokens drafted per pass.
        rank: Rank of the Markov head.
        mask_id: MASK token.
    """

    num_taps: int
    columns: int
    block: int
    rank: int
    mask_id: int


class DSparkLayer(DraftLayer):
    """A Qwen3 layer that also attends to the target's states.

    Initially a layer passes on the last of these states, which is close to what the target itself
    projects to logits; training then needs fewer answers.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self._add_linears(config.hidden_size)
        eps, size = config.rms_norm_eps, config.head_dim
        self.input_norm, self.mlp_norm = (Norm(config.hidden_size, eps) for _ in range(2))
        self.q_norm, self.k_norm = (Norm(size, eps) for _ in range(2))
        nn.init.eye_(self.v.weight)
        nn.init.eye_(self.o.weight)


class DSparkModule(nn.Module):
    """Layers over blocks, a Markov head and a confidence head.

    Attributes:
        config: Sizes of the layers.
        form: Other sizes.
        vectors: The target's token embeddings, frozen. [vocabulary, hidden]
        lm_head: Rows of the target's output projection, frozen. [columns, hidden]
        markov_from: W1 of the Markov head. [vocabulary, rank]
        markov_to: W2 of the Markov head. [columns, rank]
    """

    def __init__(
        self, config: ModelConfig, form: DSparkSizes, vectors: Tensor, lm_head: Tensor
    ) -> None:
        """Initialize an untrained drafter.

        Args:
            config: Sizes of the layers.
            form: Other sizes.
            vectors: The target's token embeddings.
            lm_head: Rows of the target's output projection.
        """
        super().__init__()
        self.config, self.form = config, form
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self.vectors: Tensor
        self.lm_head: Tensor
        self.register_buffer("vectors", vectors, persistent=False)
        self.register_buffer("lm_head", lm_head.detach().float(), persistent=False)
        self.fc = nn.Linear(form.num_taps * hidden, hidden, bias=False)
        with torch.no_grad():
            self.fc.weight.zero_()
            self.fc.weight[:, -hidden:].fill_diagonal_(1.0)
        self.context_norm = Norm(hidden, eps)
        self.layers = nn.ModuleList(DSparkLayer(config) for _ in range(config.num_layers))
        self.last_norm = Norm(hidden, eps)
        self.markov_from = nn.Parameter(torch.randn(len(vectors), form.rank) * _MARKOV_SIZE)
        self.markov_to = nn.Parameter(torch.zeros(form.columns, form.rank))
        self.confidence = nn.Linear(hidden + form.rank, 1)

    def states(self, features: Tensor, anchor_ids: Tensor, anchors: Tensor) -> Tensor:
        """Compute the final states of the blocks at some anchors.

        Args:
            features: Inputs of tapped layers at each token. [texts, length, taps · hidden]
            anchor_ids: Tokens of the anchors. int64 [texts, anchors]
            anchors: Their positions; states before them are visible. int64 [texts, anchors]

        Returns:
            [texts, anchors, block, hidden]
        """
        form, device = self.form, features.device
        ids = torch.full((*anchors.shape, form.block), form.mask_id, device=device)
        ids[:, :, 0] = anchor_ids
        count, length = features.shape[:2]
        places = (anchors[:, :, None] + torch.arange(form.block, device=device)).flatten(1)
        rows = self._context(places.flatten(), length + form.block)
        of_text = self._context(torch.arange(length, device=device).repeat(count), length)
        # All blocks of a text share its keys and values: they are projected once per layer.
        read = self.context_norm(self.fc(features)).flatten(0, 1)
        blocks = [(layer, layer.block()) for layer in self._layers()]
        seen = [
            project(layer.only_kv(block), read, of_text)[0].chunk(count) for layer, block in blocks
        ]
        mask = self._mask(anchors, length)
        sequences = [
            SequenceRows(
                slice(text * places.shape[1], (text + 1) * places.shape[1]),
                mask[text],
                PassCache(device, [of_layer[text] for of_layer in seen]),
            )
            for text in range(count)
        ]
        x = self.vectors[ids.flatten().to(self.vectors.device)].to(device, torch.float32)
        for index, (_, block) in enumerate(blocks):
            x = run_block(index, block, x, rows, sequences)
        y: Tensor = self.last_norm(x)
        return y.view(*anchors.shape, form.block, -1)

    def scores(self, states: Tensor, previous_ids: Tensor) -> Tensor:
        """Compute logits, given the token before each. [..., hidden], [...] → [..., columns]"""
        bias = F.linear(self.markov_from[previous_ids], self.markov_to)
        return F.linear(states, self.lm_head) + bias

    def confidences(self, states: Tensor, previous_ids: Tensor) -> Tensor:
        """Compute the log-odds that the top-1 draft is right. [..., hidden], [...] → [...]"""
        read = torch.cat([states, self.markov_from[previous_ids]], dim=-1)
        y: Tensor = self.confidence(read).squeeze(-1)
        return y

    def _layers(self) -> Iterator[DSparkLayer]:
        """Yield the layers with their type."""
        for layer in self.layers:
            assert isinstance(layer, DSparkLayer)
            yield layer

    def _context(self, positions: Tensor, num_positions: int) -> PassContext:
        """Return the context of rows; those of a block see each other."""
        rope = Rope(self.config, torch.float32, positions.device)
        return PassContext.of_layers(
            *(self.config, positions, num_positions, [rope], torch.float32),
            group_size=self.form.block,
        )

    def _mask(self, anchors: Tensor, length: int) -> Tensor:
        """Return the mask that hides states from the anchors on. [texts, rows, length]"""
        of_row = anchors.repeat_interleave(self.form.block, dim=1)
        hidden = torch.arange(length, device=anchors.device) >= of_row[..., None]
        return torch.zeros(hidden.shape, device=hidden.device).masked_fill_(hidden, float("-inf"))
