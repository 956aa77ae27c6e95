"""`medusa doctor`: check the installation, with hints for repair."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from medusa_core.doctor.doctor import run_checks
from medusa_core.system.user_folders import places


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `doctor`."""
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--data-dir", type=Path, metavar="FOLDER", help="the folder that the window is started with"
    )


def run(args: argparse.Namespace) -> int:
    """Run the checks and print their results.

    Returns:
        0 if all pass, 1 if one fails.
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
