"""Identify the contents of a folder: a model, heads or both, their format and problems.

Configuration and headers are read, tensors are not.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from medusa_core.errors import (
    CheckpointError,
    CompanionError,
    HeadsError,
    HeadsFileError,
    ModelError,
)
from medusa_core.hub.convert.convert_source import (
    HEADS_FILES,
    INDEX_FILE,
    MODEL_FILE,
    PICKLED_HEADS,
)
from medusa_core.hub.library.library_files import indexed_files
from medusa_core.hub.library.pairing import (
    HeadsFacts,
    TargetFacts,
    heads_facts,
    target_facts,
)
from medusa_core.i18n import tr
from medusa_core.models.architecture import arch_registry
from medusa_core.models.checkpoints.gguf_config import config_of
from medusa_core.models.checkpoints.gguf_naming import file_type, model_name
from medusa_core.models.lora.adapter_shape import (
    adapter_problems,
    is_adapter,
)
from medusa_core.models.model_files import ModelFiles
from medusa_core.system.files.gguf import read_gguf
from medusa_core.system.files.gguf_companions import is_companion, model_in_name
from medusa_core.system.files.json_file import read_json
from medusa_core.system.files.safetensors_header import TensorEntry, TensorShapes, read_header

log = logging.getLogger(__name__)

_TOKENIZERS = ("tokenizer.json", "tokenizer.model")
_PICKLED_WEIGHTS = "pytorch_model*.bin"
_EMBEDDINGS = ("embed_tokens.weight", "backbone.embeddings.weight")
# Of drafters that may have token vectors of their own, or copies of the target's.
_OF_DRAFTERS = ("post_projection.weight", "fc.weight", "model.fc.weight", "encoder.fc.weight")
# Some of this is in the names of heads among a model's tensors: only then they are looked for.
_OWN = ("medusa_head.", "mtp.", "mtp_layers.", ".eh_proj.", ".nextn.")


class ContentsKind(Enum):
    """Kind of a folder's or file's contents."""

    TARGET = "target"
    HEADS = "heads"
    MERGED = "merged"
    ADAPTER = "adapter"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of a folder or a GGUF file.

    Attributes:
        kind: Its use; merged is a target with its heads.
        storage: `safetensors`, `pickle`, `gguf`, or empty.
        problems: Reasons why it can't be loaded, for people.
        target: Facts of the target, if any.
        heads: Facts of the heads, if any; None for a pickle.
        title: Model name of a GGUF file's metadata; else empty.
        quantization: GGUF file type, such as Q4_K_M; may be empty.
        dtype: Dtype of most weights of safetensors files, such as BF16.
    """

    kind: ContentsKind
    storage: str
    problems: tuple[str, ...]
    target: TargetFacts | None = None
    heads: HeadsFacts | None = None
    title: str = ""
    quantization: str = ""
    dtype: str = ""


def look_into(folder: Path, name: str = "") -> Contents:
    """Identify the contents of a folder; damage is a problem of the result, not an error.

    Args:
        folder: Folder in Hugging Face layout, or a GGUF file.
        name: Name of the model; empty for that of the path.
    """
    name = name or folder.name
    if not folder.is_dir():
        return _gguf(folder, name)
    problems: list[str] = []
    config = _config(folder, problems)
    weights = next((file for file in (INDEX_FILE, MODEL_FILE) if _is_named(folder / file)), "")
    if weights:
        return _weights(folder, name, weights, config, problems)
    if not _heads_in(folder) and is_adapter(folder):
        return Contents(ContentsKind.ADAPTER, "safetensors", (*problems, *adapter_problems(folder)))
    if not _heads_in(folder):
        return _other(folder, name, config, problems)
    heads = _heads_file(folder, name, config, problems)
    return Contents(ContentsKind.HEADS, "safetensors", tuple(problems), None, heads)


def _gguf(path: Path, name: str) -> Contents:
    """Identify a GGUF file: a model, heads, a companion, or unreadable."""
    try:
        gguf = read_gguf(path)
        sizes, _, _ = config_of(gguf)
    except HeadsFileError:
        return _gguf_heads(path, name)
    except CompanionError as error:
        return Contents(ContentsKind.UNKNOWN, "gguf", (str(error),))
    except ModelError as error:
        return Contents(ContentsKind.TARGET, "gguf", (str(error),))
    problems: list[str] = []
    heads = _own_heads(path, name, problems) if _may_hold_heads(gguf.tensors) else None
    kind = ContentsKind.TARGET if heads is None else ContentsKind.MERGED
    return Contents(
        kind,
        "gguf",
        tuple(problems),
        target_facts(name, sizes),
        heads,
        model_name(gguf),
        file_type(gguf),
    )


