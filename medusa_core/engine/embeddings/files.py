"""Files of an embedding model: backbone, pooling, prefixes, and the longest text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from medusa_core.engine.embeddings.conventions import Conventions, Pooling, conventions_of
from medusa_core.errors import CheckpointError, ModelError
from medusa_core.i18n import tr
from medusa_core.models.checkpoints.folder_checkpoint import weight_files
from medusa_core.models.model_files import FolderFiles, GgufFiles, ModelFiles
from medusa_core.system.files.json_file import is_whole, read_json

# A text's KV rows are part of the memory plan, and passages that are searched are far shorter.
_MOST_TOKENS = 4096
# Encoders of transformers that take token ids and return one hidden state per token.
_ENCODERS = frozenset(
    (
        *("albert", "bert", "camembert", "distilbert", "electra", "modernbert", "mpnet"),
        *("roberta", "xlm-roberta"),
    )
)
# Their positions begin after that of padding.
_PADDED_POSITIONS = ("camembert", "mpnet", "roberta", "xlm-roberta")
_MODULES = ("Transformer", "Pooling", "Normalize")
_GGUF_POOLINGS = {1: Pooling.MEAN, 2: Pooling.CLS, 3: Pooling.LAST}  # llama.cpp's numbers
_GGUF_RANK = 4
_POOLING_KEYS = {
    "pooling_mode_lasttoken": Pooling.LAST,
    "pooling_mode_mean_tokens": Pooling.MEAN,
    "pooling_mode_cls_token": Pooling.CLS,
}
_POOLING_NAMES = {"lasttoken": Pooling.LAST, "mean": Pooling.MEAN, "cls": Pooling.CLS}
_CHOOSE = tr("Choose an embedding model, such as Qwen3-Embedding as GGUF, or all-MiniLM-L6-v2.")


class EmbeddingFiles(NamedTuple):
    """Configuration of an embedding model, read from its files.

    Attributes:
        path: Folder in Hugging Face layout, or a GGUF file.
        name: Name of the model.
        pooling: How hidden states become one vector.
        context_tokens: Longest text in tokens.
        conventions: Prefixes and truncation.
        decoder: Files of a decoder that our runners compute; None for an encoder.
    """

    path: Path
    name: str
    pooling: Pooling
    context_tokens: int
    conventions: Conventions
    decoder: ModelFiles | None


def open_embedding_files(path: Path) -> EmbeddingFiles:
    """Read what an embedding model's files say.

    Raises:
        CheckpointError: A file is missing or damaged.
        ModelError: It is no embedding model, or one of an unsupported kind.
    """
    files = ModelFiles.open(path)
    if isinstance(files, GgufFiles):
        return _gguf_files(files)
    assert isinstance(files, FolderFiles)
    raw = files.settings
    conventions = _with_prompts(path, conventions_of(path.name))
    _check_modules(path)
    longest = _optional(path / "sentence_bert_config.json").get("max_seq_length")
    most = longest if is_whole(longest, 1, _MOST_TOKENS) else _MOST_TOKENS
    if raw.get("model_type") in _ENCODERS:
        pooling = _folder_pooling(path) or Pooling.MEAN  # sentence-transformers' default
        context = min(most, _positions(raw))
        return EmbeddingFiles(path, path.name, pooling, context, conventions, None)
    if raw.get("use_bidirectional_attention") or raw.get("is_causal") is False:
        raise ModelError(
            tr("{0} reads texts in both directions, which isn't supported here.", path.name),
            _CHOOSE,
        )
    _limit_context(files, most)
    if "lm_head.weight" not in weight_files(path):  # it isn't used, but the loader reads one
        files.config = replace(files.config, tie_embeddings=True)
    pooling = _required(_folder_pooling(path) or conventions.pooling, path)
    return EmbeddingFiles(path, path.name, pooling, files.config.context_tokens, conventions, files)


def _gguf_files(files: GgufFiles) -> EmbeddingFiles:
    """Read the metadata of a GGUF file."""
    headers, path = files.headers, files.path
    if headers.architecture.endswith("bert"):
        raise ModelError(
            tr("{0} is an encoder as GGUF, which isn't supported.", path.name),
            "Choose the same model as a folder with safetensors, or a decoder such as "
            "Qwen3-Embedding.",
        )
    number = headers.of_model("pooling_type")
    if number == _GGUF_RANK:
        raise ModelError(tr("{0} ranks pairs of texts: it has no vectors.", path.name), _CHOOSE)
    conventions = conventions_of(f"{files.name} {path.stem}")
    pooling = _GGUF_POOLINGS.get(number) if isinstance(number, int) else conventions.pooling
    _limit_context(files, _MOST_TOKENS)
    found, context = _required(pooling, path), files.config.context_tokens
    return EmbeddingFiles(path, files.name, found, context, conventions, files)


def _limit_context(files: FolderFiles | GgufFiles, most: int) -> None:
    """Limit the context of a decoder, whose KV cache is planned for it.

    Raises:
        ModelError: Our runners can't compute the model.
    """
    config = files.config
    if not config.has_native_family:
        raise ModelError(
            tr("Embedding models of type {0} aren't supported.", config.model_type), _CHOOSE
        )
    files.config = replace(config, context_tokens=min(most, config.context_tokens))


def _required(pooling: Pooling | None, path: Path) -> Pooling:
    """Return the pooling; raises `ModelError` for a model without one."""
    if pooling is None:
        raise ModelError(
            tr("{0} is no embedding model: its files name no pooling.", path.name), _CHOOSE
        )
    return pooling


def _positions(raw: Mapping[str, Any]) -> int:
    """Return the number of tokens for which an encoder has positions."""
    most = raw.get("max_position_embeddings")
    if not is_whole(most, 4, 1 << 24):
        return 512
    return most - 2 if raw.get("model_type") in _PADDED_POSITIONS else most


def _folder_pooling(folder: Path) -> Pooling | None:
    """Return the pooling that sentence-transformers' files name; None without such files.

    Raises:
        ModelError: It isn't supported.
    """
    path = folder / "1_Pooling" / "config.json"
    if not path.exists():
        return None
    raw = read_json(path)
    named = [key for key, value in raw.items() if key.startswith("pooling_mode_") and value is True]
    modes = [_POOLING_KEYS.get(key) for key in named]
    modes = modes or [_POOLING_NAMES.get(str(raw.get("pooling_mode")))]
    if len(modes) != 1 or modes[0] is None:
        raise ModelError(
            tr("{0} combines token vectors in a way that isn't supported.", folder.name), _CHOOSE
        )
    return modes[0]


def _check_modules(folder: Path) -> None:
    """Refuse a pipeline of sentence-transformers with further modules, such as a dense layer.

    Raises:
        CheckpointError: The list of modules is damaged.
        ModelError: There are further modules.
    """
    path = folder / "modules.json"
    if not path.exists():
        return
    try:
        modules = json.loads(path.read_text(encoding="utf-8"))
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointError(
            tr("{0} can't be read as JSON: {1}.", path, error), "Download the file again."
        ) from error
    further = [kind for kind in kinds if kind not in _MODULES]
    if further:
        raise ModelError(
            tr("{0} needs the module {1}, which isn't supported.", folder.name, further[0]),
            _CHOOSE,
        )


def _with_prompts(folder: Path, conventions: Conventions) -> Conventions:
    """Return conventions with the prefixes that sentence-transformers' configuration has."""
    prompts = _optional(folder / "config_sentence_transformers.json").get("prompts")
    if not isinstance(prompts, dict):
        return conventions
    query = prompts.get("query")
    document = prompts.get("document", prompts.get("passage"))
    return conventions._replace(
        query=query if isinstance(query, str) else conventions.query,
        document=document if isinstance(document, str) else conventions.document,
    )


def _optional(path: Path) -> Mapping[str, Any]:
    """Read a JSON object; an empty one if the file is missing."""
    return read_json(path) if path.exists() else {}
