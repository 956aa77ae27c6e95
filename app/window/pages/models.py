"""The model manager and the training of draft heads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from app.i18n.words import QT_TRANSLATE_NOOP
from app.training.gain_words import gain_text
from app.window.commands.command import Section
from app.window.pages.page import Page
from medusa_core.api import OwnHeads
from medusa_core.system.jobs.heads_gain import read_gain

if TYPE_CHECKING:
    from app.models.library_dialog import LibraryDialog
    from app.training.train_dialog import TrainDialog
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts

translate = QCoreApplication.translate


def _make(parts: WindowParts, pages: Pages) -> LibraryDialog | None:
    if parts.models.open() is None:
        return None
    from app.models.library_dialog import LibraryDialog

    settings = parts.settings
    training = _make_training(parts, pages)
    dialog = LibraryDialog(parts.models, parts.appearance, parts.window, training)
    dialog.load_requested.connect(parts.loaded_model.load)
    dialog.offline_chosen.connect(lambda on: settings.set(is_offline=on))
    dialog.settings_requested.connect(lambda: pages.open("settings", "Models"))
    dialog.installed.cache_changed.connect(lambda folder: settings.set(models_dir=folder))
    for effect in ("device", "layers"):
        settings.follow(effect, lambda _now: dialog.update_budget())
    settings.follow("hub", lambda _now: dialog.follow_settings())
    return dialog


def _make_training(parts: WindowParts, pages: Pages) -> TrainDialog | None:
    """Create the training dialog; None without a user folder."""
    if parts.places is None:
        return None
    from app.training.train_dialog import TrainDialog

    own = OwnHeads(parts.places.data / "heads")
    history = "" if parts.history is None else str(parts.places.history)
    dialog = TrainDialog(own, parts.appearance, history, parts.window)

    def report_heads(folder: Path) -> None:
        # The model manager may be closed by the time heads are ready: the chat says it, too.
        gain = read_gain(folder)
        hint = translate("Pages", "Load their model under Models to use them.")
        pays = gain is None or gain.pays
        card = parts.chat.errors.show_error(gain_text(gain), hint if pays else "")
        card.add_action(translate("Pages", "Models…"), lambda: pages.open("models"))

    dialog.room_needed.connect(parts.loaded_model.sleep)
    dialog.made.connect(report_heads)
    dialog.ended.connect(parts.notices.training_ended)
    pages.add_job(translate("Pages", "Training"), dialog)
    return dialog


def _prepare(dialog: LibraryDialog, parts: WindowParts) -> None:
    dialog.installed.draft_box.remembered = parts.settings.values.draft_models
    dialog.refresh()


SPEC = Page(
    "models",
    QT_TRANSLATE_NOOP("Pages", "Models"),
    Section.MODELS,
    _make,
    keys=("Ctrl+Shift+M",),
    menu=220,
    prepare=_prepare,
)
