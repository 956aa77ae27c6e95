"""The batch page: answers a file of prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from app.i18n.words import QT_TRANSLATE_NOOP
from app.window.commands.command import Section
from app.window.pages.page import Page
from medusa_core.api import OwnBatches

if TYPE_CHECKING:
    from app.batch.batch_dialog import BatchDialog
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts

translate = QCoreApplication.translate


def _make(parts: WindowParts, pages: Pages) -> BatchDialog | None:
    """Create the dialog; None without a user folder."""
    if parts.places is None:
        return None
    from app.batch.batch_dialog import BatchDialog

    own = OwnBatches(parts.places.data / "batches")
    dialog = BatchDialog(own, parts.layers_dir, parts.appearance, parts.window)
    dialog.room_needed.connect(parts.loaded_model.sleep)
    dialog.ended.connect(parts.notices.batch_ended)
    pages.add_job(translate("Pages", "Batch"), dialog)
    return dialog


def _prepare(dialog: BatchDialog, parts: WindowParts) -> bool:
    """Offer the loaded model, which must be on this computer."""
    dialog.form.offer_disk(parts.layers_dir)
    if parts.loaded_model.choice.remote is not None:
        parts.chat.errors.show_error(
            translate("Pages", "A file is answered by a model of this computer."),
            translate(
                "Pages", "Load one first: another machine's models answer in the chat alone."
            ),
        )
        return False
    rules = parts.appearance.legend.rules
    dialog.offer(parts.loaded_model.choice, parts.settings.values.device, rules)
    return True


def _resume(parts: WindowParts, pages: Pages) -> None:
    """Resume a batch that was running at the last exit."""
    if parts.places is None:
        return
    jobs = OwnBatches(parts.places.data / "batches").unfinished()
    if any(job.was_running for job in jobs):
        from app.batch.batch_dialog import BatchDialog

        dialog = pages.need(SPEC.name)
        if isinstance(dialog, BatchDialog) and dialog.go_on():
            dialog.show()


SPEC = Page(
    "batch",
    QT_TRANSLATE_NOOP("Pages", "Batch"),
    Section.MODELS,
    _make,
    menu=240,
    prepare=_prepare,
    at_start=_resume,
)
