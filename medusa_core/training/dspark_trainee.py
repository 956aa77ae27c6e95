"""Training of DSpark drafters; see `Trainee`.

Blocks start at random positions of the answers. Losses: cross-entropy with the tokens that the
target wrote, weighted by the distance from the anchor, and the confidence that the top-1 draft is
right. Published drafters are distilled from the target's probabilities instead, which takes its
logits at every position.

Source: DSpark (arXiv 2607.05147); position weights as in DFlash (arXiv 2602.06036).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.loading.target import Target
from medusa_core.training.accuracy import UNKNOWN, ranks_of
from medusa_core.training.deep_texts import PaddedTexts, pad_texts
from medusa_core.training.deep_trainee import DeepTrainee
from medusa_core.training.draft_layers import draft_config, layer_settings
from medusa_core.training.dspark import DSparkModule, DSparkSizes
from medusa_core.training.heads import projection_matrix, published
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.losses import summed_cross_entropy
from medusa_core.training.states import Shard

_MOST_TAPS = 5
_ANCHORS = 32  # anchors per text and step
_DECAY = 4.0  # positions over which the weight falls to 1/e
_PARTS = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "q_norm": "self_attn.q_norm",
    "k_norm": "self_attn.k_norm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
    "input_norm": "input_layernorm",
    "mlp_norm": "post_attention_layernorm",
}


class _Blocks(NamedTuple):
    """Blocks of a batch of texts.

    Attributes:
        anchors: Positions of the anchors. int64 [texts, anchors]
        is_kept: Mask of the blocks in use: texts have different numbers. bool [texts, anchors]
    """

    anchors: Tensor
    is_kept: Tensor


class DSparkTrainee(DeepTrainee):
    """A DSpark drafter in training."""

    def __init__(self, target: Target, config: HeadsConfig, token_ids: Tensor | None) -> None:
        """Initialize an untrained drafter.

        Args:
            target: The target, whose runner returns the inputs of some layers from now on.
            config: Configuration of the run.
            token_ids: Draft vocabulary; None for all tokens.
        """
        sizes = target.config
        super().__init__(target, config, token_ids, taps_of(sizes.num_layers))
        matrix, vectors = projection_matrix(target), target.shared_weights.embedding.matrix()
        kept = self._kept
        form = DSparkSizes(
            num_taps=len(self._taps),
            columns=len(kept),
            block=config.block or config.num_heads,
            rank=config.markov_rank,
            mask_id=mask_id_of(vectors),
        )
        layers = draft_config(sizes, "qwen3", config.num_layers)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            module = DSparkModule(layers, form, vectors, matrix[kept.to(matrix.device)])
        if (decoder := target.shared_weights.decoder) is not None:
            module.context_norm.weight.data.copy_(decoder.final_norm.weight)
        self.module: DSparkModule = module.to(self._device)

    def loss(self, shard: Shard, places: Tensor) -> Tensor:
        """Return the mean cross-entropy and confidence loss of blocks at random positions."""
        texts = pad_texts(shard, places, self._device)
        blocks = _random_blocks(texts.is_answer, _ANCHORS)
        columns, previous, is_known = self._wanted(texts, blocks)
        if not bool(is_known.any()):
            return self.module.markov_to.sum() * 0.0
        states = self._states(texts, blocks)[is_known].float()
        columns, previous = columns[is_known], previous[is_known]
        slots = torch.arange(self.module.form.block, device=self._device)
        weights = torch.exp(-slots / _DECAY).expand(is_known.shape)[is_known]
        read = self.module.markov_from[previous]
        is_drafted = columns != UNKNOWN
        is_right = torch.zeros_like(is_drafted)
        total = torch.zeros((), device=self._device)
        if bool(is_drafted.any()):
            total, is_right[is_drafted] = summed_cross_entropy(
                (
                    (states[is_drafted], self.module.lm_head),
                    (read[is_drafted], self.module.markov_to),
                ),
                columns[is_drafted],
                weights[is_drafted],
                self._narrow,
            )
        odds = self.module.confidences(states, previous)
        confidence = F.binary_cross_entropy_with_logits(odds, is_right.float(), weights)
        return total + confidence * len(weights) / weights.sum()

    def _ranks(self, shard: Shard, texts: Tensor, num_ranks: int) -> Tensor:
        """Return the ranks of blocks at all answer positions. [blocks, depths]"""
        padded = pad_texts(shard, texts, self._device)
        blocks = _all_blocks(padded.is_answer)
        columns, previous, is_known = self._wanted(padded, blocks)
        scores = self.module.scores(self._states(padded, blocks).float(), previous)
        rank = torch.where(is_known, ranks_of(columns, scores, num_ranks), UNKNOWN)
        return rank[blocks.is_kept]

    def write(self, folder: Path, base_model: str) -> str:
        """Write the drafter in DeepSpec's layout."""
        form = self.module.form
        named = {name: published(tensor) for name, tensor in self._tensors().items()}
        if self._token_ids is not None:
            named["lm_head.weight"] = published(self.module.lm_head)
        settings = {
            "architectures": ["Qwen3DSparkModel"],
            **layer_settings(self.module.config),
            "block_size": form.block,
            "sample_from_anchor": True,
            "mask_token_id": form.mask_id,
            # Published files name layers by their outputs.
            "target_layer_ids": [tap - 1 for tap in self._taps],
            "num_target_layers": self._sizes.num_layers,
            "markov_rank": form.rank,
            "markov_head_type": "vanilla",
            "enable_confidence_head": True,
            "confidence_head_with_markov": True,
            "tie_word_embeddings": False,
        }
        self._write(folder, base_model, named, settings)
        return "dspark"

    def _tensors(self) -> dict[str, Tensor]:
        """Return the trained tensors by published name."""
        module = self.module
        found = {
            "fc.weight": module.fc.weight,
            "hidden_norm.weight": module.context_norm.weight,
            "norm.weight": module.last_norm.weight,
            "markov_head.markov_w1.weight": module.markov_from,
            "markov_head.markov_w2.weight": module.markov_to,
            "confidence_head.proj.weight": module.confidence.weight,
            "confidence_head.proj.bias": module.confidence.bias,
        }
        for number, layer in enumerate(module.layers):
            for part, name in _PARTS.items():
                found[f"layers.{number}.{name}.weight"] = getattr(layer, part).weight
        return found

    def _states(self, texts: PaddedTexts, blocks: _Blocks) -> Tensor:
        """Run the drafter on all blocks, and return its hidden states."""
        anchor_ids = texts.ids.gather(1, blocks.anchors)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._bf16):
            return self.module.states(texts.features, anchor_ids, blocks.anchors)

    def _wanted(self, texts: PaddedTexts, blocks: _Blocks) -> tuple[Tensor, Tensor, Tensor]:
        """Return each draft's target column, the token before it, and whether the answer has it.

        Tokens outside the draft vocabulary have the column UNKNOWN.
        """
        length, block = texts.ids.shape[1], self.module.form.block
        before = blocks.anchors[..., None] + torch.arange(block, device=self._device)

        def at(rows: Tensor, places: Tensor) -> Tensor:
            """Gather rows at block positions, clamped to the text."""
            found = rows.gather(1, places.clamp(max=length - 1).flatten(1))
            return found.view(places.shape)

        goes_on = at(texts.is_answer, before + 1) & (before + 1 < length)
        is_known = goes_on.cumprod(-1).bool() & blocks.is_kept[..., None]
        columns = self._columns.to(self._device)[at(texts.ids, before + 1)]
        return columns, at(texts.ids, before), is_known


