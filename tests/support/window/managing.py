"""What tests of the model manager wait for and look at."""

import asyncio
from collections.abc import Callable

from app.models.library_dialog import LibraryDialog
from medusa_core.api import Budget
from medusa_core.loading.memory.budget import cuda_budget


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def card(dialog: LibraryDialog, gib: float) -> Budget:
    """Plan for a card that isn't there."""
    budget = cuda_budget(gib)
    dialog.discover.set_budget(budget)
    dialog.installed.set_budget(budget)
    return budget


def column(dialog: LibraryDialog, number: int) -> list[str]:
    table = dialog.discover.table
    items = [table.item(row, number) for row in range(table.rowCount())]
    return [item.text() for item in items if item is not None]


async def wait_for_tasks(dialog: LibraryDialog) -> None:
    """Wait for the background tasks of the dialog and its tabs."""
    parts = (dialog, dialog.discover, dialog.installed.draft_box)
    await until(lambda: not any(part.tasks.is_running for part in parts))
