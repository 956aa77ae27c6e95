"""An EAGLE-3 head in training: it learns to go on from its own states, as it will have to.

In the first step it reads the target's states at every place; in the next ones its own of the step
before, and looks back on what it would have in its cache while drafting: rows of the target's
states up to where the draft began, then its own.

Source: EAGLE-3 (Li et al. 2025), section 3.2 (training-time test).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from medusa_core.training.draft_parts import Norm, angles, turned


@dataclass(frozen=True, slots=True)
class EagleForm:
    """Sizes of a head.

    Attributes:
        hidden: Width of the target and of the head.
        num_taps: States that it reads.
        inner: Width of its MLP.
        num_heads: Of attention; each has keys and values of its own.
        head_dim: Numbers of each.
        columns: Tokens that it drafts from.
        theta: Base of its rotations.
        eps: Of its norms.
    """

    hidden: int
    num_taps: int
    inner: int
    num_heads: int
    head_dim: int
    columns: int
    theta: float = 10000.0
    eps: float = 1e-6


class EagleModule(nn.Module):
    """One layer over pairs of a state and the token behind it.

    Attributes:
        form: Its sizes.
        vectors: The target's token vectors, frozen. [vocabulary, hidden]
    """

    def __init__(self, form: EagleForm, vectors: Tensor, lm_head: Tensor) -> None:
        """Make a head that has yet to learn anything.

        Args:
            form: Its sizes.
            vectors: The target's token vectors.
            lm_head: What it begins with as its projection. [columns, hidden]
        """
        super().__init__()
        hidden, inner = form.hidden, form.num_heads * form.head_dim
        self.form = form
        self.vectors: Tensor
        self.register_buffer("vectors", vectors, persistent=False)

        def linear(inputs: int, outputs: int) -> nn.Linear:
            return nn.Linear(inputs, outputs, bias=False)

        def norm() -> Norm:
            return Norm(hidden, form.eps)

        self.fc = linear(form.num_taps * hidden, hidden)
        self.q, self.k, self.v = (linear(2 * hidden, inner) for _ in range(3))
        self.o = linear(inner, hidden)
        self.gate, self.up = (linear(hidden, form.inner) for _ in range(2))
        self.down = linear(form.inner, hidden)
        self.vector_norm, self.state_norm = norm(), norm()
        self.mlp_norm, self.last_norm = norm(), norm()
        self.lm_head = nn.Parameter(lm_head.detach().clone().float())
        nn.init.zeros_(self.down.weight)

    def steps(self, features: Tensor, token_ids: Tensor, num_steps: int) -> list[Tensor]:
        """States of one step after the other.

        Args:
            features: What the target says of each token. [rows, length, taps · hidden]
            token_ids: The token behind each. [rows, length]
            num_steps: How many times the head goes on.

        Returns:
            Step k, at place p: what the head makes of its state at p − 1 of the step before and the
            token behind p. [rows, length, hidden] each; the first k places mean nothing.
        """
        vectors = self.vector_norm(self.vectors[token_ids].to(features.dtype))
        places = torch.arange(features.shape[1], device=features.device)
        cosine, sine = angles(places, self.form.head_dim, self.form.theta)
        state = self.fc(features)
        found: list[Tensor] = []
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for step in range(num_steps):
            if step:
                state = F.pad(found[-1][:, :-1], (0, 0, 1, 0))  # of the place before
            x = torch.cat([vectors, self.state_norm(state)], dim=-1)
            q, k = (turned(self._heads(part(x)), cosine, sine) for part in (self.q, self.k))
            keys.append(k)
            values.append(self._heads(self.v(x)))
            mixed = _attend(q, keys, values)
            mixed = mixed.transpose(1, 2).flatten(2)
            inner = state + self.o(mixed)
            normed = self.mlp_norm(inner)
            found.append(inner + self.down(F.silu(self.gate(normed)) * self.up(normed)))
        return found

    def _heads(self, rows: Tensor) -> Tensor:
        """[rows, length, heads · dim] → [rows, heads, length, dim]"""
        form = self.form
        return rows.view(*rows.shape[:2], form.num_heads, form.head_dim).transpose(1, 2)


def _attend(q: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    """Attention of the last step's rows.

    A row of step k at place p sees the first step's rows up to p − k, and of each later step
    the one that led to it: of step j that at p − k + j.
    """
    length, step = q.shape[2], len(keys) - 1
    scale = 1 / math.sqrt(q.shape[-1])
    scores = (q @ keys[0].transpose(-1, -2)) * scale
    hidden = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1 - step)
    scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    own = []
    for later in range(1, step + 1):
        back = step - later
        moved = F.pad(keys[later], (0, 0, back, 0))[:, :, :length]
        own.append((q * moved).sum(-1, keepdim=True) * scale)
    weights = torch.softmax(torch.cat([scores, *own], dim=-1), dim=-1).to(values[0].dtype)
    mixed = weights[..., :length] @ values[0]
    for later in range(1, step + 1):
        moved = F.pad(values[later], (0, 0, step - later, 0))[:, :, :length]
        mixed = mixed + weights[..., length + later - 1 : length + later] * moved
    return mixed
