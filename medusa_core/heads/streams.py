"""Speculative streams at run time: extra rows in the last layers of the target.

Stream j of a token starts, in the first of these layers, from the layer's input h at the token and
a learned vector: s = h + U V h + p_j. In each layer it attends to the target's rows up to the token
and to streams 1 … j; none of these rows are kept. After the final norm, the target's output
projection predicts the token j positions after the next one.

LoRA adapters change the target's layers for the streams alone, so that the target's own output
stays exactly the same. In the paper they change both, as the target is tuned for a task at once.

The target's keys and values in these layers are recomputed from the layers' inputs and kept in a
separate cache. So streams work with every runner, whatever the format of its cache.

Source: Speculative Streaming (Bhendawade et al. 2024), sections 3.1 and 3.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from medusa_core.heads.cached import CachedHeads
from medusa_core.heads.compiled_ranking import SHARPNESS, noises_of, rank_compiled
from medusa_core.heads.medusa import BuildLinear, SharedWeights
from medusa_core.heads.ranked import Ranked, best_of, noised
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.combined_linear import AdaptedLinear
from medusa_core.models.quant.layout import QuantLinear, linears_of
from medusa_core.models.quant.native_linear import share_threads
from medusa_core.models.row_order import interleave_rows
from medusa_core.runtime.backends.block import Block
from medusa_core.runtime.backends.caches import SequenceRows, causal_mask
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.backends.experts import Mlp
from medusa_core.runtime.backends.torch_blocks import PassContext, project, run_block
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.runtime.tree.step import Chance
from medusa_core.system.native.pool import Workers

LINEARS = ("qkv", "output", "gate_up", "down")  # adapted linear layers of a block
FILE = "streams.safetensors"  # in a folder of streams
EMBEDDINGS = "stream_embeddings"
ReadStreamTensor = Callable[[str], Tensor]
_MOST_CANDIDATES = 4096


@dataclass(frozen=True, slots=True)
class StreamSizes:
    """Sizes of speculative streams, and shapes of their tensors.

    Attributes:
        num_streams: Tokens drafted after the next one.
        first_layer: The target's layer in which streams start.
        num_layers: Number of the target's layers.
        rank: Rank of the adapters.
        hidden: Width of the target.
        q_rows: Outputs of the query projection.
        qkv_rows: Outputs of the fused projection.
        inner: Width of the target's MLP.
        vocab_size: Size of the target's vocabulary.
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
        """Outputs and inputs of each adapted linear layer."""
        return {
            "qkv": (self.qkv_rows, self.hidden),
            "output": (self.hidden, self.q_rows),
            "gate_up": (2 * self.inner, self.hidden),
            "down": (self.hidden, self.inner),
        }

    @property
    def adapters(self) -> dict[str, tuple[int, int]]:
        """Outputs and inputs of each adapter, by the prefix of its tensors."""
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
        """Shapes of all tensors by name."""
        shapes: dict[str, tuple[int, ...]] = {EMBEDDINGS: (self.num_streams, self.hidden)}
        for name, (outputs, inputs) in self.adapters.items():
            shapes[f"{name}.lora_A"] = (self.rank, inputs)
            shapes[f"{name}.lora_B"] = (outputs, self.rank)
        return shapes


