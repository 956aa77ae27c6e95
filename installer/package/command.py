"""`python3 installer package`: which packages are built, and where to."""

import argparse
import tempfile
from pathlib import Path

from installer.errors import SetupError
from installer.layout import Layout
from installer.package.format import Job, all_formats
from installer.process import Commands


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
