"""Check required and optional libraries."""

from __future__ import annotations

import sys
from functools import partial

from medusa_core.doctor.check import Check, CheckSpec, install_again
from medusa_core.i18n import tr
from medusa_core.system.components import version_of

# Without torch, which `machine.py` checks.
_NEEDED = (
    *("safetensors", "tokenizers", "jinja2", "numpy", "psutil", "platformdirs", "filelock"),
    *(
        "accelerate",
        "fastjsonschema",
        "huggingface_hub",
        "httpx2",
        "keyring",
        "llguidance",
        "prompt_toolkit",
    ),
)
_WINDOW = (
    *("PySide6-Essentials", "qasync", "markdown-it-py", "pygments", "pyqtgraph"),
    "pypdf",
)
# Optional libraries, and what each is for.
_OPTIONAL = {
    "bitsandbytes": "4-bit and 8-bit models on a graphics card",
    "transformers": "comparing with transformers in bench",
    "starlette": "the server for other programs",
    "uvicorn": "the server for other programs",
    "mcp": "tool servers",
    "ray": "layers on other machines",
    "llama-cpp-python": "comparing with llama.cpp in bench",
    "matplotlib": "drawing benchmarks",
}
if sys.platform == "linux":
    _OPTIONAL["jeepney"] = "notifications of the desktop"


def package_checks() -> tuple[CheckSpec, ...]:
    """Return the checks of libraries."""
    return (
        CheckSpec(tr("Libraries"), partial(_check_installed, tr("Libraries"), _NEEDED)),
        CheckSpec(tr("Window"), partial(_check_installed, tr("Window"), _WINDOW)),
        CheckSpec(tr("Optional pieces"), _optional),
    )


def _check_installed(name: str, packages: tuple[str, ...]) -> Check:
    """Check that all packages are installed, and list their versions."""
    found = {package: version_of(package) for package in packages}
    missing = [package for package, version in found.items() if not version]
    if missing:
        return Check(name, False, tr("Not installed: {0}.", ", ".join(missing)), install_again())
    listed = ", ".join(f"{package} {version}" for package, version in found.items())
    return Check(name, True, tr("{0}.", listed))


def _optional() -> Check:
    """List optional libraries that are installed and missing."""
    missing = {one: use for one, use in _OPTIONAL.items() if not version_of(one)}
    installed = [f"{one} {version_of(one)}" for one in _OPTIONAL if one not in missing]
    listed = tr("Installed: {0}.", ", ".join(installed) or "none")
    lacks = "; ".join(f"{one} ({use})" for one, use in missing.items())
    return Check(
        tr("Optional pieces"), True, listed, tr("Not installed: {0}.", lacks) if lacks else ""
    )