def taps_of(num_layers: int) -> tuple[int, ...]:
    """Return evenly spread target layers, whose inputs are read.

    Published drafters end at the third last layer; here the last state is as close as possible to
    the
    target's output.
    """
    last = max(0, num_layers - 2)
    steps = torch.linspace(min(1, last), last, min(_MOST_TAPS, num_layers)).round().int().tolist()
    return tuple(sorted({step + 1 for step in steps}))


def mask_id_of(vectors: Tensor) -> int:
    """Return the last token whose embedding isn't tiny: any rare token serves as MASK.

    Args:
        vectors: The target's token embeddings. [vocabulary, hidden]
    """
    sizes = vectors.float().pow(2).mean(-1)
    return int((sizes >= sizes.median() / 4).nonzero()[-1])


def _random_blocks(is_answer: Tensor, max_blocks: int) -> _Blocks:
    """Return up to `max_blocks` blocks of each text, at random positions."""
    chances = torch.rand(is_answer.shape).to(is_answer.device)
    return _top_blocks(chances.masked_fill(~_possible_anchors(is_answer), -1.0), max_blocks)


def _all_blocks(is_answer: Tensor) -> _Blocks:
    """Return the blocks after all possible anchors (`_possible_anchors`), in order."""
    order = torch.linspace(1, 0, is_answer.shape[1], device=is_answer.device)
    chances = order.expand(is_answer.shape).masked_fill(~_possible_anchors(is_answer), -1.0)
    return _top_blocks(chances, is_answer.shape[1])


def _possible_anchors(is_answer: Tensor) -> Tensor:
    """Return the answer positions that have a token after and before them."""
    begins = F.pad(is_answer[:, 1:], (0, 1)) & is_answer
    begins[:, 0] = False
    return begins


def _top_blocks(chances: Tensor, max_blocks: int) -> _Blocks:
    """Return the blocks at the anchors of highest priority; negative ones are excluded."""
    count = max(1, min(max_blocks, int((chances >= 0).sum(1).max())))
    found = chances.topk(count, dim=1)
    return _Blocks(found.indices, found.values >= 0)
