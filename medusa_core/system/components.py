"""Versions and licences of this application's components. Nothing here needs torch."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from pathlib import Path

from medusa_core.system.resources import (
    FIRST_MODEL_LICENCE,
    FIRST_MODEL_NAME,
    first_model_file,
    program_root,
    resources_dir,
)

_SHOWN = ("torch", "PySide6-Essentials", "transformers", "tokenizers", "safetensors")
_LIBRARIES = (
    *("torch", "PySide6-Essentials", "shiboken6", "transformers", "tokenizers", "safetensors"),
    *("huggingface_hub", "httpx2", "jinja2", "numpy", "psutil", "filelock", "fastjsonschema"),
    *("bitsandbytes", "qasync", "platformdirs", "markdown-it-py", "pygments", "pyqtgraph"),
    *("pypdf", "keyring", "llguidance", "prompt_toolkit", "starlette"),
    *("uvicorn", "accelerate", "jeepney", "mcp"),
)
_FIRST_MODEL = f"{FIRST_MODEL_LICENCE}, by Hugging Face"
_SHIPPED = {
    "Codebooks of llama.cpp": "MIT, by the ggml authors",
    "Inter": "SIL Open Font License 1.1",
    "JetBrains Mono": "SIL Open Font License 1.1",
    "Llama-Pebble": "Built with Llama (Llama 3.1 Community License for its texts)",
}
_MAX_CHARS = 60  # of a licence's name; some packages put its whole text there
_UNKNOWN = "see its own files"


def component_versions() -> dict[str, str]:
    """Return versions of the program and its libraries by name; empty if one isn't installed."""
    from medusa_core import __version__

    loaded = sys.modules.get("medusa_core.system.native.binding")
    library = None if loaded is None else loaded.native_library()
    native = "not loaded yet" if loaded is None else "none for this machine"
    if library is not None:
        native = library._name.replace("\\", "/").rpartition("/")[2]
    return {
        "Medusa Chat": __version__,
        "Python": platform.python_version(),
        **{name: version_of(name) for name in _SHOWN},
        "Compiled library": native,
        "System": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def component_licences() -> dict[str, str]:
    """Return the licences of the program, of libraries and of shipped files by name."""
    from medusa_core import LICENCE

    own = {"Medusa Chat": LICENCE}
    found = {name: _licence(name) for name in _LIBRARIES if version_of(name)}
    fetched = {} if first_model_file() is None else {FIRST_MODEL_NAME: _FIRST_MODEL}
    return own | found | fetched | _SHIPPED


def licences_file() -> Path:
    """Return the path of the licence texts: among packaged resources, or in a checkout."""
    packed = resources_dir() / "LICENCES.md"
    return packed if packed.is_file() else program_root() / "installer" / "LICENCES.md"


def version_of(package: str) -> str:
    """Return the version of a library; empty if it isn't installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _licence(package: str) -> str:
    """Return a library's licence from its metadata."""
    about = metadata.metadata(package)
    if expressions := about.get_all("License-Expression"):
        return str(expressions[0])
    listed = str((about.get_all("License") or [""])[0])
    if not listed or len(listed) > _MAX_CHARS or "\n" in listed:
        classifiers = about.get_all("Classifier") or []
        listed = ", ".join(
            one.rpartition(" :: ")[2] for one in classifiers if one.startswith("License ::")
        )
    return listed or _UNKNOWN
