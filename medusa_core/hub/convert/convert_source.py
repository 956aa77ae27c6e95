"""Find what to convert: one file of heads or weights, or the shards of an index."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from medusa_core.errors import ConversionError
from medusa_core.i18n import tr
from medusa_core.models.checkpoints.weight_index import check_complete, read_weight_map
from medusa_core.system.files.json_file import read_json

HEADS_FILE = "medusa_lm_head.safetensors"
HYDRA_FILE = "hydra_lm_head.safetensors"
STREAMS_FILE = "streams.safetensors"
HEADS_FILES = (HEADS_FILE, HYDRA_FILE, STREAMS_FILE)
MODEL_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
# Small files that a model needs.
COMPANIONS = (
    *("config.json", "generation_config.json", "tokenizer*", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.json", "merges.txt", "chat_template.*", "medusa_trees.json"),
    *("LICENSE*", "USE_POLICY*", "README.md"),
)
PICKLED_HEADS = ("medusa_lm_head.pt", "medusa_lm_head.bin", "hydra_lm_head.pt")
_PICKLED_INDEX = "pytorch_model.bin.index.json"
_PICKLED_MODEL = "pytorch_model.bin"


@dataclass(frozen=True, slots=True)
class ConversionSource:
    """Pickles to convert, and where to.

    Attributes:
        folder: Folder of the pickles.
        files: The pickles.
        output: Folder for the result.
        is_sharded: Whether they are shards of one model.
        expected_names: Tensor names of the index; empty without one.
        base_model: Target that the heads' configuration names.
    """

    folder: Path
    files: tuple[Path, ...]
    output: Path
    is_sharded: bool = False
    expected_names: tuple[str, ...] = ()
    base_model: str = "N/A"

    @property
    def may_be_heads(self) -> bool:
        """Whether it is a file of heads."""
        return not self.is_sharded

    @property
    def nbytes(self) -> int:
        """Bytes of all pickles."""
        return sum(path.stat().st_size for path in self.files)


def find_source(path: Path, output: Path | None = None) -> ConversionSource:
    """Find the pickles of a file or a folder.

    Args:
        path: A pickle, or a folder with some.
        output: Folder for the result; None for the same.

    Raises:
        ConversionError: There are none; the hint says what to do with what is there.
        CheckpointError: An index is damaged, or names files that are missing or elsewhere.
    """
    if path.suffix == ".gguf":
        raise _gguf_error(path)
    if path.suffix == ".safetensors":
        raise ConversionError(tr("{0} is safetensors already.", path.name), "Use it as it is.")
    if path.is_file():
        if path.name == _PICKLED_INDEX:
            return _shards(path.parent, output)
        return ConversionSource(
            path.parent, (path,), output or path.parent, base_model=_base(path.parent)
        )
    if not path.is_dir():
        raise ConversionError(tr("{0} doesn't exist.", path), "Name a file or a folder that does.")
    for name in PICKLED_HEADS:
        if (path / name).is_file():
            return ConversionSource(path, (path / name,), output or path, base_model=_base(path))
    if (path / _PICKLED_INDEX).is_file():
        return _shards(path, output)
    if (path / _PICKLED_MODEL).is_file():
        only = path / _PICKLED_MODEL
        return ConversionSource(path, (only,), output or path, base_model=_base(path))
    raise _nothing(path)


def _shards(folder: Path, output: Path | None) -> ConversionSource:
    """Return the pickles that an index lists; they must be in the folder."""
    weight_map = read_weight_map(folder / _PICKLED_INDEX)
    shards = sorted(set(weight_map.values()))
    check_complete(folder, shards)
    names = tuple(sorted(weight_map))
    return ConversionSource(
        folder, tuple(folder / shard for shard in shards), output or folder, True, names
    )


def _base(folder: Path) -> str:
    """Return the base model that the heads' `config.json` names; "N/A" without."""
    path = folder / "config.json"
    value = read_json(path).get("base_model_name_or_path") if path.exists() else None
    return value if isinstance(value, str) and value else "N/A"


def _nothing(folder: Path) -> ConversionError:
    """Make the error for a folder without pickles."""
    if found := sorted(folder.glob("*.gguf")):
        return _gguf_error(found[0])
    if any(folder.glob("*.safetensors")):
        return ConversionError(
            tr("{0} holds safetensors already.", folder), "Nothing needs conversion there."
        )
    return ConversionError(
        tr("No pickled heads or weights in {0}.", folder),
        tr("Name a folder with {0}, {1} or {2}.", PICKLED_HEADS[0], _PICKLED_MODEL, _PICKLED_INDEX),
    )


def _gguf_error(path: Path) -> ConversionError:
    """Make the error for a GGUF file, which needs no conversion."""
    return ConversionError(
        tr("{0} is a GGUF file, which loads as it is.", path.name),
        "Import it in the model manager, or name it with --model.",
    )
