"""Medusa heads on the model's own answers; the model itself stays as it is.

Source: Cai et al., "Medusa" (2024), section 2.2.1 (Medusa-1) and 2.1 (heads).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from medusa_core.heads.weights import HeadSet, HeadWeights
from medusa_core.training.losses import chunked_cross_entropy
from medusa_core.training.network import PebbleNetwork
from medusa_core.training.optimizer import Muon
from medusa_core.training.packing import document_mask
from medusa_core.training.precision import trains_in_bf16
from medusa_core.training.recipe import HeadRecipe
from medusa_core.training.self_answers import Answer

log = logging.getLogger(__name__)

REPORT_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class HeadData:
    """Positions inside own answers.

    Attributes:
        hidden: state after the last norm, bfloat16 [N, H].
        roots: the token behind it, int64 [N].
        targets: int64 [N, heads]; column k is the token k + 2 places on, -1 past the end.
        places: of the roots in their session, int64 [N].
        seeds: of the noise that drew the answer, int64 [N].
    """

    hidden: Tensor
    roots: Tensor
    targets: Tensor
    places: Tensor
    seeds: Tensor


class MedusaHeads(nn.Module):
    """Heads of ResBlocks; their projection is the target's own, or one of their own.

    Attributes:
        matrix: the target's vectors of input and output, [V, H], frozen.
        root_scale: what a root's vector is multiplied by, so that it is as large as a state.
        reads_root: whether the heads read it.
    """

    def __init__(self, matrix: Tensor, recipe: HeadRecipe, root_scale: float = 1.0) -> None:
        super().__init__()
        width = matrix.shape[1]
        self.matrix: Tensor
        self.register_buffer("matrix", matrix.detach().clone(), persistent=False)
        self.root_scale = root_scale
        self.reads_root = recipe.reads_root
        first = 2 * width if recipe.reads_root else width
        widths = [first, *[width] * (recipe.num_layers - 1)]
        self.blocks = nn.ModuleList(
            nn.ModuleList(nn.Linear(inputs, width) for inputs in widths[: recipe.num_layers])
            for _ in range(recipe.num_heads)
        )
        self.projections = nn.ParameterList(
            nn.Parameter(matrix.detach().clone())
            for _ in range(recipe.num_heads if recipe.own_lm_head else 0)
        )
        for parameter in self.blocks.parameters():
            nn.init.zeros_(parameter)

    @property
    def num_heads(self) -> int:
        """Number of heads."""
        return len(self.blocks)

    def state_of(self, head: int, hidden: Tensor, roots: Tensor) -> Tensor:
        """What head `head` projects behind states and their roots, [N, H], [N] to [N, H]."""
        blocks = self.blocks[head]
        assert isinstance(blocks, nn.ModuleList)
        read = hidden
        if self.reads_root:
            read = torch.cat([hidden, self.matrix[roots] * self.root_scale], dim=-1)
        for block in blocks:
            hidden = hidden + F.silu(block(read))
            read = hidden
        return hidden

    def projection_of(self, head: int) -> Tensor:
        """The output matrix of one head, [V, H]."""
        return self.projections[head] if len(self.projections) else self.matrix

    def logits(self, head: int, hidden: Tensor, roots: Tensor) -> Tensor:
        """Scores of the token `head + 2` places on, [N, H], [N] to [N, V]."""
        return F.linear(self.state_of(head, hidden, roots), self.projection_of(head))

    def weights(self, token_ids: Tensor | None = None) -> HeadSet:
        """The weights as they are published: bfloat16, on the CPU.

        Args:
            token_ids: the tokens that the heads shall draft from; None for all.
        """
        heads = []
        for head, blocks in enumerate(self.blocks):
            assert isinstance(blocks, nn.ModuleList)
            layers = []
            for block in blocks:
                assert isinstance(block, nn.Linear)
                weight = block.weight.detach().clone()
                weight[:, block.out_features :] *= self.root_scale
                layers.append((_published(weight), _published(block.bias)))
            own = _rows(self.projections[head], token_ids) if len(self.projections) else None
            heads.append(HeadWeights(tuple(layers), own))
        is_whole = token_ids is None or len(self.projections) > 0
        projection = None if is_whole else _rows(self.matrix, token_ids)
        return HeadSet(tuple(heads), token_ids, projection)


def _rows(matrix: Tensor, token_ids: Tensor | None) -> Tensor:
    return _published(matrix if token_ids is None else matrix[token_ids])


def _published(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", torch.bfloat16).contiguous()


@torch.inference_mode()
def collect(network: PebbleNetwork, answers: Sequence[Answer], num_heads: int) -> HeadData:
    """Run the model over its own answers and keep the hidden states of the answers' positions.

    The position before the answer's first token counts too: from there the heads draft first.
    """
    parts: list[tuple[Tensor, ...]] = []
    longest_first = sorted(answers, key=_length, reverse=True)
    for start in range(0, len(longest_first), 32):
        group = longest_first[start : start + 32]
        width = _length(group[0])
        ids = torch.zeros(len(group), width, dtype=torch.int64)
        document_ids = torch.full((len(group), width), -1, dtype=torch.int16)
        for row, answer in enumerate(group):
            ids[row, : _length(answer)] = torch.tensor(answer.prompt_ids + answer.answer_ids)
            document_ids[row, : _length(answer)] = 0
        with torch.autocast("cpu", torch.bfloat16):
            states = network.hidden_states(ids, document_mask(document_ids))
        for row, answer in enumerate(group):
            first = len(answer.prompt_ids) - 1
            hidden = states[row, first : _length(answer) - 1].bfloat16()
            roots = torch.tensor(answer.answer_ids)
            places = torch.arange(first + 1, _length(answer))
            seeds = torch.full_like(places, answer.seed)
            parts.append((hidden, roots, _later_tokens(answer, num_heads), places, seeds))
    return HeadData(*(torch.cat(found).clone() for found in zip(*parts, strict=True)))


def _length(answer: Answer) -> int:
    return len(answer.prompt_ids) + len(answer.answer_ids)


def _later_tokens(answer: Answer, num_heads: int) -> Tensor:
    """Row i: the answer's tokens i + 1 .. i + num_heads, -1 past the end. [len, heads]."""
    length = len(answer.answer_ids)
    padded = torch.tensor(answer.answer_ids + (-1,) * (num_heads + 1))
    return torch.stack([padded[k + 1 : k + 1 + length] for k in range(num_heads)], dim=1)


