"""List GGUF files of other programs, which are never changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from medusa_core.models.model_files import ModelFiles
from medusa_core.system.files.gguf import is_first
from medusa_core.system.files.gguf_companions import is_companion, is_drafter_name

_MANIFEST_BYTES = 1 << 20
_MODEL_LAYER = "application/vnd.ollama.image.model"
_MAX_FOUND = 1000


@dataclass(frozen=True, slots=True)
class ForeignModel:
    """A model of another program.

    Attributes:
        name: Name in that program.
        path: GGUF file.
        owner: Name of the program.
    """

    name: str
    path: Path
    owner: str


def models_of_others(environment: Mapping[str, str], home: Path) -> tuple[ForeignModel, ...]:
    """Return GGUF files of LM Studio, llama.cpp and Ollama in their default folders.

    Args:
        environment: Environment variables, which may name other folders.
        home: Home folder of the user.
    """
    llama_cpp = environment.get("LLAMA_CACHE", "")
    ollama = environment.get("OLLAMA_MODELS", "")
    folders = (
        ("LM Studio", home / ".lmstudio" / "models"),
        ("LM Studio", home / ".cache" / "lm-studio" / "models"),
        ("llama.cpp", Path(llama_cpp) if llama_cpp else home / ".cache" / "llama.cpp"),
    )
    found = [
        ForeignModel(path.stem, path, owner)
        for owner, folder in folders
        for path in _files_below(folder)
    ]
    found += _of_ollama(Path(ollama) if ollama else home / ".ollama" / "models")
    return tuple(found[:_MAX_FOUND])


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield GGUF files at publisher/repository/file."""
    if not folder.is_dir():
        return
    for pattern in ("*.gguf", "*/*.gguf", "*/*/*.gguf"):
        for path in sorted(folder.glob(pattern)):
            is_wanted = is_drafter_name(path.name) or not is_companion(path.name)
            if not path.is_dir() and is_first(path) and is_wanted:
                yield path


def _of_ollama(folder: Path) -> Iterator[ForeignModel]:
    """Yield Ollama's blobs, which manifests name."""
    for manifest in sorted(folder.glob("manifests/*/*/*/*")):
        digest = _model_digest(manifest)
        path = folder / "blobs" / digest.replace(":", "-")
        if digest and ModelFiles.find(path) is not None:
            yield ForeignModel(f"{manifest.parent.name}:{manifest.name}", path, "Ollama")


def _model_digest(manifest: Path) -> str:
    """Return the digest of the layer with the weights; empty without one."""
    try:
        if not manifest.is_file() or manifest.stat().st_size > _MANIFEST_BYTES:
            return ""
        raw = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    layers = raw.get("layers") if isinstance(raw, dict) else None
    for layer in layers if isinstance(layers, list) else []:
        if isinstance(layer, dict) and layer.get("mediaType") == _MODEL_LAYER:
            digest = str(layer.get("digest", ""))
            name = digest.removeprefix("sha256:")
            return digest if name.isalnum() and digest != name else ""
    return ""
