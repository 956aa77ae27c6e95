"""A model's files: a folder in Hugging Face layout, or a GGUF file."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medusa_core.models.checkpoints.gguf_config import config_of, gguf_errors
from medusa_core.models.checkpoints.gguf_naming import model_name
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.system.files.gguf import Gguf, is_gguf, read_gguf
from medusa_core.system.files.json_file import read_json

# torch and tokenizers are imported when they are needed: the list of models only needs sizes.
if TYPE_CHECKING:
    from medusa_core.models.checkpoints.checkpoint import Checkpoint
    from medusa_core.models.text.template import Template
    from medusa_core.models.text.tokenizer import Tokenizer
    from medusa_core.models.text.written_template import WrittenTemplate


class ModelFiles(ABC):
    """Content of a model's files; each part is read on first use."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def open(path: Path) -> ModelFiles:
        """Open the files at a path; missing files raise when they are first read."""
        return GgufFiles(path) if is_gguf(path) else FolderFiles(path)

    @staticmethod
    def find(path: Path) -> ModelFiles | None:
        """Open the files at a path; None if it is neither a folder nor a GGUF file."""
        files = ModelFiles.open(path)
        return files if path.is_dir() or isinstance(files, GgufFiles) else None

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the model.

        Raises:
            CheckpointError: The files are damaged.
        """

    @property
    @abstractmethod
    def config(self) -> ModelConfig:
        """Validated configuration.

        Raises:
            CheckpointError: A file is missing or damaged.
            ModelError: The model isn't supported.
        """

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, object]:
        """Content of `config.json`, or its equivalent.

        Raises:
            CheckpointError: A file is missing or damaged.
            ModelError: It is a GGUF file of an unsupported architecture.
        """

    @property
    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """The tokenizer.

        Raises:
            CheckpointError: The files are damaged.
            TokenizerError: It is missing, damaged, or of an unsupported type.
        """

    @property
    @abstractmethod
    def written_template(self) -> WrittenTemplate:
        """The uncompiled chat template.

        Raises:
            CheckpointError: The files are damaged.
            TemplateError: The template can't be read.
        """

    @cached_property
    def template(self) -> Template:
        """The compiled chat template; `RawText` for a base model.

        Raises:
            CheckpointError: The files are damaged.
            TemplateError: The template doesn't parse.
        """
        from medusa_core.models.text.template import open_template

        return open_template(self.written_template, self.tokenizer.knows)

    @property
    def is_base(self) -> bool:
        """Whether it is a base model, found without building the tokenizer.

        Raises:
            CheckpointError: The files are damaged.
            TemplateError: The template can't be read.
        """
        return self.written_template.source_or_known(self._names_token) is None

    @abstractmethod
    def checkpoint(self) -> Checkpoint:
        """Open the weights, anew for each call.

        Raises:
            CheckpointError: A file is missing or damaged.
            ModelError: It is a GGUF file of an unsupported architecture.
        """

    @property
    @abstractmethod
    def sources(self) -> frozenset[Path]:
        """All files that determine the weights.

        Raises:
            CheckpointError: A file is missing or damaged.
        """

    @abstractmethod
    def _names_token(self, text: str) -> bool:
        """Whether a text is a token, without building the tokenizer."""


class FolderFiles(ModelFiles):
    """A folder in Hugging Face layout; see `ModelFiles`."""

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.name

    @cached_property
    def settings(self) -> Mapping[str, object]:
        """Content of `config.json`."""
        return read_json(self.path / "config.json")

    @cached_property
    def config(self) -> ModelConfig:
        """Configuration, with EOS ids and sampling settings of `generation_config.json`."""
        generation = self.path / "generation_config.json"
        return parse_config(self.settings, read_json(generation) if generation.exists() else {})

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of `tokenizer.json` or `tokenizer.model`."""
        from medusa_core.models.text.tokenizer import Tokenizer

        return Tokenizer.open_folder(self.path)

    @cached_property
    def written_template(self) -> WrittenTemplate:
        """The uncompiled chat template in the folder."""
        from medusa_core.models.text.written_template import template_in

        return template_in(self.path)

    def checkpoint(self) -> Checkpoint:
        """Open the safetensors files."""
        from medusa_core.models.checkpoints.folder_checkpoint import open_folder

        return open_folder(self.path)

    @property
    def sources(self) -> frozenset[Path]:
        """The safetensors files and `config.json`."""
        return self.checkpoint().files | {self.path / "config.json"}

    @cached_property
    def _tokenizer_text(self) -> str:
        """The text of `tokenizer.json`; empty without."""
        file = self.path / "tokenizer.json"
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def _names_token(self, text: str) -> bool:
        """Whether `tokenizer.json` contains a text as a JSON string."""
        return json.dumps(text, ensure_ascii=False) in self._tokenizer_text


class GgufFiles(ModelFiles):
    """A GGUF file, or its shards; see `ModelFiles`."""

    @cached_property
    def headers(self) -> Gguf:
        """Parsed headers.

        Raises:
            CheckpointError: A file is missing or damaged, or has an unsupported tensor type.
        """
        return read_gguf(self.path)

    @property
    def name(self) -> str:
        """Name in the metadata, or the file's name."""
        return model_name(self.headers)

    @cached_property
    def _parsed(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
        """`config.json`, `generation_config.json` and tensor types, translated from GGUF keys."""
        return config_of(self.headers)

    @property
    def settings(self) -> Mapping[str, object]:
        """Metadata translated to a `config.json`."""
        return self._parsed[0]

    @cached_property
    def config(self) -> ModelConfig:
        """Configuration; errors name GGUF's keys."""
        with gguf_errors(self.headers):
            return parse_config(*self._parsed)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer in the file."""
        from medusa_core.models.text.gguf_tokenizer import make_gguf_tokenizer

        return make_gguf_tokenizer(self.headers)

    @cached_property
    def written_template(self) -> WrittenTemplate:
        """The uncompiled chat template in the file."""
        from medusa_core.models.text.gguf_tokenizer import template_of

        return template_of(self.headers)

    def checkpoint(self) -> Checkpoint:
        """Open the tensors by Hugging Face's names."""
        from medusa_core.models.checkpoints.gguf_checkpoint import GgufCheckpoint

        return GgufCheckpoint(self.headers)

    @property
    def sources(self) -> frozenset[Path]:
        """All shards."""
        return frozenset(self.headers.files)

    def _names_token(self, text: str) -> bool:
        """Whether a text is in the file's list of tokens."""
        from medusa_core.models.text.gguf_tokenizer import token_texts

        return text in token_texts(self.headers)