class StreamHeads(CachedHeads):
    """Speculative streams: extra rows through the target's last layers that draft its next tokens.

    Attributes:
        num_heads: Number of streams.
        taps: The target's layers that streams run through.
    """

    def __init__(
        self,
        sizes: StreamSizes,
        config: ModelConfig,
        read_part: ReadStreamTensor,
        shared_weights: SharedWeights,
        build_linear: BuildLinear,
        precision: Precision,
    ) -> None:
        """Read the weights.

        Args:
            sizes: Sizes of the streams, which fit the target.
            config: Sizes of the target.
            read_part: Reads a tensor in the compute dtype on the device.
            shared_weights: Weights of the target, with a decoder of Llama-like blocks.
            build_linear: Builds a linear layer from a weight and a bias, in the heads' format.
            precision: Dtypes and device.
        """
        assert shared_weights.decoder is not None  # checked with the sizes
        taps = tuple(range(sizes.first_layer, sizes.num_layers))
        super().__init__(config.with_blocks(config.blocks[: len(taps)]), precision)
        self.num_heads, self.taps = sizes.num_streams, taps
        self._decoder: Decoder = shared_weights.decoder
        self._shared_weights = shared_weights
        self._vectors = read_part(EMBEDDINGS)
        adapters = {
            name: (
                build_linear(read_part(f"{name}.lora_A"), None),
                build_linear(read_up_projection(name, read_part, config), None),
            )
            for name in sizes.adapters
        }
        self._linears = [linear for pair in adapters.values() for linear in pair]
        self._init = adapters["stream_init"]
        self._target_blocks = [self._decoder.blocks[layer] for layer in taps]

        def adapted(index: int) -> Block:
            """Return a block of the target with this layer's adapters."""

            def adapt(part: str, base: QuantLinear) -> QuantLinear:
                """Add a LoRA to a linear layer."""
                down, up = adapters[f"layers.{taps[index]}.{part}"]
                outputs = sizes.widths[part][0]
                return AdaptedLinear([base, down, up], [(slice(0, sizes.rank), 0, outputs)])

            return adapted_block(self._target_blocks[index], adapt)

        self._blocks = [adapted(index) for index in range(len(taps))]

    @property
    def linears(self) -> list[QuantLinear]:
        """Linear layers of its own: the adapters."""
        return self._linears

    @property
    def nbytes(self) -> int:
        """Bytes of its weights, without shared weights and caches."""
        return self._vectors.nbytes + sum(linear.nbytes for linear in self.linears)

    def share_workers(self, workers: Workers) -> None:
        """Let the target's worker threads compute the streams, too."""
        lent = linears_of(self._target_blocks)
        share_threads((*self.linears, *lent, self._shared_weights.lm_head), workers)

    def store_keys_values(self, deep: Tensor, position: int, kv: KvCache) -> None:
        """Compute and store the target's keys and values of consecutive tokens.

        Args:
            deep: Inputs of `taps`, concatenated. [n, taps · hidden]
            position: Position of the first token.
            kv: Cache from `new_cache`; gets a row per token.
        """
        assert isinstance(kv, TensorCache)
        count = len(deep)
        entering = self._placed(deep).chunk(len(self.taps), dim=1)
        context = self._context(position, count, kv)
        kv.reserve(count)
        for index, (x, block) in enumerate(zip(entering, self._target_blocks, strict=True)):
            kv.write(index, keys_values(block, x.contiguous(), context))
        kv.commit(range(count))

    def states(self, entering: Tensor, position: int, kv: KvCache, num_streams: int) -> Tensor:
        """Run the first streams of a token.

        Args:
            entering: Input of the first of `taps` at the token. [hidden]
            position: Position of the token.
            kv: Cache of its row and those before.
            num_streams: Number of streams to run.

        Returns:
            States after the final norm. [num_streams, hidden]
        """
        assert isinstance(kv, TensorCache)
        start = self._placed(entering).unsqueeze(0)
        inner, outer = self._init
        x = start + outer(inner(start)) + self._vectors[:num_streams]
        context = self._context(position + 1, num_streams, kv)
        kv.reserve(num_streams)  # and never committed
        mask = causal_mask(kv.length, num_streams, self._precision.scores, x.device)
        rows = [SequenceRows(slice(0, num_streams), mask.repeat(context.group, 1), kv)]
        for index, block in enumerate(self._blocks):
            x = run_block(index, block, x, context, rows)
        return self._decoder.final_norm(x)

    def ranked(
        self,
        entering: Tensor,
        position: int,
        kv: KvCache,
        num_streams: int,
        num_ranks: int,
        chance: Chance | None = None,
    ) -> Ranked:
        """Return the best tokens of the first streams; see `states`.

        Args:
            entering: See `states`.
            position: See `states`.
            kv: See `states`.
            num_streams: See `states`.
            num_ranks: Number of tokens per stream.
            chance: Adds the sampling noise that the target will draw; ranks include it.
        """
        scores = self.scores(self.states(entering, position, kv, num_streams))
        num_ranks = min(num_ranks, scores.shape[-1])
        noises = noises_of(chance, range(1, 1 + len(scores)), scores.shape[-1])
        found = rank_compiled(scores, num_ranks, None, noises, SHARPNESS)
        if found is not None:
            return Ranked.of_compiled(found, scores, is_noisy=bool(noises))
        if chance is None:
            columns, chances = best_of(scores, num_ranks)
            return Ranked(columns, columns, scores, chances)
        likely = scores.topk(min(scores.shape[-1], _MOST_CANDIDATES), dim=-1)
        token_ids = likely.indices.cpu()
        shifted = chance(likely.values.cpu(), token_ids)
        places = shifted.topk(num_ranks, dim=-1).indices
        columns = token_ids.gather(1, places).tolist()
        return Ranked(columns, columns, scores, noised=noised(shifted, places.tolist()))

    def scores(self, states: Tensor) -> Tensor:
        """Compute logits. [n, hidden] → [n, vocabulary], float32 or better"""
        wide = torch.promote_types(self._precision.compute, torch.float32)
        return self._shared_weights.lm_head(states).to(wide)

    def _placed(self, rows: Tensor) -> Tensor:
        """Move rows to the heads' device and dtype."""
        return rows.to(self._precision.device, self._precision.compute)

    def _context(self, position: int, count: int, kv: KvCache) -> PassContext:
        """Return the context of rows at consecutive positions."""
        positions = torch.arange(position, position + count, device=self._precision.device)
        return self._decoder.begin(positions, max(kv.capacity, position + count) + 1)


def adapted_block(block: Block, adapt: Callable[[str, QuantLinear], QuantLinear]) -> Block:
    """Return a block of the target with other linear layers.

    Args:
        block: Block of attention and an MLP.
        adapt: Returns the layer that replaces one of `LINEARS`.
    """
    attention, mlp = block.attention, block.mlp
    assert attention is not None  # Llama-like blocks have one
    assert isinstance(mlp, Mlp)
    qkv, output = adapt("qkv", attention.qkv), adapt("output", attention.output)
    return replace(
        block,
        mixers=(replace(attention, qkv=qkv, output=output),),
        mlp=replace(mlp, gate_up=adapt("gate_up", mlp.gate_up), down=adapt("down", mlp.down)),
    )


def keys_values(block: Block, x: Tensor, context: PassContext) -> Tensor:
    """Compute keys and values of a block's attention.

    Args:
        block: Block with attention.
        x: Input of the block. [n, hidden]
        context: Context of the pass.

    Returns:
        [n, 2 · kv heads, head_dim]
    """
    attention = block.attention
    assert attention is not None  # Llama-like blocks have one
    rotated, _ = project(attention, x if block.pre_norm is None else block.pre_norm(x), context)
    return rotated[:, attention.spec.num_heads :]


def read_up_projection(name: str, read_part: ReadStreamTensor, config: ModelConfig) -> Tensor:
    """Read an adapter's B, with its rows in the order of the loaded target's layer."""
    outer = read_part(f"{name}.lora_B")
    if not name.endswith(".qkv"):
        return outer
    num_rotated = (config.num_heads + config.num_kv_heads) * config.head_dim
    rotated = interleave_rows(outer[:num_rotated], *config.head_rows)
    return torch.cat([rotated, outer[num_rotated:]])
