"""Speculative streams in memory: rows that run beside the target's through its last layers.

Stream j of a token begins, in the first of these layers, with what enters it of the token and a
vector of its own: s = h + U V h + p_j. In every layer it reads keys and values of the target's rows
up to the token, and those of streams 1 … j; none of it is kept. Behind the final norm the target's
projection says what stands j places behind the next token.

Adapters of low rank (LoRA) change the target's layers for these rows alone: the target's own rows
pass through as before, so that its text is exactly its own. In the paper they change both, as it
tunes the target for a task at once.

The target's keys and values of these layers are computed a second time from what enters them, and
kept in a cache of the streams' own. So any runner serves, whatever form its cache has.

Source: Speculative Streaming (Bhendawade et al. 2024), sections 3.1 and 3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from medusa_core.heads.cached import CachedHeads
from medusa_core.heads.medusa import MakeLinear, SharedWeights
from medusa_core.heads.ranked import Drawn, Ranked, best_of
from medusa_core.models.blocks.block import Attention, Block, linears_of
from medusa_core.models.blocks.caches import SequenceRows, causal_mask
from medusa_core.models.blocks.torch_blocks import PassContext, project, run_block
from medusa_core.models.config import ModelConfig
from medusa_core.models.decoder import Decoder
from medusa_core.models.experts import Mlp
from medusa_core.models.precision import Precision
from medusa_core.models.quant.combined_linear import AdaptedLinear
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import share_threads
from medusa_core.models.rope import interleave_rows
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.runtime.tree.step import Chance
from medusa_core.system.native.pool import Workers

LINEARS = ("qkv", "output", "gate_up", "down")  # of a block
FILE = "streams.safetensors"  # in a folder of them
EMBEDDINGS = "stream_embeddings"
TakeStreamTensor = Callable[[str], Tensor]
_MOST_CANDIDATES = 4096


@dataclass(frozen=True, slots=True)
class StreamSizes:
    """Sizes of streams.

    Attributes:
        num_streams: How many tokens behind the next one are drafted.
        first_layer: The target's layer in which they begin.
        num_layers: The target's layers.
        rank: Of every adapter.
        hidden: Width of the target.
        q_rows: Numbers of all query heads together.
        qkv_rows: These, and those of all keys and values.
        inner: Width of the target's MLP.
        vocab_size: The target's tokens.
    """

    num_streams: int
    first_layer: int
    num_layers: int
    rank: int
    hidden: int
    q_rows: int
    qkv_rows: int
    inner: int
    vocab_size: int

    @property
    def widths(self) -> dict[str, tuple[int, int]]:
        """Outputs and inputs of the layers that adapters change, by name."""
        return {
            "qkv": (self.qkv_rows, self.hidden),
            "output": (self.hidden, self.q_rows),
            "gate_up": (2 * self.inner, self.hidden),
            "down": (self.hidden, self.inner),
        }

    @property
    def adapters(self) -> dict[str, tuple[int, int]]:
        """Outputs and inputs of every adapter, by the beginning of its tensors' names."""
        square = (self.hidden, self.hidden)
        layers = range(self.first_layer, self.num_layers)
        of_layers = {
            f"layers.{layer}.{part}": sizes
            for layer in layers
            for part, sizes in self.widths.items()
        }
        return {"stream_init": square, **of_layers}

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all tensors, by name."""
        shapes: dict[str, tuple[int, ...]] = {EMBEDDINGS: (self.num_streams, self.hidden)}
        for name, (outputs, inputs) in self.adapters.items():
            shapes[f"{name}.lora_A"] = (self.rank, inputs)
            shapes[f"{name}.lora_B"] = (outputs, self.rank)
        return shapes


class StreamHeads(CachedHeads):
    """See the module.

    Attributes:
        num_heads: How many streams there are.
        taps: The target's layers beside whose rows streams run.
    """

    def __init__(
        self,
        sizes: StreamSizes,
        config: ModelConfig,
        take: TakeStreamTensor,
        shared_weights: SharedWeights,
        make: MakeLinear,
        precision: Precision,
    ) -> None:
        """Take the weights.

        Args:
            sizes: Of the streams; they fit the target.
            config: Sizes of the target.
            take: A tensor by its name, in the compute dtype on the device.
            shared_weights: What the target lends them; its decoder has ordinary blocks.
            make: Makes a layer of a weight and a bias, in the heads' format.
            precision: Where and in which dtype they run.
        """
        assert shared_weights.decoder is not None  # whoever read the names has seen to it
        taps = tuple(range(sizes.first_layer, sizes.num_layers))
        super().__init__(config.with_blocks(config.blocks[: len(taps)]), precision)
        self.num_heads, self.taps = sizes.num_streams, taps
        self._decoder: Decoder = shared_weights.decoder
        self._shared_weights = shared_weights
        self._vectors = take(EMBEDDINGS)
        adapters = {
            name: (make(take(f"{name}.lora_A"), None), make(outer_of(name, take, config), None))
            for name in sizes.adapters
        }
        self._linears = [linear for pair in adapters.values() for linear in pair]
        self._init = adapters["stream_init"]
        self._target_blocks = [self._decoder.blocks[layer] for layer in taps]

        def adapted(index: int) -> Block:
            def adapt(part: str, base: QuantLinear) -> QuantLinear:
                down, up = adapters[f"layers.{taps[index]}.{part}"]
                outputs = sizes.widths[part][0]
                return AdaptedLinear([base, down, up], [(slice(0, sizes.rank), 0, outputs)])

            return adapted_block(self._target_blocks[index], index, adapt)

        self._blocks = [adapted(index) for index in range(len(taps))]

    @property
    def linears(self) -> list[QuantLinear]:
        return self._linears

    @property
    def nbytes(self) -> int:
        return self._vectors.nbytes + sum(linear.nbytes for linear in self.linears)

    def share_workers(self, workers: Workers) -> None:
        """Let the target's threads compute the adapters, and the target's layers for streams."""
        lent = linears_of(self._target_blocks)
        share_threads((*self.linears, *lent, self._shared_weights.lm_head), workers)

    def remember(self, deep: Tensor, place: int, kv: KvCache) -> None:
        """Keep the target's keys and values of consecutive tokens.

        Args:
            deep: What enters `taps`, side by side. [n, taps · hidden]
            place: Of the first token.
            kv: From `new_cache`; takes the rows.
        """
        assert isinstance(kv, TensorCache)
        count = len(deep)
        entering = self._placed(deep).chunk(len(self.taps), dim=1)
        context = self._context(place, count, kv)
        kv.reserve(count)
        for index, (x, block) in enumerate(zip(entering, self._target_blocks, strict=True)):
            kv.write(index, keys_values(block, x.contiguous(), context))
        kv.commit(range(count))

    def states(self, entering: Tensor, place: int, kv: KvCache, num_streams: int) -> Tensor:
        """What the first streams of a token leave behind the final norm.

        Args:
            entering: What enters the first of `taps` there. [hidden]
            place: Of the token.
            kv: Holds its row and those before.
            num_streams: How many are wanted.

        Returns:
            [num_streams, hidden]
        """
        assert isinstance(kv, TensorCache)
        start = self._placed(entering).unsqueeze(0)
        inner, outer = self._init
        x = start + outer(inner(start)) + self._vectors[:num_streams]
        context = self._context(place + 1, num_streams, kv)
        kv.reserve(num_streams)  # and never committed
        mask = causal_mask(kv.length, num_streams, self._precision.scores, x.device)
        rows = [SequenceRows(slice(0, num_streams), mask.repeat(context.group, 1), kv)]
        for index, block in enumerate(self._blocks):
            x = run_block(index, block, x, context, rows)
        return self._decoder.final_norm(x)

    def ranked(
        self,
        entering: Tensor,
        place: int,
        kv: KvCache,
        num_streams: int,
        num_ranks: int,
        chance: Chance | None = None,
    ) -> Ranked:
        """The best tokens of the first streams; arguments as in `states`.

        Args:
            entering: See there.
            place: See there.
            kv: See there.
            num_streams: See there.
            num_ranks: How many tokens are wanted of each.
            chance: What will be added to the target's scores behind the root: then the best tokens
                are those that are best with it.
        """
        scores = self.scores(self.states(entering, place, kv, num_streams))
        num_ranks = min(num_ranks, scores.shape[-1])
        if chance is None:
            columns, chances = best_of(scores, num_ranks)
            return Ranked(columns, columns, scores, chances)
        likely = scores.topk(min(scores.shape[-1], _MOST_CANDIDATES), dim=-1)
        token_ids = likely.indices.cpu()
        shifted = chance(likely.values.cpu(), token_ids)
        places = shifted.topk(num_ranks, dim=-1).indices
        columns = token_ids.gather(1, places).tolist()
        return Ranked(columns, columns, scores, drawn=Drawn(shifted, places.tolist()))

    def scores(self, states: Tensor) -> Tensor:
        """The projection's scores. [n, hidden] → [n, vocabulary], float32 or better"""
        wide = torch.promote_types(self._precision.compute, torch.float32)
        return self._shared_weights.lm_head(states).to(wide)

    def _placed(self, rows: Tensor) -> Tensor:
        return rows.to(self._precision.device, self._precision.compute)

    def _context(self, place: int, count: int, kv: KvCache) -> PassContext:
        """Return the context of rows at consecutive positions."""
        positions = torch.arange(place, place + count, device=self._precision.device)
        return self._decoder.begin(positions, max(kv.capacity, place + count) + 1)


