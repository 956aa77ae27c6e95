"""A DSpark drafter in training: a block of guesses from one pass, each biased by the guess before.

A block begins with an anchor, a token that is decided, and goes on with masks. Its rows see the
target's states before the anchor, as keys and values that the drafter makes of them, and each
other. Row k guesses the token k + 1 places behind the anchor.

At first a layer hands on the last of the states that it looks at, near to what the target itself
projects: so a drafter needs fewer answers.

Source: DSpark (arXiv 2607.05147); the pass itself is DFlash's (arXiv 2602.06036).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from medusa_core.training.draft_parts import Norm, angles, turned

Turns = tuple[Tensor, Tensor]
_MARKOV_SIZE = 0.01  # of the Markov head's vectors at first, as published


@dataclass(frozen=True, slots=True)
class DSparkForm:
    """Sizes of a drafter.

    Attributes:
        hidden: Width of the target and of the drafter.
        num_taps: States of the target that it reads.
        inner: Width of its MLPs.
        num_layers: Its layers.
        num_heads: Of attention.
        num_kv_heads: Of keys and values.
        head_dim: Numbers of each.
        columns: Tokens that it drafts from.
        block: Guesses of a pass.
        rank: Of the Markov bias.
        mask_id: The token that stands for a guess.
        theta: Base of its rotations.
        eps: Of its norms.
    """

    hidden: int
    num_taps: int
    inner: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    columns: int
    block: int
    rank: int
    mask_id: int
    theta: float = 10000.0
    eps: float = 1e-6


class DSparkLayer(nn.Module):
    """A Qwen3 layer over blocks, which looks at the target's states, too."""

    def __init__(self, form: DSparkForm) -> None:
        super().__init__()
        hidden, size = form.hidden, form.head_dim
        self._head_dim = size
        self.q = nn.Linear(hidden, form.num_heads * size, bias=False)
        self.k = nn.Linear(hidden, form.num_kv_heads * size, bias=False)
        self.v = nn.Linear(hidden, form.num_kv_heads * size, bias=False)
        self.o = nn.Linear(form.num_heads * size, hidden, bias=False)
        self.gate = nn.Linear(hidden, form.inner, bias=False)
        self.up = nn.Linear(hidden, form.inner, bias=False)
        self.down = nn.Linear(form.inner, hidden, bias=False)
        self.input_norm, self.mlp_norm = Norm(hidden, form.eps), Norm(hidden, form.eps)
        self.q_norm, self.k_norm = Norm(size, form.eps), Norm(size, form.eps)
        nn.init.zeros_(self.down.weight)
        nn.init.eye_(self.v.weight)  # what is looked at goes on as it is
        nn.init.eye_(self.o.weight)

    def forward(
        self, x: Tensor, context: Tensor, sees: Tensor, turns: Turns, context_turns: Turns
    ) -> Tensor:
        """What the layer makes of the rows of some blocks.

        Args:
            x: [texts, rows, hidden]
            context: The target's states as the drafter reads them. [texts, length, hidden]
            sees: Which states and rows each row sees. bool [texts, 1, rows, length + rows]
            turns: Cosines and sines of the rows' places. [texts, 1, rows, dim / 2]
            context_turns: Of the states' places. [length, dim / 2]
        """
        normed = self.input_norm(x)
        q = turned(self.q_norm(self._heads(self.q(normed))), *turns)
        own = turned(self.k_norm(self._heads(self.k(normed))), *turns)
        before = turned(self.k_norm(self._heads(self.k(context))), *context_turns)
        values = self._heads(self.v(torch.cat([context, normed], dim=1)))
        mixed = F.scaled_dot_product_attention(
            q.to(values.dtype),
            torch.cat([before, own], dim=2).to(values.dtype),
            values,
            sees,
            enable_gqa=True,
        )
        x = x + self.o(mixed.transpose(1, 2).flatten(2))
        normed = self.mlp_norm(x)
        y: Tensor = x + self.down(F.silu(self.gate(normed)) * self.up(normed))
        return y

    def _heads(self, rows: Tensor) -> Tensor:
        """[texts, rows, heads · dim] → [texts, heads, rows, dim]"""
        return rows.view(*rows.shape[:2], -1, self._head_dim).transpose(1, 2)


class DSparkModule(nn.Module):
    """Layers over blocks, a Markov bias and a confidence.

    Attributes:
        form: Its sizes.
        vectors: The target's token vectors, frozen. [vocabulary, hidden]
        lm_head: Rows of the target's projection, frozen. [columns, hidden]
        markov_from: What the token before a guess is to the bias. [vocabulary, rank]
        markov_to: What it biases. [columns, rank]
    """

    def __init__(self, form: DSparkForm, vectors: Tensor, lm_head: Tensor) -> None:
        """Make a drafter that has yet to learn anything.

        Args:
            form: Its sizes.
            vectors: The target's token vectors.
            lm_head: What it projects with.
        """
        super().__init__()
        self.form = form
        self.vectors: Tensor
        self.lm_head: Tensor
        self.register_buffer("vectors", vectors, persistent=False)
        self.register_buffer("lm_head", lm_head.detach().float(), persistent=False)
        self.fc = nn.Linear(form.num_taps * form.hidden, form.hidden, bias=False)
        with torch.no_grad():
            self.fc.weight.zero_()
            self.fc.weight[:, -form.hidden :].fill_diagonal_(1.0)
        self.context_norm = Norm(form.hidden, form.eps)
        self.layers = nn.ModuleList(DSparkLayer(form) for _ in range(form.num_layers))
        self.last_norm = Norm(form.hidden, form.eps)
        self.markov_from = nn.Parameter(torch.randn(len(vectors), form.rank) * _MARKOV_SIZE)
        self.markov_to = nn.Parameter(torch.zeros(form.columns, form.rank))
        self.confidence = nn.Linear(form.hidden + form.rank, 1)

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
        places = anchors[:, :, None] + torch.arange(form.block, device=device)
        turns = angles(places.flatten(1)[:, None], form.head_dim, form.theta)
        length = features.shape[1]
        context_turns = angles(torch.arange(length, device=device), form.head_dim, form.theta)
        context = self.context_norm(self.fc(features))
        x = self.vectors[ids.flatten(1).to(self.vectors.device)].to(device, torch.float32)
        sees = self._sees(anchors, length)
        for layer in self.layers:
            x = layer(x, context, sees, turns, context_turns)
        y: Tensor = self.last_norm(x)
        return y.view(*anchors.shape, form.block, form.hidden)

    def scores(self, states: Tensor, previous_ids: Tensor) -> Tensor:
        """Scores of guesses, by the tokens before each. [..., hidden], [...] → [..., columns]"""
        bias = F.linear(self.markov_from[previous_ids], self.markov_to)
        return F.linear(states, self.lm_head) + bias

    def confidences(self, states: Tensor, previous_ids: Tensor) -> Tensor:
        """Log-odds that the best guess is right. [..., hidden], [...] → [...]"""
        read = torch.cat([states, self.markov_from[previous_ids]], dim=-1)
        y: Tensor = self.confidence(read).squeeze(-1)
        return y

    def _sees(self, anchors: Tensor, length: int) -> Tensor:
        """What rows see: states before their anchors, and rows of their own block."""
        block = self.form.block
        of_row = anchors.repeat_interleave(block, dim=1)
        before = torch.arange(length, device=anchors.device) < of_row[..., None]
        numbers = torch.arange(of_row.shape[1], device=anchors.device) // block
        own = (numbers[:, None] == numbers).expand(len(anchors), -1, -1)
        return torch.cat([before, own], dim=2)[:, None]
