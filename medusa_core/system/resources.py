"""Where the files that ship with the application lie."""

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
    """`sys.path` of a child process that runs this program from whatever folder."""
    root = str(program_root())
    inherited = [place for place in sys.path if place]  # "" is the folder it was started in
    return inherited if root in inherited else [root, *inherited]


def resources_dir() -> Path:
    """Folder of shipped files: in the package where it was installed, else the checkout's."""
    return program_root() / "resources" if is_checkout() else _PACKED


def is_checkout() -> bool:
    """Whether this program runs from its sources; else it was installed as a package."""
    return not _PACKED.is_dir()


def docs_dir() -> Path:
    """Folder of the documents: in the package where it was installed, else the checkout's."""
    return program_root() / "docs" if is_checkout() else _PACKED / "docs"


def changelog_file() -> Path:
    """What is new in each version."""
    return docs_dir() / "changelog.md"


def models_dir() -> Path:
    """Where the model of the first start lies.

    A checkout's installer puts it into the environment, which is the checkout's own; others keep it
    among the user's data. Launchers of system packages name a folder in `MEDUSA_MODELS`.
    """
    override = os.environ.get("MEDUSA_MODELS")
    if override:
        return Path(override)
    if is_checkout():
        return Path(sys.prefix) / "share" / "medusa-chat" / "models"
    return places().data / "models"


def first_model_file() -> Path | None:
    """The GGUF file of the model of the first start; None where it wasn't fetched."""
    path = models_dir().joinpath(*FIRST_MODEL_FILE)
    return path if path.is_file() else None


def first_heads_dir() -> Path | None:
    """Folder of the heads of the model of the first start; None where none are shipped."""
    folder = resources_dir() / "heads" / FIRST_MODEL_FILE[0]
    return folder if (folder / "config.json").is_file() else None


def start_model() -> Path:
    """The model of the first start, where it was fetched; else the demo model."""
    return first_model_file() or demo_model_dir()


def shipped_heads_dirs() -> tuple[Path, ...]:
    """Folders of heads that ship with the application, the demo model's among them."""
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
    """Folder of the prompts that tests and benchmarks use."""
    return resources_dir() / "prompts"


def bundled_prompts() -> Path:
    """Prompts of permissive licences, which models answer so that heads learn: JSON lines."""
    return resources_dir() / "training" / "prompts.jsonl"


def bundled_questions() -> Path:
    """The questions that heads of any model learn from its answers to."""
    return resources_dir() / "training" / "questions.json"


def shapes_dir() -> Path:
    """Folder of the configurations of well-known models, which can be planned by name."""
    return resources_dir() / "shapes"


def calibrations_dir() -> Path:
    """Where step costs of this machine are kept; its files may be deleted."""
    return cache_dir() / "calibrations"


def quantized_models_dir() -> Path:
    """Where quantized models are kept for the next load; its files may be deleted."""
    return cache_dir() / "quantized"


def native_dir() -> Path:
    """The compiled step for each system."""
    return resources_dir() / "native"
