"""`medusa doctor`: what works here, and what to do where it doesn't."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from medusa_core.doctor.doctor import run_checks
from medusa_core.system.user_folders import places


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `doctor`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--data-dir", type=Path, metavar="FOLDER", help="the folder that the window is started with"
    )


def run(args: argparse.Namespace) -> int:
    """Print what was found.

    Returns:
        0 if all is well, 1 if a check fails.
    """
    checks = run_checks(places(args.data_dir))
    if args.json:
        print(json.dumps({"checks": [asdict(check) for check in checks]}, indent=1))
    else:
        for check in checks:
            print(f"{'ok  ' if check.ok else 'FAIL'}  {check.name}: {check.message}")
            if check.hint:
                print(f"        {check.hint}")
    return 0 if all(check.ok for check in checks) else 1
