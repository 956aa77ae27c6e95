"""Files of heads: a published folder, or one GGUF file translated to the same layout.

Kinds of heads know one layout of names, shapes and settings; the file formats are handled here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from medusa_core.errors import HeadsError
from medusa_core.heads.gguf_heads import open_gguf_heads
from medusa_core.i18n import tr
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.checkpoints.folder_checkpoint import open_folder
from medusa_core.system.files.gguf import SUFFIX, is_first, is_gguf
from medusa_core.system.files.json_file import read_json
from medusa_core.system.files.safetensors_header import TensorShapes

# Files of heads alone, which may be in the folder of their model.
_FILES = ("medusa_lm_head.safetensors", "hydra_lm_head.safetensors", "streams.safetensors")
_MODEL = ("model.safetensors", "model.safetensors.index.json")
_PICKLES = ("medusa_lm_head.pt", "medusa_lm_head.bin", "hydra_lm_head.pt", "pytorch_model.bin")


@dataclass(frozen=True)
class HeadFiles:
    """Opened heads, whose tensors are read on demand.

    Attributes:
        path: Folder or GGUF file.
        checkpoint: Tensors by their published names; all of the model's, if heads are inside one.
        settings: Contents of `config.json`, or its equivalent; empty if there is none.
    """

    path: Path
    checkpoint: Checkpoint
    settings: Mapping[str, object]

    @cached_property
    def shapes(self) -> TensorShapes:
        """Shapes of all tensors by name."""
        return {name: self.checkpoint.shape(name) for name in self.checkpoint.names}


def open_head_files(path: Path) -> HeadFiles:
    """Open heads.

    Args:
        path: Folder of heads or of a model with heads inside; a GGUF file with either; or a folder
            with nothing but such a file.

    Raises:
        CheckpointError: A file is missing or damaged.
        HeadsError: There are no heads, or only pickle files.
        ModelError: The architecture of a GGUF file isn't supported.
    """
    file = path if is_gguf(path) else _only_gguf(path)
    if file is not None:
        return HeadFiles(file, *open_gguf_heads(file))
    config = path / "config.json"
    settings = read_json(config) if config.exists() else {}
    return HeadFiles(path, _open_weights(path), settings)


def _only_gguf(folder: Path) -> Path | None:
    """Return the only GGUF file of a folder without other weights, as downloads leave it."""
    if any((folder / name).exists() for name in (*_FILES, *_MODEL)):
        return None
    files = [file for file in sorted(folder.glob(f"*{SUFFIX}")) if is_first(file)]
    return files[0] if len(files) == 1 else None


def _open_weights(folder: Path) -> Checkpoint:
    """Open the known weight files of heads, or a folder's safetensors."""
    if (file := next((folder / name for name in _FILES if (folder / name).exists()), None)) is None:
        _check_weights(folder)
        return open_folder(folder)
    return Checkpoint.open_file(file)


def _check_weights(folder: Path) -> None:
    """Raise an error that says what a folder holds instead of weights.

    Raises:
        HeadsError: Pickle files, or nothing.
    """
    if any((folder / name).exists() for name in _MODEL):
        return
    pickle = next((name for name in _PICKLES if (folder / name).exists()), None)
    if pickle is not None:
        raise HeadsError(
            tr("These heads are a pickle ({0}), which can run code when it is opened.", pickle),
            tr(
                "Get them as safetensors; or, if you trust where they come from, convert them "
                "once: medusa convert {0}",
                folder,
            ),
        )
    raise HeadsError(
        tr("No {0} in {1}.", _FILES[0], folder),
        "Choose a folder with heads, or a GGUF file of them; or go without heads.",
    )
