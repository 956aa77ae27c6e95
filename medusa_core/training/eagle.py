"""An EAGLE-3 head in training: it learns to go on from its own states, as it will have to.

In the first step it reads the target's states at every position; in later ones its own states of
the step before. It attends to what its cache would hold while drafting: rows of the target's states
up to where the draft began, then its own.

Source: EAGLE-3 (Li et al. 2025), section 3.2 (training-time test).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from medusa_core.models.config import ModelConfig
from medusa_core.runtime.backends.caches import PassCache, SequenceRows
from medusa_core.runtime.backends.rope import Rope
from medusa_core.runtime.backends.torch_blocks import PassContext, run_block
from medusa_core.training.draft_layers import DraftLayer, Norm


class EagleModule(DraftLayer):
    """EAGLE-3 head: one layer over pairs of a state and the embedding of the token after it.

    Attributes:
        vectors: The target's token embeddings, frozen. [vocabulary, hidden]
    """

    def __init__(
        self, config: ModelConfig, num_taps: int, vectors: Tensor, lm_head: Tensor
    ) -> None:
        """Initialize an untrained head.

        Args:
            config: Sizes of its layer.
            num_taps: Hidden states of the target that it reads.
            vectors: The target's token embeddings.
            lm_head: Initial output projection. [columns, hidden]
        """
        super().__init__(config)
        hidden = config.hidden_size
        self.vectors: Tensor
        self.register_buffer("vectors", vectors, persistent=False)
        self.fc = nn.Linear(num_taps * hidden, hidden, bias=False)
        self._add_linears(2 * hidden)
        self.vector_norm, self.state_norm, self.mlp_norm, self.last_norm = (
            Norm(hidden, config.rms_norm_eps) for _ in range(4)
        )
        self.lm_head = nn.Parameter(lm_head.detach().clone().float())

    def steps(self, features: Tensor, token_ids: Tensor, num_steps: int) -> list[Tensor]:
        """Return the states of consecutive steps.

        Args:
            features: The target's states at each token. [texts, length, taps · hidden]
            token_ids: The token after each. [texts, length]
            num_steps: How many tokens the head drafts.

        Returns:
            Step k, at position p: the head's output for its state of the step before at p − 1 and
            the token after p. [texts, length, hidden] each; the first k positions are meaningless.
        """
        count, length = token_ids.shape
        vectors = self.vector_norm(self.vectors[token_ids].to(features.dtype))
        state, block = self.fc(features), self.block()
        caches = [_StepCache(features.device, length) for _ in range(count)]
        found: list[Tensor] = []
        for step in range(num_steps):
            if step:
                state = F.pad(found[-1][:, :-1], (0, 0, 1, 0))  # of the position before
            x = torch.cat([vectors, self.state_norm(state)], dim=-1).flatten(0, 1)
            mask = torch.full((length, length), float("-inf"), device=x.device).triu(1 - step)
            sequences = [
                SequenceRows(slice(text * length, (text + 1) * length), mask, cache)
                for text, cache in enumerate(caches)
            ]
            context = self._context(count, length, step)
            x = run_block(0, block, x, context, sequences, residual=state.flatten(0, 1))
            found.append(x.view(count, length, -1))
        return found

    def _context(self, count: int, length: int, step: int) -> PassContext:
        """Return the context of a step over as many texts."""
        device = self.fc.weight.device
        positions = torch.arange(length, device=device).repeat(count)
        rope = Rope(self.config, torch.float32, device)
        # After the first step, a row also sees those that led to it.
        return PassContext.of_layers(
            self.config, positions, length, [rope], torch.float32, group_size=1 if step else 0
        )


class _StepCache(PassCache):
    """Keys and values of the first step, and each later step's own path to its rows.

    A row of step k at position p sees the first step's rows up to p − k, which the mask says, and
    of each later step j the row at p − k + j.
    """

    def __init__(self, device: torch.device, length: int) -> None:
        super().__init__(device)
        self._length, self._steps = length, list[Tensor]()

    def write(self, layer: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Append a step's keys and values; return those that its rows attend to."""
        self._steps.append(rows)
        first, *later = self._steps
        if later:
            led = [
                F.pad(one, (0, 0, 0, 0, back, 0))[: self._length]
                for back, one in zip(reversed(range(len(later))), later, strict=True)
            ]
            first = torch.cat([first, torch.stack(led, dim=1).flatten(0, 1)])
        keys, values = first.transpose(0, 1).chunk(2)
        return keys, values
