"""A model's files: a folder in Hugging Face layout, or a GGUF file.

Whoever needs more than one part of a model opens its files once, and asks them.
"""

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

# Whoever asks for sizes alone, such as the list of models, doesn't wait for torch and tokenizers.
if TYPE_CHECKING:
    from medusa_core.models.checkpoints.checkpoint import Checkpoint
    from medusa_core.models.text.template import Template
    from medusa_core.models.text.tokenizer import Tokenizer
    from medusa_core.models.text.written_template import WrittenTemplate


class ModelFiles(ABC):
    """What lies in a model's files; each part is read when it is first asked for, and once.

    Attributes:
        path: The folder or file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def open(path: Path) -> ModelFiles:
        """The files at a path; what isn't there shows when a part of it is asked for."""
        return GgufFiles(path) if is_gguf(path) else FolderFiles(path)

    @staticmethod
    def find(path: Path) -> ModelFiles | None:
        """The files at a path; None where neither a folder nor a GGUF file is."""
        files = ModelFiles.open(path)
        return files if path.is_dir() or isinstance(files, GgufFiles) else None

    @property
    @abstractmethod
    def name(self) -> str:
        """What the model is called.

        Raises:
            CheckpointError: The files are damaged.
        """

    @property
    @abstractmethod
    def config(self) -> ModelConfig:
        """Its sizes, checked.

        Raises:
            CheckpointError: A file is missing or damaged.
            ModelError: They describe something that this engine doesn't run.
        """

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, object]:
        """What `config.json` says, or would say.

        Raises:
            CheckpointError: A file is missing or damaged.
            ModelError: It is a GGUF file of an architecture that isn't supported.
        """

    @property
    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer.

        Raises:
            CheckpointError: The files are damaged.
            TokenizerError: It is missing, damaged, or of a kind that can't be streamed.
        """

    @property
    @abstractmethod
    def written_template(self) -> WrittenTemplate:
        """What the files say of conversations.

        Raises:
            CheckpointError: The files are damaged.
            TemplateError: The template can't be read.
        """

    @cached_property
    def template(self) -> Template:
        """What writes its prompts: its chat template, or a base model's text as it is.

        Raises:
            CheckpointError: The files are damaged.
            TemplateError: It doesn't parse.
        """
        from medusa_core.models.text.template import open_template

        return open_template(self.written_template, self.tokenizer.knows)

    @property
    def is_base(self) -> bool:
        """Is it a model without a chat template? Its tokenizer isn't built to find out.

        Raises:
            CheckpointError: The files are damaged.
            TemplateError: Its template can't be read.
        """
        return self.written_template.source_or_known(self._names_token) is None

    @abstractmethod
    def checkpoint(self) -> Checkpoint:
        """Its weights, to be read tensor by tensor; another one each time.

        Raises:
            CheckpointError: A file is missing or damaged.
            ModelError: They are of an architecture that isn't supported.
        """

    @property
    @abstractmethod
    def sources(self) -> frozenset[Path]:
        """All files that make the weights what they are.

        Raises:
            CheckpointError: A file is missing or damaged.
        """

    @abstractmethod
    def _names_token(self, text: str) -> bool:
        """Whether a text is a token, by the files alone."""


class FolderFiles(ModelFiles):
    """A folder in Hugging Face layout; see `ModelFiles`."""

    @property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def settings(self) -> Mapping[str, object]:
        return read_json(self.path / "config.json")

    @cached_property
    def config(self) -> ModelConfig:
        generation = self.path / "generation_config.json"
        return parse_config(self.settings, read_json(generation) if generation.exists() else {})

    @cached_property
    def tokenizer(self) -> Tokenizer:
        from medusa_core.models.text.tokenizer import Tokenizer

        return Tokenizer.open_folder(self.path)

    @cached_property
    def written_template(self) -> WrittenTemplate:
        from medusa_core.models.text.written_template import template_in

        return template_in(self.path)

    def checkpoint(self) -> Checkpoint:
        from medusa_core.models.checkpoints.folder_checkpoint import open_folder

        return open_folder(self.path)

    @property
    def sources(self) -> frozenset[Path]:
        return self.checkpoint().files | {self.path / "config.json"}

    @cached_property
    def _tokenizer_text(self) -> str:
        file = self.path / "tokenizer.json"
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def _names_token(self, text: str) -> bool:
        return json.dumps(text, ensure_ascii=False) in self._tokenizer_text


class GgufFiles(ModelFiles):
    """A GGUF file, or several that are one model; see `ModelFiles`."""

    @cached_property
    def headers(self) -> Gguf:
        """What the files say of themselves.

        Raises:
            CheckpointError: One is missing, damaged, or holds a type that isn't read.
        """
        return read_gguf(self.path)

    @property
    def name(self) -> str:
        return model_name(self.headers)

    @cached_property
    def _config_parts(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
        return config_of(self.headers)

    @property
    def settings(self) -> Mapping[str, object]:
        return self._config_parts[0]

    @cached_property
    def config(self) -> ModelConfig:
        with gguf_errors(self.headers):
            return parse_config(*self._config_parts)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        from medusa_core.models.text.gguf_tokenizer import make_gguf_tokenizer
        from medusa_core.models.text.tokenizer import Tokenizer

        return Tokenizer(*make_gguf_tokenizer(self.headers))

    @cached_property
    def written_template(self) -> WrittenTemplate:
        from medusa_core.models.text.gguf_tokenizer import template_of

        return template_of(self.headers)

    def checkpoint(self) -> Checkpoint:
        from medusa_core.models.checkpoints.gguf_checkpoint import GgufCheckpoint

        return GgufCheckpoint(self.headers)

    @property
    def sources(self) -> frozenset[Path]:
        return frozenset(self.headers.files)

    def _names_token(self, text: str) -> bool:
        from medusa_core.models.text.gguf_tokenizer import token_texts

        return text in token_texts(self.headers)
