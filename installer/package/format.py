"""What a format of package is, and all that there are."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from installer import package
from installer.layout import Layout
from installer.process import Commands


@dataclass(frozen=True, slots=True)
class Job:
    """One package to build.

    Attributes:
        layout: paths of the checkout.
        commands: runs the tools, in the checkout.
        out: folder that gets the package.
        work: empty folder for what is needed on the way; deleted afterwards.
    """

    layout: Layout
    commands: Commands
    out: Path
    work: Path


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of package.

    Attributes:
        name: of its flag: `wheel` is built by `--wheel`.
        does: what it is for, in a few words.
        build: makes the package and returns its file; raises SetupError where it can't.
    """

    name: str
    does: str
    build: Callable[[Job], Path]


def all_formats() -> tuple[Format, ...]:
    """Return the formats of this folder by name."""
    names = (module.name for module in pkgutil.iter_modules(package.__path__))
    modules = (importlib.import_module(f"{package.__name__}.{name}") for name in names)
    found = [vars(module).get("SPEC") for module in modules]
    return tuple(sorted((f for f in found if isinstance(f, Format)), key=lambda f: f.name))