def _gguf_heads(path: Path, name: str) -> Contents:
    """Identify a GGUF file of heads."""
    from medusa_core.heads.head_files import open_head_files  # takes torch along

    try:
        files = open_head_files(path)
        facts = heads_facts(name, files.shapes, files.settings)
        facts = replace(facts, base_model=facts.base_model or model_in_name(path.name))
    except ModelError as error:
        return Contents(ContentsKind.HEADS, "gguf", (str(error),))
    return Contents(ContentsKind.HEADS, "gguf", (), None, facts)


def _is_named(path: Path) -> bool:
    """Return whether a file or a dangling link is there: its blob may have been removed."""
    return path.exists() or path.is_symlink()


def _may_hold_heads(names: Iterable[str]) -> bool:
    """Whether tensor names of a model could include heads."""
    return any(part in name for name in names for part in _OWN)


def _own_heads(path: Path, name: str, problems: list[str]) -> HeadsFacts | None:
    """Return the heads among a model's tensors."""
    from medusa_core.heads.kind import own_heads  # takes torch along

    try:
        files = own_heads(ModelFiles.open(path))
    except ModelError as error:  # loading it reports the error
        log.debug("%s: %s", name, error.message)
        return None
    return None if files is None else _heads(name, files.shapes, files.settings, problems)


def _heads_in(folder: Path) -> str:
    """Return the heads file of a folder; empty without one."""
    return next((file for file in HEADS_FILES if _is_named(folder / file)), "")


def _weights(
    folder: Path, name: str, weights: str, config: dict[str, Any], problems: list[str]
) -> Contents:
    """Identify a folder with a weights file: a model, a model with heads, or heads."""
    entries = _read_entries(folder, weights, problems)
    shapes = _shapes_of(entries)
    is_model = any(tensor.endswith(_EMBEDDINGS) for tensor in shapes)
    is_model = is_model and not any(tensor in shapes for tensor in _OF_DRAFTERS)
    if shapes and not is_model:
        found: list[str] = []
        heads = _heads(name, shapes, config, found)
        if heads is not None or not _is_of_another_family(config):
            kind = ContentsKind.UNKNOWN if heads is None else ContentsKind.HEADS
            return Contents(kind, "safetensors", (*problems, *found), None, heads)
    target = target_facts(name, config)
    _check_target(folder, target, config, problems)
    heads = None
    if _may_hold_heads(shapes):
        heads = _own_heads(folder, name, problems)
    if heads is None and _heads_in(folder):
        heads = _heads_file(folder, name, config, problems)
    kind = (
        ContentsKind.UNKNOWN
        if target is None
        else ContentsKind.TARGET
        if heads is None
        else ContentsKind.MERGED
    )
    dtype = _main_dtype(entries)
    return Contents(kind, "safetensors", tuple(problems), target, heads, dtype=dtype)


def _is_of_another_family(config: Mapping[str, Any]) -> bool:
    """Return whether the architecture uses other tensor names than Llama's."""
    model_type = config.get("model_type")
    return isinstance(model_type, str) and model_type not in arch_registry().names


def _heads_file(
    folder: Path, name: str, config: dict[str, Any], problems: list[str]
) -> HeadsFacts | None:
    """Return the heads in a separate file of a folder."""
    shapes = _shapes_of(_read_entries(folder, _heads_in(folder), problems))
    return _heads(name, shapes, config, problems) if shapes else None


def _read_entries(folder: Path, weights: str, problems: list[str]) -> dict[str, TensorEntry]:
    """Read the headers of weights; damage is added to the problems."""
    try:
        return _entries(folder, weights)
    except CheckpointError as error:
        problems.append(error.message)
        return {}


