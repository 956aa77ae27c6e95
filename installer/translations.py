"""Translations as Qt reads them, compiled from their sources: `medusa_de.ts` to `medusa_de.qm`."""

import os
from pathlib import Path

from installer.console import say
from installer.layout import Layout
from installer.process import Runner

TIMEOUT_S = 60.0


def compile_translations(layout: Layout, runner: Runner) -> None:
    """Compile those that are older than their source; where one can't be, say so and go on."""
    for source in sorted(layout.translations.glob("*.ts")):
        compiled = source.with_suffix(".qm")
        if not is_current(source, compiled):
            _compile(layout, runner, source, compiled)


def is_current(source: Path, compiled: Path) -> bool:
    """Whether a compiled translation is there and as new as its source."""
    return compiled.exists() and compiled.stat().st_mtime_ns >= source.stat().st_mtime_ns


def _compile(layout: Layout, runner: Runner, source: Path, compiled: Path) -> None:
    part = compiled.with_name(f"{compiled.name}.{os.getpid()}")
    command = [str(layout.program("pyside6-lrelease")), "-silent", str(source), "-qm", str(part)]
    output = runner.capture(command, TIMEOUT_S)
    try:
        if output.status != 0:
            say(f"{source.name} could not be compiled: {output.text.strip()}")
            return
        part.replace(compiled)  # at once: an interruption leaves no half of one
    except OSError as error:
        say(f"{compiled.name} could not be written: {error}.")
    finally:
        part.unlink(missing_ok=True)
