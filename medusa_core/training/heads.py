"""Medusa heads in training, with a frozen target.

Source: Cai et al., "Medusa" (2024), section 2.2.1 (Medusa-1) and 2.1 (heads).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from medusa_core.heads.weights import HeadSet, HeadWeights
from medusa_core.loading.target import Target
from medusa_core.training.losses import chunked_cross_entropy
from medusa_core.training.matrices import dequantize_linear
from medusa_core.training.positions import Positions

LOSS_DECAY = 0.8


@dataclass(frozen=True, slots=True)
class MedusaSizes:
    """Sizes of Medusa heads.

    Attributes:
        num_heads: Number of heads.
        num_layers: Residual layers per head.
        own_lm_head: Each head has its own output projection; else they share the target's.
        reads_root: Whether first layers read the root's embedding besides the state.
    """

    num_heads: int
    num_layers: int = 1
    own_lm_head: bool = False
    reads_root: bool = False

    def format_name(self, has_all_tokens: bool) -> str:
        """Return the published format that represents such heads."""
        if self.reads_root:
            return "rooted"
        if not has_all_tokens:
            return "vllm"
        return "v0.1" if self.own_lm_head else "v2"


class HeadsModule(nn.Module):
    """Heads of residual layers with a shared or own output projection.

    Attributes:
        lm_head: The target's output projection, frozen. [vocabulary, hidden]
        vectors: The target's token embeddings, frozen. [vocabulary, hidden]
        root_scale: Factor of the root's embedding, so that its norm matches a state's.
        form: Sizes of the heads.
    """

    def __init__(
        self, form: MedusaSizes, lm_head: Tensor, vectors: Tensor, root_scale: float = 1.0
    ) -> None:
        super().__init__()
        width = lm_head.shape[1]
        self.lm_head: Tensor
        self.vectors: Tensor
        self.register_buffer("lm_head", lm_head, persistent=False)
        self.register_buffer("vectors", vectors, persistent=False)
        self.root_scale = root_scale
        self.form = form
        first = 2 * width if form.reads_root else width
        widths = [first, *[width] * (form.num_layers - 1)]
        self.blocks = nn.ModuleList(
            nn.ModuleList(nn.Linear(inputs, width) for inputs in widths[: form.num_layers])
            for _ in range(form.num_heads)
        )
        self.projections = nn.ParameterList(
            nn.Parameter(lm_head.detach().clone().float())
            for _ in range(form.num_heads if form.own_lm_head else 0)
        )
        for parameter in self.blocks.parameters():
            nn.init.zeros_(parameter)

    @property
    def num_heads(self) -> int:
        """Number of heads."""
        return len(self.blocks)

    def state_of(self, head: int, hidden: Tensor, roots: Tensor) -> Tensor:
        """Run the residual layers of a head on states and roots. [N, hidden], [N] → [N, hidden]"""
        blocks = self.blocks[head]
        assert isinstance(blocks, nn.ModuleList)
        read = hidden
        if self.form.reads_root:
            vectors = self.vectors[roots.to(self.vectors.device)].to(hidden)
            read = torch.cat([hidden, vectors * self.root_scale], dim=-1)
        for block in blocks:
            hidden = hidden + F.silu(block(read))
            read = hidden
        return hidden

    def projection_of(self, head: int) -> Tensor:
        """Return the output projection of a head. [vocabulary, hidden]"""
        return self.projections[head] if len(self.projections) else self.lm_head

    def logits(self, head: int, hidden: Tensor, roots: Tensor) -> Tensor:
        """Compute the logits of the token `head + 2` positions later.

        Args:
            head: Index of the head.
            hidden: [N, hidden]
            roots: [N]

        Returns:
            [N, vocabulary]
        """
        state = self.state_of(head, hidden, roots)
        return F.linear(state, self.projection_of(head).to(state.dtype))

    def weights(self, token_ids: Tensor | None = None) -> HeadSet:
        """Return the weights in the published layout: bfloat16, on the CPU.

        Args:
            token_ids: Draft vocabulary of the heads; None for the whole vocabulary.
        """
        heads = []
        for head, blocks in enumerate(self.blocks):
            assert isinstance(blocks, nn.ModuleList)
            layers = []
            for block in blocks:
                assert isinstance(block, nn.Linear)
                weight = block.weight.detach().clone()
                weight[:, block.out_features :] *= self.root_scale
                layers.append((published(weight), published(block.bias)))
            own = _rows(self.projections[head], token_ids) if len(self.projections) else None
            heads.append(HeadWeights(tuple(layers), own))
        is_whole = token_ids is None or len(self.projections) > 0
        projection = None if is_whole else _rows(self.lm_head, token_ids)
        return HeadSet(tuple(heads), token_ids, projection)


def _rows(matrix: Tensor, token_ids: Tensor | None) -> Tensor:
    """Return a projection's rows as published, maybe of a reduced vocabulary."""
    return published(matrix if token_ids is None else matrix[token_ids])


def published(tensor: Tensor) -> Tensor:
    """Return a tensor as it is published: bfloat16, on the CPU."""
    return tensor.detach().to("cpu", torch.bfloat16).contiguous()


def projection_matrix(target: Target) -> Tensor:
    """Return the target's dequantized output projection. [vocabulary, hidden]"""
    shared_weights, width = target.shared_weights, target.config.hidden_size
    return dequantize_linear(
        shared_weights.lm_head, shared_weights.vocab_size, width, target.precision
    )[0]


def heads_loss(heads: HeadsModule, positions: Positions, bf16: bool = False) -> Tensor:
    """Return the sum over heads of 0.8^k times their mean cross-entropy, in nats.

    Args:
        heads: Heads in training.
        positions: Positions; those after an answer's end are left out.
        bf16: Compute matrix products in bfloat16.
    """
    device = heads.lm_head.device
    hidden, roots, targets = (
        x.to(device) for x in (positions.hidden, positions.roots, positions.targets)
    )
    total = torch.zeros((), device=device)
    for head in range(heads.num_heads):
        known = (targets[:, head] >= 0).nonzero().squeeze(1)
        if not len(known):
            continue
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            state = heads.state_of(head, hidden[known].float(), roots[known])
        loss = chunked_cross_entropy(
            state,
            heads.projection_of(head),
            targets[known, head],
            torch.ones(len(known), device=device),
            torch.bfloat16 if bf16 else torch.float32,
        )
        total = total + LOSS_DECAY**head * loss
    return total
