"""Checks of the libraries: what is installed, and which of the optional ones."""

from __future__ import annotations

from functools import partial
from importlib import metadata
from importlib.util import find_spec

from medusa_core.doctor.check import Check, Examination

_NEEDED = ("transformers", "safetensors", "tokenizers", "huggingface_hub", "jinja2", "psutil")
_WINDOW = ("PySide6-Essentials", "qasync", "markdown-it-py", "pygments", "pyqtgraph")
# What each brings, and how it is had.
_OPTIONAL = {
    "bitsandbytes": "4-bit and 8-bit models on a graphics card",
    "llama-cpp-python": "comparing with llama.cpp in bench",
    "matplotlib": "drawing with bench --plot",
}


def package_checks() -> tuple[Examination, ...]:
    """What is installed."""
    return (
        Examination("Libraries", partial(_all_of, "Libraries", _NEEDED)),
        Examination("Window", partial(_all_of, "Window", _WINDOW)),
        Examination("Optional pieces", _optional),
    )


def versions() -> dict[str, str]:
    """Versions of what matters, by name; empty for what isn't installed."""
    names = ("medusa-chat", "torch", "PySide6-Essentials", "transformers", "tokenizers")
    return {name: _version(name) for name in names}


def _all_of(name: str, packages: tuple[str, ...]) -> Check:
    found = {package: _version(package) for package in packages}
    missing = [package for package, version in found.items() if not version]
    if missing:
        hint = "Install Medusa Chat again: python3 installer run"
        return Check(name, False, f"Not installed: {', '.join(missing)}.", hint)
    said = ", ".join(f"{package} {version}" for package, version in found.items())
    return Check(name, True, f"{said}.")


def _optional() -> Check:
    missing = {one: use for one, use in _OPTIONAL.items() if not _version(one)}
    here = [f"{one} {_version(one)}" for one in _OPTIONAL if one not in missing]
    said = f"Installed: {', '.join(here) or 'none'}."
    lacks = "; ".join(f"{one} ({use})" for one, use in missing.items())
    return Check("Optional pieces", True, said, f"Not installed: {lacks}." if lacks else "")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        # Run from its folder, the application itself is not installed.
        return "from its folder" if package == "medusa-chat" and find_spec("app") else ""