def _other(folder: Path, name: str, config: dict[str, Any], problems: list[str]) -> Contents:
    """Identify a folder without safetensors: pickles, a GGUF file or something unknown."""
    convert = f"convert it once: medusa convert {folder}"
    if any((folder / pickle).exists() for pickle in PICKLED_HEADS):
        return Contents(ContentsKind.HEADS, "pickle", (*problems, f"a pickle; {convert}"))
    if any(folder.glob(_PICKLED_WEIGHTS)):
        facts = target_facts(name, config)
        kind = ContentsKind.TARGET if facts else ContentsKind.UNKNOWN
        return Contents(kind, "pickle", (*problems, f"a pickle; {convert}"), facts)
    if ggufs := sorted(folder.glob("*.gguf"), key=lambda path: (is_companion(path.name), path)):
        return _gguf(ggufs[0], name)
    return Contents(ContentsKind.UNKNOWN, "", (*problems, "no weights"), target_facts(name, config))


def _config(folder: Path, problems: list[str]) -> dict[str, Any]:
    """Read `config.json`; damage is added to the problems."""
    path = folder / "config.json"
    if not path.exists() and not path.is_symlink():
        return {}
    try:
        return read_json(path)
    except CheckpointError as error:
        problems.append(error.message)
        return {}


def _shapes_of(entries: Mapping[str, TensorEntry]) -> TensorShapes:
    """Return the shapes of tensors."""
    return {name: entry.shape for name, entry in entries.items()}


def _main_dtype(entries: Mapping[str, TensorEntry]) -> str:
    """Return the dtype of most bytes; empty without tensors."""
    sizes = Counter[str]()
    for entry in entries.values():
        sizes[entry.dtype] += entry.nbytes
    return max(sizes, key=lambda dtype: sizes[dtype], default="")


def _entries(folder: Path, weights: str) -> dict[str, TensorEntry]:
    """Read the headers of a weights file, or of all shards of an index."""
    files = [folder / weights]
    if weights == INDEX_FILE:
        files = [folder / file for file in indexed_files(folder)]
        if missing := [file.name for file in files if not file.exists()]:
            raise CheckpointError(
                tr(
                    "{0} of {1} weight files are missing, such as {2}.",
                    len(missing),
                    len(files),
                    missing[0],
                )
            )
    return {name: entry for path in files for name, entry in read_header(path).items()}


def _check_target(
    folder: Path, target: TargetFacts | None, config: Mapping[str, Any], problems: list[str]
) -> None:
    """Add missing files of a model to the problems."""
    if not config and not any("config.json" in problem for problem in problems):
        problems.append("config.json is missing")
    elif target is None:
        problems.append("config.json doesn't give the model's sizes")
    if not any((folder / name).exists() for name in _TOKENIZERS):
        problems.append("the tokenizer is missing")


def _heads(
    name: str, shapes: TensorShapes, config: Mapping[str, Any], problems: list[str]
) -> HeadsFacts | None:
    """Return the facts of heads; damage is added to the problems."""
    try:
        return heads_facts(name, shapes, config)
    except HeadsError as error:
        problems.append(error.message)
        return None


def _check_gguf(path: Path) -> None:
    """Check a GGUF file of a model.

    Raises:
        CheckpointError: It is damaged.
        ModelError: It is no model that can be run, and no heads.
    """
    try:
        config_of(read_gguf(path))
    except HeadsFileError:
        log.debug("%s holds heads", path.name)


def check_folder(folder: Path) -> Contents:
    """Check that a folder can be loaded: configuration, weights and tokenizer.

    Raises:
        CheckpointError: Something is missing or damaged.
        ModelError: It holds nothing that is known.
    """
    if ModelFiles.find(folder) is None:
        raise CheckpointError(
            tr("{0} is neither a folder nor a GGUF file.", folder),
            "Choose a folder in Hugging Face layout, or a file that ends in .gguf.",
        )
    if not folder.is_dir():
        _check_gguf(folder)
    contents = look_into(folder)
    if contents.problems:
        raise CheckpointError(
            tr("{0} isn't complete: {1}.", folder, "; ".join(contents.problems).removesuffix(".")),
            "Choose a folder in Hugging Face layout, or download the model.",
        )
    if contents.kind is ContentsKind.UNKNOWN:
        raise ModelError(
            tr("{0} holds neither a model nor heads nor an adapter.", folder),
            "Choose a folder with config.json and safetensors files.",
        )
    if contents.target is not None:
        _ = ModelFiles.open(folder).config  # which says why a model can't be run
    return contents
