"""Hydra heads: each reads the drafts before its own (the published architecture `mlp`).

`hydra_mlp.{head}.{layer}.linear.{weight,bias}`, in a head's first layer
`hydra_mlp.{head}.0.res_connection.{weight,bias}` too, and `hydra_lm_head.{head}.weight`, with or
without a bias. The tensors determine their number; `config.json` must agree.

Heads trained by this program are smaller: without `res_connection` the target's state is the
residual of the first layer; `lm_head.weight` is shared by all heads, and `token_map`, as in vLLM,
has the token id of each row. Without `lm_head.weight` the rows are token embeddings of a target
with tied embeddings.

Source: zankner/Hydra, `hydra/model/hydra_heads/mlp_head.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from medusa_core.errors import HeadsError
from medusa_core.heads.checks import check_sizes, check_tensors, listed
from medusa_core.heads.head_files import HeadFiles
from medusa_core.heads.hydra import HydraHead, HydraHeads
from medusa_core.heads.kind import HeadKind
from medusa_core.heads.medusa import BuildLinear, HeadsTarget, SharedWeights
from medusa_core.heads.tensor_reader import linears_of, read_tensor
from medusa_core.i18n import tr
from medusa_core.messages import HeadsShape
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.weights import no_memory
from medusa_core.system.files.safetensors_header import TensorShapes

_NUMBER = r"(0|[1-9]\d{0,3})"
_NAME = re.compile(
    rf"hydra_mlp\.{_NUMBER}\.{_NUMBER}\.(?:linear|res_connection)\.(?:weight|bias)"
    rf"|hydra_lm_head\.{_NUMBER}\.(?:weight|bias)|lm_head\.weight|token_map"
)
# Prefixes of tensors of the other published architectures.
_OTHERS = ("prefix_embeding_layer.", "cross_attn.", "attn.", "fc.")
_MOST_HEADS = 32  # a tree is no deeper
_AGAIN = tr("Download the heads again.")
_ONLY_MLP = tr("Choose Hydra heads of the architecture mlp, or Medusa heads for this model.")


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Sizes of the heads in a file.

    Attributes:
        num_heads: Number of heads.
        num_layers: Layers per head.
        hidden: Width.
        columns: Outputs of each projection.
        has_bias: Whether the projections have biases.
        has_residual_projection: First layers have R; else the residual is the target's state.
        projection: `own` for one per head, `one` for a shared one, or `vectors` for the target's
            embeddings.
        is_mapped: Whether `token_map` gives the token of each column.
    """

    num_heads: int
    num_layers: int
    hidden: int
    columns: int
    has_bias: bool
    has_residual_projection: bool
    projection: str
    is_mapped: bool

    @property
    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all tensors by name."""
        shapes: dict[str, tuple[int, ...]] = {}
        square = (self.hidden, self.hidden)
        for head in range(self.num_heads):
            reads = (self.hidden, (head + 2) * self.hidden)  # the state, the root and the path
            for layer in range(self.num_layers):
                name = f"hydra_mlp.{head}.{layer}"
                has_residual_projection = layer == 0 and self.has_residual_projection
                parts = ("linear", "res_connection") if has_residual_projection else ("linear",)
                for part in parts:
                    shapes[f"{name}.{part}.weight"] = square if layer else reads
                    shapes[f"{name}.{part}.bias"] = (self.hidden,)
            if self.projection == "own":
                shapes[f"hydra_lm_head.{head}.weight"] = (self.columns, self.hidden)
            if self.has_bias:
                shapes[f"hydra_lm_head.{head}.bias"] = (self.columns,)
        if self.projection == "one":
            shapes["lm_head.weight"] = (self.columns, self.hidden)
        if self.is_mapped:
            shapes["token_map"] = (self.columns,)
        return shapes

    @property
    def shape(self) -> HeadsShape:
        """Sizes for plans and lists of heads."""
        hidden, deeper = self.hidden, self.num_layers - 1
        matrices: list[tuple[int, int]] = []
        for head in range(self.num_heads):
            matrices.append(((1 + self.has_residual_projection) * hidden, (head + 2) * hidden))
            matrices += [(hidden, hidden)] * deeper
        number = self.num_heads if self.projection == "own" else 1
        matrices += [(self.columns, hidden)] * number
        of_one = (1 + self.has_residual_projection + deeper) * hidden + self.has_bias * self.columns
        return HeadsShape(
            num_heads=self.num_heads,
            num_layers=self.num_layers,
            columns=self.columns,
            hidden_size=hidden,
            is_reduced=self.is_mapped,
            reads_root=True,
            has_one_projection=self.projection != "own",
            kind="hydra",
            matrices=tuple(matrices),
            num_biases=self.num_heads * of_one,
        )


def _owns(names: frozenset[str]) -> bool:
    """Whether tensors of these names are Hydra heads."""
    return any(name.startswith(("hydra_mlp.", "hydra_lm_head.")) for name in names)


def _shape_among(shapes: TensorShapes, settings: Mapping[str, object]) -> HeadsShape:
    """Return the sizes of heads from their tensors."""
    return _checked_sizes(shapes, settings).shape


def _checked_sizes(shapes: TensorShapes, settings: Mapping[str, object]) -> _Sizes:
    """Return the sizes of the tensors.

    Raises:
        HeadsError: They are incomplete, of another architecture, or contradict `config.json`.
    """
    _check_architecture(settings)
    sizes = _sizes_of(shapes)
    _check_counts(sizes, settings)
    return sizes


def _read(files: HeadFiles, target: HeadsTarget) -> HydraHeads:
    """Load the heads for a target.

    Raises:
        CheckpointError: A file is damaged, or holds no floating-point tensors.
        HeadsError: They are malformed, or made for another target.
        OutOfMemoryError: They don't fit into memory.
    """
    config, precision, shared_weights, formats = target
    # Check shapes first: the heads may be larger than the free memory.
    checkpoint, sizes = files.checkpoint, _checked_sizes(files.shapes, files.settings)
    token_map = checkpoint.integers("token_map") if sizes.is_mapped else None
    _check_fit(sizes, token_map, config)

    read = partial(read_tensor, checkpoint, precision)
    build_linear = linears_of(formats, precision)
    try:
        shared = _shared_projection(sizes, token_map, read, shared_weights, precision)
        one = None if shared is None else build_linear(shared, None)
        heads = (
            _read_head(head, sizes, read, build_linear, one) for head in range(sizes.num_heads)
        )
        return HydraHeads(heads, sizes.columns, shared_weights, precision.compute, token_map)
    except torch.OutOfMemoryError as error:
        raise no_memory(tr("the Hydra heads")) from error


def _check_fit(sizes: _Sizes, token_map: Tensor | None, config: ModelConfig) -> None:
    """Check that heads were made for this target."""
    if token_map is None:
        return check_sizes(sizes.hidden, sizes.columns, config)
    check_sizes(sizes.hidden, config.vocab_size, config)
    ids = token_map.tolist()
    if not ids or min(ids) < 0 or max(ids) >= config.vocab_size or len(set(ids)) < len(ids):
        raise HeadsError(
            "token_map names tokens that the model hasn't, or one twice.",
            "Choose the heads that were trained for this model.",
        )
    if sizes.projection == "vectors" and not config.tie_embeddings:
        raise HeadsError(
            "These heads project by the model's token vectors, and this model doesn't.",
            "Choose the heads that were trained for this model.",
        )
    return None


def _shared_projection(
    sizes: _Sizes,
    token_map: Tensor | None,
    read: Callable[[str], Tensor],
    shared_weights: SharedWeights,
    precision: Precision,
) -> Tensor | None:
    """Return the projection that all heads share; None if each has its own."""
    if sizes.projection == "own":
        return None
    if sizes.projection == "one":
        return read("lm_head.weight")
    assert token_map is not None  # by `_sizes_of`
    return shared_weights.embedding.rows(token_map).to(precision.device, precision.compute)


def _read_head(
    head: int,
    sizes: _Sizes,
    read: Callable[[str], Tensor],
    build_linear: BuildLinear,
    shared_projection: QuantLinear | None,
) -> HydraHead:
    """Read the layers of one head."""

    def layer(name: str) -> tuple[Tensor, Tensor]:
        """Read weight and bias of a layer."""
        return read(f"{name}.weight"), read(f"{name}.bias")

    name, end = f"hydra_mlp.{head}", f"hydra_lm_head.{head}"
    parts = ("linear", "res_connection") if sizes.has_residual_projection else ("linear",)
    both = zip(*(layer(f"{name}.0.{part}") for part in parts), strict=True)
    first = build_linear(*(torch.cat(pair) for pair in both))
    rest = (
        build_linear(*layer(f"{name}.{number}.linear")) for number in range(1, sizes.num_layers)
    )
    bias = read(f"{end}.bias") if sizes.has_bias else None
    projection = (
        shared_projection
        if shared_projection is not None
        else build_linear(read(f"{end}.weight"), bias)
    )
    return HydraHead(first, tuple(rest), projection)


def _check_architecture(settings: Mapping[str, object]) -> None:
    """Refuse architectures that the heads' tensors don't tell apart."""
    architecture = settings.get("hydra_head_arch", "mlp")
    if architecture != "mlp":
        raise HeadsError(
            tr("Hydra heads of the architecture {0:.40} aren't supported.", repr(architecture)),
            _ONLY_MLP,
        )
    if settings.get("grounded_heads", True) is not True:
        raise _ungrounded()
    offset = settings.get("hidden_state_offset", 0)
    if offset != 0 or isinstance(offset, bool):
        raise HeadsError(
            tr(
                "Heads that read the state {0:.40} layers before the last aren't supported.",
                repr(offset),
            ),
            "Choose Hydra heads whose hidden_state_offset is 0.",
        )


def _ungrounded() -> HeadsError:
    """Make the error for heads that don't read the tokens before theirs."""
    return HeadsError(
        "These Hydra heads don't read the draft tokens before their own (grounded_heads is false).",
        "Choose grounded Hydra heads, or Medusa heads for this model.",
    )


