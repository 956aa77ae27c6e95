"""A DSpark drafter in training: a block of guesses from one pass, each biased by the guess before.

A block begins with an anchor, a token that is decided, and goes on with masks. Its rows see the
target's states before the anchor, as keys and values that the drafter makes of them, and each
other. Row k guesses the token k + 1 places behind the anchor.

Source: DSpark (arXiv 2607.05147); the pass itself is DFlash's (arXiv 2602.06036).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from medusa_core.models.blocks.caches import PassCache, SequenceRows
from medusa_core.models.blocks.torch_blocks import PassContext, project, run_block
from medusa_core.models.config import ModelConfig
from medusa_core.models.rope import Rope
from medusa_core.training.draft_layers import DraftLayer, Norm

_MARKOV_SIZE = 0.01  # of the Markov head's vectors at first, as published


@dataclass(frozen=True, slots=True)
class DSparkForm:
    """What a drafter has besides its layers.

    Attributes:
        num_taps: Hidden states of the target that it reads.
        columns: Tokens that it drafts from.
        block: Tokens that a pass drafts.
        rank: Rank of the Markov bias.
        mask_id: Token of rows that are drafted.
    """

    num_taps: int
    columns: int
    block: int
    rank: int
    mask_id: int


class DSparkLayer(DraftLayer):
    """A Qwen3 layer that attends to the target's states, too.

    At first a layer passes on the last of these states, which is close to what the target itself
    projects: so a drafter needs fewer answers.
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
    """Layers over blocks, a Markov bias and a confidence.

    Attributes:
        config: Sizes of its layers.
        form: Its other sizes.
        vectors: The target's token vectors, frozen. [vocabulary, hidden]
        lm_head: Rows of the target's projection, frozen. [columns, hidden]
        markov_from: What the token before a guess is to the bias. [vocabulary, rank]
        markov_to: What it biases. [columns, rank]
    """

    def __init__(
        self, config: ModelConfig, form: DSparkForm, vectors: Tensor, lm_head: Tensor
    ) -> None:
        """Make a drafter that has yet to learn anything.

        Args:
            config: Sizes of its layers.
            form: Its other sizes.
            vectors: The target's token vectors.
            lm_head: What it projects with.
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
        """States of the guesses behind some anchors, as the projection reads them.

        Args:
            features: What the target says of each token. [texts, length, taps · hidden]
            anchor_ids: int64 [texts, anchors]
            anchors: Their places; states before them are seen. int64 [texts, anchors]

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
        read = self.context_norm(self.fc(features)).flatten(0, 1)
        blocks = [(layer, layer.block(index)) for index, layer in enumerate(self._layers())]
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
        """Scores of guesses, by the tokens before each. [..., hidden], [...] → [..., columns]"""
        bias = F.linear(self.markov_from[previous_ids], self.markov_to)
        return F.linear(states, self.lm_head) + bias

    def confidences(self, states: Tensor, previous_ids: Tensor) -> Tensor:
        """Log-odds that the best guess is right. [..., hidden], [...] → [...]"""
        read = torch.cat([states, self.markov_from[previous_ids]], dim=-1)
        y: Tensor = self.confidence(read).squeeze(-1)
        return y

    def _layers(self) -> Iterator[DSparkLayer]:
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
