"""Reading Medusa heads from the published formats.

`{h}.{l}.linear.{weight,bias}` are the residual layers, `{h}.{L}.weight` a head's own projection.
Files without any projection share the target's (format 2). The tensors decide how many heads and
layers there are: the counts in published `config.json` files are often wrong.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from medusa_core.errors import HeadsError
from medusa_core.heads.medusa import HeadWeights, MedusaHeads
from medusa_core.models.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.linear import Linear
from medusa_core.models.precision import Precision

_FILE = "medusa_lm_head.safetensors"
_KEY = re.compile(r"(\d+)\.(\d+)\.(linear\.weight|linear\.bias|weight)")


def read_heads(
    heads_dir: Path, config: ModelConfig, precision: Precision, target_lm_head: Linear
) -> MedusaHeads:
    """Read the heads of a folder for a target.

    Args:
        heads_dir: Folder with `medusa_lm_head.safetensors`.
        config: Sizes of the target that they must fit.
        precision: Where and in which dtype they run.
        target_lm_head: The projection that heads without their own share.

    Raises:
        CheckpointError: The file is damaged.
        HeadsError: The folder holds no heads, or heads for another target.
    """
    checkpoint = Checkpoint.open_file(_find_file(heads_dir))
    layout = _layout(checkpoint.names)
    _check_places(checkpoint.names, layout)
    _check_sizes(checkpoint, layout, config)
    weights = [_read_head(checkpoint, head, n, config, precision) for head, n in layout]
    return MedusaHeads(weights, target_lm_head)


def _find_file(heads_dir: Path) -> Path:
    path = heads_dir / _FILE
    if path.exists():
        return path
    if list(heads_dir.glob("medusa_lm_head.pt")):
        raise HeadsError(
            "These heads are a pickle (medusa_lm_head.pt), which can run code when it is opened.",
            "Get a version of the heads in safetensors format.",
        )
    raise HeadsError(
        f"No {_FILE} in {heads_dir}.", "Choose a folder with Medusa heads, or go without heads."
    )


_Layout = list[tuple[int, int]]


def _layout(names: frozenset[str]) -> _Layout:
    """(head, residual layers) for every head, from the tensors' names."""
    layers: dict[int, set[int]] = defaultdict(set)
    unknown = []
    for name in names:
        match = _KEY.fullmatch(name)
        if match is None:
            unknown.append(name)
        else:
            head = layers[int(match[1])]
            if match[3] != "weight":
                head.add(int(match[2]))
    if unknown or not layers:
        listed = ", ".join(sorted(unknown)[:8]) or "none at all"
        raise HeadsError(
            f"Tensors that belong to no Medusa head: {listed}.",
            "Choose a folder with Medusa heads in the v0.1 or the shared-lm_head format.",
        )
    if sorted(layers) != list(range(len(layers))):
        raise HeadsError(f"Heads {sorted(layers)} are not numbered from 0 on.", "Download again.")
    return [(head, len(layers[head])) for head in range(len(layers))]


def _check_places(names: frozenset[str], layout: _Layout) -> None:
    """Refuse tensors that no head would read: a projection elsewhere would pass for none."""
    places = {f"{head}.{num_layers}.weight" for head, num_layers in layout}
    for head, num_layers in layout:
        for layer in range(num_layers):
            places |= {f"{head}.{layer}.linear.weight", f"{head}.{layer}.linear.bias"}
    if misplaced := sorted(names - places):
        raise HeadsError(
            f"Tensors that belong to no layer of their head: {', '.join(misplaced[:8])}.",
            "Choose heads in the v0.1 or the shared-lm_head format, or download them again.",
        )


def _check_sizes(checkpoint: Checkpoint, layout: _Layout, config: ModelConfig) -> None:
    """Say in words which size differs: a bare shape error doesn't tell what to do."""
    head, num_layers = layout[0]
    if num_layers and f"{head}.0.linear.weight" in checkpoint.names:
        hidden = checkpoint.shape(f"{head}.0.linear.weight")[-1]
        if hidden != config.hidden_size:
            raise HeadsError(
                f"The heads are for a hidden size of {hidden}, the model has {config.hidden_size}.",
                "Choose the heads that were trained for this model.",
                heads=hidden,
                model=config.hidden_size,
            )
    if (name := f"{head}.{num_layers}.weight") in checkpoint.names:
        vocabulary = checkpoint.shape(name)[0]
        if vocabulary != config.vocab_size:
            raise HeadsError(
                f"The heads have a vocabulary of {vocabulary}, the model {config.vocab_size}.",
                "Choose the heads that were trained for this model.",
                heads=vocabulary,
                model=config.vocab_size,
            )
    if len({n for _, n in layout}) > 1 or any(
        (f"{h}.{n}.weight" in checkpoint.names) != (name in checkpoint.names) for h, n in layout
    ):
        raise HeadsError("The heads differ in their layers.", "Download the heads again.")


def _read_head(
    checkpoint: Checkpoint,
    head: int,
    num_layers: int,
    config: ModelConfig,
    precision: Precision,
) -> HeadWeights:
    hidden, device = config.hidden_size, precision.device
    layers = tuple(
        (
            checkpoint.tensor(
                f"{head}.{layer}.linear.weight", (hidden, hidden), precision.compute
            ).to(device),
            checkpoint.tensor(f"{head}.{layer}.linear.bias", (hidden,), precision.compute).to(
                device
            ),
        )
        for layer in range(num_layers)
    )
    name = f"{head}.{num_layers}.weight"
    projection = None
    if name in checkpoint.names:
        shape = (config.vocab_size, hidden)
        projection = checkpoint.tensor(name, shape, precision.compute).to(device)
    return HeadWeights(layers, projection)
