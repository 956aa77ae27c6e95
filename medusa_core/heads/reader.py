"""Reader of Medusa heads in every published format.

The tensors determine the number of heads and layers: counts in published `config.json` files are
often wrong. A tensor that no head reads is an error, as the heads would be others without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from medusa_core.errors import HeadsError
from medusa_core.heads.checks import check_sizes, listed
from medusa_core.heads.format import HeadsFormat, HeadsTensor, TensorRole, find_format
from medusa_core.heads.head_files import HeadFiles, open_head_files
from medusa_core.heads.medusa import HeadsTarget, MedusaHeads
from medusa_core.heads.tensor_reader import check_finite, linears_of
from medusa_core.heads.weights import HeadSet, HeadWeights, reads_root
from medusa_core.i18n import tr
from medusa_core.messages import HeadsShape
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.weights import no_memory

_Parts = Mapping[HeadsTensor, str]
_Read = Callable[[str], Tensor]


def read_heads(files: HeadFiles, target: HeadsTarget) -> MedusaHeads:
    """Load heads for a target.

    Args:
        files: Medusa heads in any format, maybe among a target's tensors.
        target: Sizes, shared weights and formats of the target.

    Raises:
        CheckpointError: A file is damaged.
        HeadsError: There are no heads, or they are for another target.
    """
    config, precision, shared_weights, formats = target
    checkpoint, parts = files.checkpoint, _parts(files.shapes)
    # Check shapes first: the heads may be larger than the free memory.
    shapes_only = _head_set(
        checkpoint, parts, lambda name: torch.empty(checkpoint.shape(name), device="meta")
    )
    _check_alike(shapes_only)
    _check_fit(shapes_only, config)

    def read(name: str) -> Tensor:
        """Read a tensor; NaN and infinity raise."""
        return check_finite(name, checkpoint.floats(name, precision.compute))

    one = parts.get(HeadsTensor(TensorRole.ONE_PROJECTION))

    heads = (
        _on_device(_read_head(parts, head, layers, read), config, precision.device)
        for head, layers in enumerate(_num_layers(parts))
    )
    try:
        projection = None if one is None else _without_padding(read(one), config, precision.device)
        build_linear = linears_of(formats, precision)
        return MedusaHeads(heads, shared_weights, shapes_only.token_map, projection, build_linear)
    except torch.OutOfMemoryError as error:
        raise no_memory(tr("the Medusa heads")) from error


def heads_shape(shapes: Mapping[str, tuple[int, ...]]) -> HeadsShape:
    """Return the sizes of heads from tensor names and shapes.

    Raises:
        HeadsError: There are no heads.
    """
    parts = _parts(shapes)
    num_layers = _num_layers(parts)
    of = {part.kind: shapes[name] for part, name in parts.items()}
    projection = of.get(TensorRole.PROJECTION) or of.get(TensorRole.ONE_PROJECTION) or (0,)
    firsts = [
        shapes[n] for part, n in parts.items() if (part.kind, part.layer) == (TensorRole.WEIGHT, 0)
    ]
    return HeadsShape(
        num_heads=len(num_layers),
        num_layers=max(num_layers, default=0),
        columns=projection[0],
        hidden_size=firsts[0][0] if firsts else projection[-1],
        is_reduced=TensorRole.TOKEN_MAP in of,
        reads_root=bool(firsts) and reads_root(firsts[0]),
        has_one_projection=TensorRole.ONE_PROJECTION in of,
    )


def read_head_set(path: Path, dtype: torch.dtype | None) -> tuple[HeadSet, HeadsFormat]:
    """Read heads as plain tensors.

    Args:
        path: Folder of Medusa heads in any format, or of a target with heads inside.
        dtype: Dtype of the result; None for the file's own.

    Returns:
        The heads, and their format.

    Raises:
        CheckpointError: A file is damaged.
        HeadsError: There are no complete heads.
    """
    files = open_head_files(path)
    checkpoint = files.checkpoint
    spec, parts = find_format(checkpoint.names), _parts(files.shapes)
    heads = _head_set(checkpoint, parts, lambda name: checkpoint.floats(name, dtype))
    _check_alike(heads)
    return heads, spec


def _head_set(checkpoint: Checkpoint, parts: _Parts, read: _Read) -> HeadSet:
    """Read all heads by `read`, which may give tensors without data."""
    token_map, one = (
        parts.get(HeadsTensor(TensorRole.TOKEN_MAP)),
        parts.get(HeadsTensor(TensorRole.ONE_PROJECTION)),
    )
    return HeadSet(
        tuple(
            _read_head(parts, head, layers, read) for head, layers in enumerate(_num_layers(parts))
        ),
        None if token_map is None else checkpoint.integers(token_map),
        None if one is None else read(one),
    )


def _parts(shapes: Mapping[str, tuple[int, ...]]) -> dict[HeadsTensor, str]:
    """Return the tensor name of each part.

    Raises:
        HeadsError: A tensor is unknown, occurs twice or has an impossible shape.
    """
    names = frozenset(shapes)
    spec = find_format(names)
    parts: dict[HeadsTensor, str] = {}
    unknown = []
    has_own = any((p := spec.part(name)) and p.kind is TensorRole.PROJECTION for name in names)
    for name in sorted(name for name in names if not spec.ignores(name)):
        part = spec.part(name)
        # A shared projection is unused if heads have their own.
        is_unread = part is not None and part.kind is TensorRole.ONE_PROJECTION and has_own
        if part is None or part in parts or is_unread:
            unknown.append(name)
        else:
            parts[part] = name
    if unknown:
        raise HeadsError(
            tr("Tensors that belong to no Medusa head: {0}.", listed(unknown)),
            tr(
                "In the format {0} they have no place: choose other heads, or download again.",
                spec.name,
            ),
        )
    for part, name in parts.items():
        if len(shapes[name]) != (1 if part.kind in (TensorRole.BIAS, TensorRole.TOKEN_MAP) else 2):
            raise HeadsError(
                tr("{0} has shape {1}.", name, list(shapes[name])),
                "Choose other heads, or download these again.",
            )
    return parts


def _num_layers(parts: _Parts) -> list[int]:
    """Return the number of residual layers of each head.

    Raises:
        HeadsError: A head or layer is missing, or a tensor isn't read by any head.
    """
    own = [
        part
        for part in parts
        if part.kind in (TensorRole.WEIGHT, TensorRole.BIAS, TensorRole.PROJECTION)
    ]
    heads = sorted({part.head for part in own})
    if heads != list(range(len(heads))):
        raise HeadsError(tr("Heads {0} are not numbered from 0 on.", heads), "Download them again.")
    counts = []
    misplaced: list[str] = []
    for head in heads:
        layers = {p.layer for p in own if p.head == head and p.kind is TensorRole.WEIGHT}
        counts.append(len(layers))
        of_head = (part for part in own if part.head == head)
        misplaced += [parts[part] for part in of_head if not _is_in_place(part, layers)]
    if misplaced:
        raise HeadsError(
            tr("Tensors that belong to no layer of their head: {0}.", listed(sorted(misplaced))),
            "A layer before them is missing: download the heads again.",
        )
    return counts


def _is_in_place(part: HeadsTensor, layers: set[int]) -> bool:
    """Whether a head's layers are numbered without gaps and its projection follows them."""
    if part.kind is TensorRole.PROJECTION:
        return part.layer in (-1, len(layers))
    return part.layer in layers and part.layer < len(layers)


