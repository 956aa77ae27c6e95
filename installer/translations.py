"""Translations as Qt reads them, compiled from their sources: `medusa_de.ts` to `medusa_de.qm`."""

import os
from pathlib import Path

from installer.console import say
from installer.layout import Layout
from installer.process import Commands

TIMEOUT_S = 60.0


def compile_translations(layout: Layout, commands: Commands, lrelease: Path) -> None:
    """Compile translations older than their source; report failures and continue.

    Args:
        layout: paths of the checkout.
        commands: runs the compiler.
        lrelease: Qt's compiler of translations.
    """
    for source in outdated_translations(layout):
        _compile(commands, lrelease, source)


def outdated_translations(layout: Layout) -> list[Path]:
    """Return the sources of outdated translations."""
    sources = sorted(layout.translations.glob("*.ts"))
    return [source for source in sources if not is_current(source, source.with_suffix(".qm"))]


def is_current(source: Path, compiled: Path) -> bool:
    """Return whether a compiled translation exists and is as new as its source."""
    return compiled.exists() and compiled.stat().st_mtime_ns >= source.stat().st_mtime_ns


def _compile(commands: Commands, lrelease: Path, source: Path) -> None:
    compiled = source.with_suffix(".qm")
    part = compiled.with_name(f"{compiled.name}.{os.getpid()}")
    command = [str(lrelease), "-silent", str(source), "-qm", str(part)]
    output = commands.capture(command, TIMEOUT_S)
    try:
        if output.status != 0:
            say(f"{source.name} could not be compiled: {output.text.strip()}")
            return
        part.replace(compiled)  # at once: an interruption leaves no half of one
    except OSError as error:
        say(f"{compiled.name} could not be written: {error}.")
    finally:
        part.unlink(missing_ok=True)
