"""All checks."""

from __future__ import annotations

from medusa_core.doctor.check import Check, examine
from medusa_core.doctor.machine import machine_checks
from medusa_core.doctor.packages import package_checks
from medusa_core.doctor.storage import storage_checks
from medusa_core.system.user_folders import Places


def run_checks(places: Places) -> tuple[Check, ...]:
    """Look at everything; takes a few seconds where torch isn't loaded yet.

    Args:
        places: Where this user's files lie.
    """
    return examine((*machine_checks(), *package_checks(), *storage_checks(places)))
