"""Blocks of draft heads, read from the parts of a checkpoint.

Every published head has Llama's or Gemma's layers; kinds differ in what the first one reads, in
their norms, and in whether the target's states become keys and values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from medusa_core.heads.medusa import BuildLinear
from medusa_core.heads.tensor_reader import ReadTensor, need
from medusa_core.models.blocks.spec import AttentionSpec, MlpSpec
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import KvShape
from medusa_core.models.quant.combined_linear import join_linears
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.row_order import in_halves, interleave_rows
from medusa_core.runtime.backends.block import Attention, Block
from medusa_core.runtime.backends.convolution import DynamicConvolution
from medusa_core.runtime.backends.experts import Mlp
from medusa_core.runtime.backends.norm import RmsNorm, SplitQkNorm, widened


class BlockReader:
    """Reads the parts of a head's layers.

    Part names: `q`, `k`, `v`, `o` and their biases, `q_norm`, `k_norm`, `gate`, `up`, `down`;
    norms `attention_norm`, `post_attention_norm`, `mlp_norm`, `post_mlp_norm`; `scale`; convolution
    kernels and projections. All norms but `mlp_norm`, and `v`, are optional.
    """

    def __init__(
        self,
        config: ModelConfig,
        read_part: ReadTensor,
        build_linear: BuildLinear,
        is_interleaved: bool = False,
    ) -> None:
        """Prepare.

        Args:
            config: Sizes of the layers.
            read_part: Reads a part in the compute dtype on the device; None if it is missing.
            build_linear: Builds a linear layer from a weight and a bias, in the heads' format.
            is_interleaved: Whether rotated pairs of the checkpoint's heads are adjacent.
        """
        self._config, self._read_part, self._build_linear = config, read_part, build_linear
        self._is_interleaved = is_interleaved

    def read(self, prefix: str) -> Block:
        """Read a block with one fused projection to queries, keys and values."""
        spec = self._own_attention()
        q, kv, bias = self._qkv(prefix, spec)
        return self._block(prefix, 0, spec, self._build_linear(torch.cat([q, kv]), bias))

    def read_with_kv(self, prefix: str) -> tuple[Block, Attention]:
        """Read a block, and attention that projects to keys and values alone."""
        spec = self._own_attention()
        q, kv, bias = self._qkv(prefix, spec)
        # Features of the target need no queries, which are most of the projection's rows.
        query, key_value = self._build_linear(q, None), self._build_linear(kv, None)
        block = self._block(prefix, 0, spec, join_linears([query, key_value], bias))
        attention = block.attention
        assert attention is not None
        only_kv = key_value if bias is None else join_linears([key_value], bias[len(q) :])
        return block, only_keys_values(attention, only_kv)

    def read_queries(self, prefix: str, index: int, rows: KvShape) -> Block:
        """Read a block whose attention has no keys and values of its own.

        Args:
            prefix: What names of its parts begin with.
            index: Its layer.
            rows: Sizes of the keys and values that it reads.
        """
        spec = replace(
            self._attention_spec(index),
            num_kv_heads=rows.num_kv_heads,
            head_dim=rows.head_dim,
            kv_layer=index,
            k_eq_v=False,
            v_norm=False,
        )
        q, bias = self._interleaved(self._need(prefix, "q"), spec), None
        if (q_bias := self._read_part(f"{prefix}q_bias")) is not None:
            bias = self._interleaved(q_bias, spec)
        return self._block(prefix, index, spec, self._build_linear(q, bias))

    def _own_attention(self) -> AttentionSpec:
        """Return settings of attention with keys and values of its own."""
        return replace(self._attention_spec(0), rope=0)

    def _attention_spec(self, index: int) -> AttentionSpec:
        """Return settings of attention; masks come with the rows."""
        spec = self._config.blocks[index].attention
        assert spec is not None  # every published head attends
        return replace(spec, sliding_window=None)

    def _block(self, prefix: str, index: int, spec: AttentionSpec, qkv: QuantLinear) -> Block:
        """Read the MLP, norms and convolutions of a block and compose it."""
        build_linear, block = self._build_linear, self._config.blocks[index]
        gate_up = torch.cat([self._need(prefix, "gate"), self._need(prefix, "up")])
        first, second = (self._convolution(prefix, half) for half in ("attention", "mlp"))
        assert isinstance(block.mlp, MlpSpec)
        down = self._need(prefix, "down")
        return Block(
            block,
            mixers=(self._attention(prefix, spec, qkv),),
            mlp=Mlp(block.mlp, build_linear(gate_up, None), build_linear(down, None)),
            pre_norm=self._norm(prefix, "attention_norm"),
            post_norm=self._norm(prefix, "post_attention_norm"),
            pre_mlp_norm=self._norm(prefix, "mlp_norm"),
            post_mlp_norm=self._norm(prefix, "post_mlp_norm"),
            scale=self._read_part(f"{prefix}scale"),
            convolutions=None if first is None or second is None else (first, second),
        )

    def _attention(self, prefix: str, spec: AttentionSpec, qkv: QuantLinear) -> Attention:
        """Read the output projection and norms of attention."""
        output, v_norm = self._need(prefix, "o"), None
        if spec.k_eq_v and self._is_interleaved:
            # Such values come out in halves, as those of other checkpoints are stored.
            output = in_halves(output.view(len(output), -1, spec.head_dim)).flatten(1)
        if spec.v_norm:
            ones = output.new_ones(spec.head_dim)
            v_norm = RmsNorm(widened(ones), self._config.rms_norm_eps)
        return Attention(
            spec,
            qkv=qkv,
            output=self._build_linear(output, self._read_part(f"{prefix}o_bias")),
            qk_norm=self._qk_norm(prefix, spec),
            v_norm=v_norm,
        )

    def _qkv(self, prefix: str, spec: AttentionSpec) -> tuple[Tensor, Tensor, Tensor | None]:
        """Weights of queries, of keys and values, and the bias of all."""
        q, k = (self._interleaved(self._need(prefix, part), spec) for part in "qk")
        v = self._read_part(f"{prefix}v")
        bias = None
        if self._read_part(f"{prefix}q_bias") is not None:
            biases = [self._need(prefix, f"{part}_bias") for part in "qkv"]
            rotated = (self._interleaved(one, spec) for one in biases[:2])
            bias = torch.cat([*rotated, biases[2]])
        return q, k if v is None else torch.cat([k, v]), bias

    def _qk_norm(self, prefix: str, spec: AttentionSpec) -> SplitQkNorm | None:
        """Read the norms of queries and keys; None without."""
        eps, kv_width = self._config.rms_norm_eps, spec.owned_kv_heads * spec.head_dim
        q, k = (
            None if weight is None else RmsNorm(widened(self._interleaved(weight, spec)), eps)
            for weight in (self._read_part(f"{prefix}{part}_norm") for part in "qk")
        )
        return None if q is None else SplitQkNorm(q, k, spec.inner, kv_width)

    def _norm(self, prefix: str, part: str) -> RmsNorm | None:
        """Read a norm; None if the head lacks it."""
        weight = self._read_part(f"{prefix}{part}")
        return None if weight is None else RmsNorm(weight, self._config.rms_norm_eps)

    def _convolution(self, prefix: str, half: str) -> DynamicConvolution | None:
        """Read a dynamic convolution (DFlash2); None without."""
        kernels = self._read_part(f"{prefix}{half}_convolution_kernels")
        if kernels is None:
            return None
        projection = self._need(prefix, f"{half}_convolution_projection")
        return DynamicConvolution(kernels, self._build_linear(projection, None))

    def _need(self, prefix: str, part: str) -> Tensor:
        """Read a part that must exist."""
        return need(self._read_part, f"{prefix}{part}")

    def _interleaved(self, rows: Tensor, spec: AttentionSpec) -> Tensor:
        """Reorder rows or norm weights to interleaved RoPE."""
        if self._is_interleaved:
            return rows
        return interleave_rows(rows, spec.head_dim, spec.rotary_dim)


def only_keys_values(attention: Attention, qkv: QuantLinear) -> Attention:
    """Return attention that projects to keys and values alone.

    Args:
        attention: Attention.
        qkv: Its projection to keys and values.
    """
    norm = attention.qk_norm
    assert norm is None or isinstance(norm, SplitQkNorm)  # of heads
    return replace(
        attention,
        spec=replace(attention.spec, num_heads=0),
        qkv=qkv,
        qk_norm=None if norm is None else norm.of_keys,
    )


def vector_bytes(blocks: Iterable[Block]) -> int:
    """Bytes of what isn't a linear layer: norms with their epsilons, scales and kernels."""
    return sum(norm_bytes(_norms(block)) + _other_bytes(block) for block in blocks)


def norm_bytes(norms: Iterable[RmsNorm]) -> int:
    """Bytes of norms with their epsilons."""
    return sum(norm.weight.nbytes + norm.weight.itemsize for norm in norms)


def _norms(block: Block) -> Iterator[RmsNorm]:
    """Yield all norms of a block."""
    every = [block.pre_norm, block.post_norm, block.pre_mlp_norm, block.post_mlp_norm]
    qk_norm = None if block.attention is None else block.attention.qk_norm
    if isinstance(qk_norm, SplitQkNorm):
        every += [qk_norm.q_norm, qk_norm.k_norm]
    yield from (norm for norm in every if norm is not None)


def _other_bytes(block: Block) -> int:
    """Return the bytes of a block's scale and convolution kernels."""
    kernels = sum(one.kernels.nbytes for one in block.convolutions or ())
    return kernels + (0 if block.scale is None else block.scale.nbytes)
