"""Where the files that ship with the application lie."""

from __future__ import annotations

import os
from pathlib import Path


def resources_dir() -> Path:
    """Folder of shipped files; `MEDUSA_RESOURCES` overrides it for packaged builds."""
    override = os.environ.get("MEDUSA_RESOURCES")
    return Path(override) if override else Path(__file__).resolve().parent.parent / "resources"


def demo_model_dir() -> Path:
    """Folder of Llama-Pebble, the embedded demo model."""
    return resources_dir() / "models" / "llama-pebble"


def demo_heads_dir() -> Path:
    """Folder of Llama-Pebble's Medusa heads."""
    return resources_dir() / "models" / "llama-pebble-medusa"


def prompts_dir() -> Path:
    """Folder of the prompts that tests and benchmarks use."""
    return resources_dir() / "prompts"
