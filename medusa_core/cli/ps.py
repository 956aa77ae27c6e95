"""`medusa ps`: list the loaded models and their programs."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from medusa_core.system.running_models import RunningModel, running_models
from medusa_core.system.user_folders import places

_HEAD = ("NAME", "SIZE", "DEVICE", "CONTEXT", "SINCE", "BY", "ADDRESS")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `ps`."""
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--data-dir", type=Path, help="the folder that the window is started with")


def run(args: argparse.Namespace) -> int:
    """Print the loaded models."""
    found = running_models(places(args.data_dir).running)
    if args.json:
        print(json.dumps({"running": [asdict(one) for one in found]}))
    elif not found:
        print("nothing is loaded")
    else:
        for line in table_lines(_HEAD, [_row(one) for one in found]):
            print(line)
    return 0


def _row(model: RunningModel) -> tuple[str, ...]:
    """Return a loaded model as cells of the table."""
    by = f"{model.program} ({model.pid})"
    if not model.model:
        return ("–", "", "", "", "", by, model.address)
    since = f"{max(0.0, time.time() - model.loaded_s) / 60:.0f} min"
    size, context = f"{model.nbytes / 1e9:.2f} GB", f"{model.context_tokens:,}"
    return (model.model, size, model.device, context, since, by, model.address)


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, with columns as wide as their cells."""
    every = (head, *rows)
    widths = [max(len(row[place]) for row in every) for place in range(len(head))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in every]