def _read_head(parts: _Parts, head: int, num_layers: int, read: _Read) -> HeadWeights:
    """Read the residual layers and the projection of one head."""

    def find(kind: TensorRole, *layers: int) -> Tensor | None:
        """Read the first existing part among some layers; None if there is none."""
        places = (HeadsTensor(kind, head, layer) for layer in layers)
        found = [parts[place] for place in places if place in parts]
        return read(found[0]) if found else None

    layers = []
    for layer in range(num_layers):
        weight, bias = find(TensorRole.WEIGHT, layer), find(TensorRole.BIAS, layer)
        assert weight is not None  # layers were counted by their weights
        layers.append((weight, bias))
    return HeadWeights(tuple(layers), find(TensorRole.PROJECTION, -1, num_layers))


def _check_alike(heads: HeadSet) -> None:
    """Check that all heads have the same layers.

    Raises:
        HeadsError: Layers, biases, projections or sizes differ.
    """
    hidden = heads.hidden_size
    if hidden is None:
        raise HeadsError("The heads hold no weights.", "Download the heads again.")
    builds = {
        (
            tuple((tuple(w.shape), None if b is None else tuple(b.shape)) for w, b in head.layers),
            None if head.projection is None else tuple(head.projection.shape),
        )
        for head in heads.heads
    }
    if len(builds) > 1:
        raise HeadsError("The heads differ in their layers.", "Download the heads again.")
    layers, projection = builds.pop()
    widths = (2 * hidden if heads.reads_root else hidden, *[hidden] * len(layers[1:]))
    wrong = any(
        w != (hidden, width) or b not in (None, (hidden,))
        for (w, b), width in zip(layers, widths, strict=False)
    )
    if wrong or len({b for _, b in layers}) > 1:
        raise HeadsError(
            tr("The residual layers are not all {0} wide.", hidden), "Download the heads again."
        )
    one = None if heads.projection is None else tuple(heads.projection.shape)
    for shape in (projection, one):
        if shape is not None and (len(shape) != 2 or shape[1] != hidden):
            raise HeadsError(
                tr("A projection has shape {0}, not [vocabulary, {1}].", list(shape), hidden),
                "Download the heads again.",
            )
    _check_token_map(heads)


def _check_token_map(heads: HeadSet) -> None:
    """Check the token ids of a reduced vocabulary."""
    if heads.token_map is None:
        return
    ids = heads.token_map
    if heads.num_columns is None or tuple(ids.shape) != (heads.num_columns,):
        raise HeadsError(
            tr(
                "token_map has shape {0}, the heads draft from {1} tokens.",
                list(ids.shape),
                heads.num_columns,
            ),
            "Download the heads again.",
        )
    if len(set(ids.tolist())) != len(ids) or int(ids.min()) < 0:
        raise HeadsError("token_map names a token twice, or none.", "Download the heads again.")


def _check_fit(heads: HeadSet, config: ModelConfig) -> None:
    """Check that heads were made for this target.

    Raises:
        HeadsError: They weren't; the message names the difference.
    """
    if heads.token_map is None:
        check_sizes(heads.hidden_size or 0, heads.num_columns or config.vocab_size, config)
        return
    # Mapped tokens must be in the target's vocabulary.
    vocabulary = int(heads.token_map.max()) + 1
    check_sizes(heads.hidden_size or 0, max(vocabulary, config.vocab_size), config, padding=0)


def _on_device(head: HeadWeights, config: ModelConfig, device: torch.device) -> HeadWeights:
    """Copy a head to a device, without padding of the vocabulary."""
    layers = tuple((w.to(device), None if b is None else b.to(device)) for w, b in head.layers)
    own = head.projection
    return HeadWeights(layers, None if own is None else _without_padding(own, config, device))


def _without_padding(projection: Tensor, config: ModelConfig, device: torch.device) -> Tensor:
    """Copy a projection to a device, without rows of padding, which must never be drafted."""
    return projection[: config.vocab_size].to(device)