def train_heads(
    network: PebbleNetwork, data: HeadData, recipe: HeadRecipe, seed: int
) -> MedusaHeads:
    """Train all heads at once, loss weights 0.8^k: Muon for matrices, AdamW for the rest.

    Args:
        network: its output matrix is shared or copied; it is not changed.
        data: from `collect`.
        recipe: shape and numbers.
        seed: of the order.
    """
    matrix = network.model.embed_tokens.weight.detach()
    scale = float(_size(data.hidden.float()) / _size(matrix))
    heads = MedusaHeads(matrix, recipe, scale)
    optimizers = _optimizers(heads, recipe)
    steps_per_epoch = max(1, len(data.hidden) // recipe.batch_size)
    num_steps = steps_per_epoch * recipe.num_epochs
    schedules = [LambdaLR(o, lambda step: _rate_factor(step, num_steps)) for o in optimizers]
    reported_s = time.monotonic()
    for step in range(num_steps):
        epoch, place = divmod(step, steps_per_epoch)
        order = torch.randperm(
            len(data.hidden), generator=torch.Generator().manual_seed(seed + epoch)
        )
        part = order[place * recipe.batch_size : (place + 1) * recipe.batch_size]
        loss = _heads_loss(heads, data, part, recipe)
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            schedule.step()
        if time.monotonic() - reported_s > REPORT_EVERY_S or step + 1 == num_steps:
            reported_s = time.monotonic()
            log.info("heads: step %d/%d, loss %.3f", step + 1, num_steps, float(loss.detach()))
    return heads.eval()


def _size(vectors: Tensor) -> Tensor:
    """Root of the mean square."""
    return vectors.pow(2).mean().sqrt()


def _optimizers(heads: MedusaHeads, recipe: HeadRecipe) -> list[torch.optim.Optimizer]:
    matrices = [p for p in heads.blocks.parameters() if p.dim() > 1]
    biases = [p for p in heads.blocks.parameters() if p.dim() == 1]
    vectors = [*biases, *heads.projections.parameters()]
    return [
        Muon(matrices, recipe.matrix_lr, momentum=0.95),
        torch.optim.AdamW(
            vectors, lr=recipe.vector_lr, betas=(0.9, 0.95), weight_decay=0.0, fused=True
        ),
    ]


def _rate_factor(step: int, num_steps: int) -> float:
    """Share of the highest learning rate: a warm-up over a tenth, then half a cosine to 0."""
    warm_up = max(1, num_steps // 10)
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 + 0.5 * math.cos(math.pi * (step - warm_up) / max(1, num_steps - warm_up))


def _heads_loss(heads: MedusaHeads, data: HeadData, part: Tensor, recipe: HeadRecipe) -> Tensor:
    """Sum over heads of 0.8^k times the mean cross-entropy at some positions."""
    hidden, roots, targets = data.hidden[part], data.roots[part], data.targets[part]
    total, bf16 = torch.zeros(()), trains_in_bf16("cpu")
    for head in range(heads.num_heads):
        known = (targets[:, head] >= 0).nonzero().squeeze(1)
        if not len(known):
            continue
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            state = heads.state_of(head, hidden[known].float(), roots[known])
        loss = chunked_cross_entropy(
            state,
            heads.projection_of(head),
            targets[known, head],
            torch.ones(len(known)),
            torch.bfloat16 if bf16 else torch.float32,
        )
        total = total + recipe.loss_decay**head * loss
    return total
