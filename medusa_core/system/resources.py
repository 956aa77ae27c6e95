"""Paths of the files that ship with the application."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from medusa_core.system.user_folders import cache_dir, places

FIRST_MODEL_NAME = "SmolLM2 135M Instruct"
FIRST_MODEL_LICENCE = "Apache-2.0"
FIRST_MODEL_FILE = ("smollm2-135m-instruct", "SmolLM2-135M-Instruct.Q4_1.gguf")

_PACKED = Path(__file__).resolve().parents[1] / "_resources"


def program_root() -> Path:
    """The folder that this program is imported from."""
    return Path(__file__).resolve().parents[2]


def import_places() -> list[str]:
    """Return the `sys.path` for a child process that imports this program."""
    root = str(program_root())
    inherited = [place for place in sys.path if place]  # "" is the current folder
    return inherited if root in inherited else [root, *inherited]


def resources_dir() -> Path:
    """Folder of shipped files, in the installed package or in the checkout."""
    return program_root() / "resources" if is_checkout() else _PACKED


def is_checkout() -> bool:
    """Whether this program runs from its sources, not from an installed package."""
    return not _PACKED.is_dir()


def docs_dir() -> Path:
    """Folder of the documents, in the installed package or in the checkout."""
    return program_root() / "docs" if is_checkout() else _PACKED / "docs"


def changelog_file() -> Path:
    """Return the path of the changelog."""
    return docs_dir() / "changelog.md"


def models_dir() -> Path:
    """Folder of the model of the first start.

    The installer of a checkout puts it into the checkout's environment; otherwise it is among the
    user's data. Launchers of system packages set another folder in `MEDUSA_MODELS`.
    """
    override = os.environ.get("MEDUSA_MODELS")
    if override:
        return Path(override)
    if is_checkout():
        return Path(sys.prefix) / "share" / "medusa-chat" / "models"
    return places().data / "models"


def first_model_file() -> Path | None:
    """GGUF file of the model of the first start; None if it wasn't downloaded."""
    path = models_dir().joinpath(*FIRST_MODEL_FILE)
    return path if path.is_file() else None


def first_heads_dir() -> Path | None:
    """Folder of the heads of the model of the first start; None if none are shipped."""
    folder = resources_dir() / "heads" / FIRST_MODEL_FILE[0]
    return folder if (folder / "config.json").is_file() else None


def start_model() -> Path:
    """The model of the first start if it was downloaded, else the demo model."""
    return first_model_file() or demo_model_dir()


def shipped_heads_dirs() -> tuple[Path, ...]:
    """Folders of heads that ship with the application, including the demo model's."""
    folder = resources_dir() / "heads"
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return (*(path for path in found if path.is_dir()), demo_heads_dir())


def demo_model_dir() -> Path:
    """Folder of Llama-Pebble, the embedded demo model."""
    return resources_dir() / "models" / "llama-pebble"


def demo_heads_dir() -> Path:
    """Folder of Llama-Pebble's Medusa heads."""
    return resources_dir() / "models" / "llama-pebble-medusa"


def prompts_dir() -> Path:
    """Folder of prompts for tests and benchmarks."""
    return resources_dir() / "prompts"


def bundled_prompts() -> Path:
    """JSON lines of permissively licensed prompts, whose answers heads are trained on."""
    return resources_dir() / "training" / "prompts.jsonl"


def bundled_questions() -> Path:
    """Questions whose answers heads of any model are trained on."""
    return resources_dir() / "training" / "questions.json"


def shapes_dir() -> Path:
    """Folder of configs of well-known models, which can be planned by name."""
    return resources_dir() / "shapes"


def calibrations_dir() -> Path:
    """Folder of this machine's measured step costs; its files may be deleted."""
    return cache_dir() / "calibrations"


def quantized_models_dir() -> Path:
    """Folder of quantized models for the next load; its files may be deleted."""
    return cache_dir() / "quantized"


def native_dir() -> Path:
    """Folder of the kernel libraries, with a folder for each system."""
    return resources_dir() / "native"
