"""The chat template in a model's files, and the tokens that it may name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medusa_core.errors import TemplateError
from medusa_core.i18n import tr
from medusa_core.models.text.known_templates import known_template
from medusa_core.models.text.rendering import MAX_SOURCE_CHARS, too_long
from medusa_core.system.files.json_file import read_json

_MAX_NAME_CHARS = 1000  # patterns are searched in it


@dataclass(frozen=True, slots=True)
class WrittenTemplate:
    """A chat template that isn't compiled yet.

    Attributes:
        path: Folder or file of the model, whose path often contains its name.
        source: Source of the template; None if there is none.
        tokens: Texts of special tokens, by names such as `bos_token`.
        names: Other names of the model.
    """

    path: Path
    source: str | None
    tokens: dict[str, str]
    names: str

    def source_or_known(self, knows: Callable[[str], bool]) -> str | None:
        """Return the template, or that of a well-known model without one; None for a base model.

        Args:
            knows: Whether a text is one token of the model.
        """
        if self.source is not None:
            return self.source
        return known_template(self.path, self.names, knows)


def template_in(folder: Path) -> WrittenTemplate:
    """Read `chat_template.jinja`, else the template in `tokenizer_config.json`.

    Raises:
        CheckpointError: A file is damaged.
        TemplateError: The template can't be read.
    """
    path = folder / "tokenizer_config.json"
    config = read_json(path) if path.exists() else {}
    file = folder / "chat_template.jinja"
    source = _read(file) if file.exists() else _named(config.get("chat_template"))
    names = _names(folder) if source is None else ""
    return WrittenTemplate(folder, source, _special_tokens(config), names)


def _named(templates: object) -> str | None:
    """Return the default of several named templates, which some models have."""
    if isinstance(templates, list):
        found = [t for t in templates if isinstance(t, dict) and isinstance(t.get("template"), str)]
        default = [t for t in found if t.get("name") == "default"]
        templates = next((t["template"] for t in default or found), None)
    return templates if isinstance(templates, str) else None


def _names(folder: Path) -> str:
    """Return the name in a model's configuration."""
    path = folder / "config.json"
    name = read_json(path).get("_name_or_path") if path.exists() else None
    return name[:_MAX_NAME_CHARS] if isinstance(name, str) else ""


def _read(file: Path) -> str:
    """Read a template file of limited size."""
    try:
        if (size := file.stat().st_size) > 4 * MAX_SOURCE_CHARS:
            raise too_long(size // 4)
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(
            tr("{0} can't be read as UTF-8 text: {1}.", file.name, error),
            "Download the file again.",
        ) from error


def _special_tokens(config: dict[str, Any]) -> dict[str, str]:
    """Return the special tokens of a `tokenizer_config.json` that templates may name."""
    found = {}
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        value = config.get(name)
        text = value.get("content") if isinstance(value, dict) else value
        if isinstance(text, str):
            found[name] = text
    return found