def _check_counts(sizes: _Sizes, settings: Mapping[str, object]) -> None:
    """Compare the counts of `config.json` with those of the tensors."""
    for key, count in (("num_heads", sizes.num_heads), ("num_layers", sizes.num_layers)):
        value = settings.get(f"hydra_{key}", count)
        if value != count or isinstance(value, bool):
            raise HeadsError(
                tr(
                    "config.json gives {0:.40} as hydra_{1}, the heads have {2}.",
                    repr(value),
                    key,
                    count,
                ),
                "The two belong to different heads, or one is damaged: download both again.",
            )


def _sizes_of(shapes: TensorShapes) -> _Sizes:
    """Return the sizes of tensors of these names and shapes.

    Raises:
        HeadsError: They are no complete Hydra heads of the architecture mlp.
    """
    if any(name.startswith(_OTHERS) for name in shapes):
        raise HeadsError("Hydra heads with a layer of attention aren't supported.", _ONLY_MLP)
    if unknown := sorted(name for name in shapes if not _NAME.fullmatch(name)):
        raise HeadsError(
            tr("Tensors that belong to no Hydra head: {0}.", listed(unknown)),
            "Choose other heads, or download them again.",
        )
    first, last = "hydra_mlp.0.0.linear.weight", "hydra_lm_head.0.weight"
    projection = "own"
    if "lm_head.weight" in shapes:
        projection, last = "one", "lm_head.weight"
    elif "token_map" in shapes and last not in shapes:
        projection, last = "vectors", first
    for name in (first, last):
        if len(shapes.get(name, ())) != 2 or not all(shapes[name]):
            raise HeadsError(tr("The heads have no matrix {0}.", name), _AGAIN)
    hidden = shapes[first][0]
    if shapes[first][1] == hidden:
        raise _ungrounded()
    columns = shapes["token_map"] if projection == "vectors" else shapes[last]
    sizes = _Sizes(
        num_heads=_count(shapes, r"hydra_(?:mlp|lm_head)\.(\d+)\..*"),
        num_layers=_count(shapes, r"hydra_mlp\.\d+\.(\d+)\..*"),
        hidden=hidden,
        columns=columns[0] if columns else 0,
        has_bias="hydra_lm_head.0.bias" in shapes,
        has_residual_projection="hydra_mlp.0.0.res_connection.weight" in shapes,
        projection=projection,
        is_mapped="token_map" in shapes,
    )
    if sizes.num_heads > _MOST_HEADS:
        raise HeadsError(
            tr("There are {0} heads; no tree is deeper than {1}.", sizes.num_heads, _MOST_HEADS),
            _AGAIN,
        )
    check_tensors(shapes, sizes.tensors, _AGAIN)
    return sizes


def _count(shapes: TensorShapes, pattern: str) -> int:
    """Return the number of modules with numbered tensor names: the largest index plus one."""
    found = (re.fullmatch(pattern, name) for name in shapes)
    return 1 + max(int(match[1]) for match in found if match)


SPEC = HeadKind("hydra", _owns, _shape_among, _read, is_ranked=False)
