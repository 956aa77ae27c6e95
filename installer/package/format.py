"""What a format of package is, and all that there are."""

import argparse
import importlib
import pkgutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from installer import package
from installer.errors import SetupError
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
    found = {one for module in modules for one in vars(module).values() if isinstance(one, Format)}
    return tuple(sorted(found, key=lambda one: one.name))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `package`: a flag for each format."""
    for one in all_formats():
        parser.add_argument(f"--{one.name}", action="store_true", help=one.does)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder that gets the packages"
    )


def build_packages(layout: Layout, commands: Commands, options: argparse.Namespace) -> list[Path]:
    """Build each requested format; returns the files.

    Raises:
        SetupError: none was asked for, or one can't be built.
    """
    formats = all_formats()
    chosen = [one for one in formats if getattr(options, one.name)]
    if not chosen:
        flags = " ".join(f"--{one.name}" for one in formats)
        raise SetupError("No format was chosen.", f"Add one or more of {flags}.")
    out = options.out.expanduser().absolute()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"{out} can't be made: {error.strerror}.", "Choose another --out."
        ) from error
    built = []
    for one in chosen:
        with tempfile.TemporaryDirectory(prefix="medusa-package-") as work:
            built.append(one.build(Job(layout, commands, out, Path(work))))
    return built
