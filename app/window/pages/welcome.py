"""The welcome page of the first start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n.words import QT_TRANSLATE_NOOP
from app.window.commands.command import Section
from app.window.load_questions import ask_for_gguf
from app.window.pages.page import Page
from app.window.pages.settings import folders
from medusa_core.api import VERSION

if TYPE_CHECKING:
    from app.help.welcome_dialog import WelcomeDialog
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts
    from medusa_core.api import PairOffer


def _make(parts: WindowParts, pages: Pages) -> WelcomeDialog:
    from app.help.steps import FilesStep, ModelStep, WhatStep
    from app.help.welcome_dialog import WelcomeDialog

    looks = parts.appearance
    model = ModelStep(parts.models.open(), looks)
    steps = (WhatStep(looks), model, FilesStep(folders(parts), looks))
    dialog = WelcomeDialog(steps, looks, parts.window)

    def download(offer: PairOffer) -> None:
        dialog.accept()
        if not offer.is_pickled:
            parts.proposal.fetch(offer)
            return
        from app.models.library_dialog import LibraryDialog

        manager = pages.open("models")  # where the user must agree to convert pickled heads first
        if isinstance(manager, LibraryDialog):
            manager.download(offer)

    model.download_requested.connect(download)
    model.gguf_requested.connect(dialog.accept)
    model.gguf_requested.connect(lambda: ask_for_gguf(parts.window, parts.models))
    parts.settings.set(has_seen_welcome=True)
    model.look()
    return dialog


def _greet(parts: WindowParts, pages: Pages) -> None:
    if not parts.settings.values.has_seen_welcome:
        parts.settings.set(seen_version=VERSION)  # to a new user nothing is new
        pages.open(SPEC.name)


SPEC = Page(
    "welcome",
    QT_TRANSLATE_NOOP("Pages", "First steps"),
    Section.APPLICATION,
    _make,
    menu=320,
    is_kept=False,
    at_start=_greet,
)