def adapted_block(
    block: Block, kv_layer: int, adapt: Callable[[str, QuantLinear], QuantLinear]
) -> Block:
    """Return a block of the target with other linear layers.

    Args:
        block: Block of attention and an MLP.
        kv_layer: Layer of the streams' cache.
        adapt: Returns the layer that replaces one of `LINEARS`.
    """
    (branch,), mlp = block.branches, block.mlp
    attention = branch.mixer
    assert isinstance(attention, Attention)  # as in all of Llama's relatives
    assert isinstance(mlp, Mlp)
    adapted = replace(
        attention,
        qkv=adapt("qkv", attention.qkv),
        output=adapt("output", attention.output),
        kv_layer=kv_layer,
    )
    return replace(
        block,
        branches=(replace(branch, mixer=adapted),),
        mlp=replace(mlp, gate_up=adapt("gate_up", mlp.gate_up), down=adapt("down", mlp.down)),
    )


def keys_values(block: Block, x: Tensor, context: PassContext) -> Tensor:
    """Return the keys and values that a block's attention makes of its input.

    Args:
        block: Block with attention.
        x: Input of the block. [n, hidden]
        context: Context of the pass.

    Returns:
        [n, 2 · kv heads, head_dim]
    """
    attention = block.attention
    assert attention is not None  # as in all of Llama's relatives
    rotated, _ = project(attention, x if block.pre_norm is None else block.pre_norm(x), context)
    return rotated[:, attention.num_heads :]


def outer_of(name: str, take: TakeStreamTensor, config: ModelConfig) -> Tensor:
    """The outer half of an adapter, its rows in the order that the target's layer has here."""
    outer = take(f"{name}.lora_B")
    if not name.endswith(".qkv"):
        return outer
    num_turned = (config.num_heads + config.num_kv_heads) * config.head_dim
    turned = interleave_rows(outer[:num_turned], *config.head_rows)
    return torch.cat([turned, outer[num_turned:]])
