"""Run all checks."""

from __future__ import annotations

from medusa_core.doctor.check import Check, run_specs
from medusa_core.doctor.machine import machine_checks
from medusa_core.doctor.packages import package_checks
from medusa_core.doctor.storage import storage_checks
from medusa_core.system.user_folders import Places


def run_checks(places: Places) -> tuple[Check, ...]:
    """Run all checks; takes a few seconds if torch isn't loaded yet.

    Args:
        places: Folders of this user.
    """
    return run_specs((*machine_checks(), *package_checks(), *storage_checks(places)))
