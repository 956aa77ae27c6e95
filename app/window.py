"""The main window: the chat, its keys, and what it remembers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QKeyCombination, QSize, Qt, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QIcon,
    QKeySequence,
    QShortcut,
)
from PySide6.QtWidgets import QMainWindow

from app.about import AboutDialog
from app.bridge import EngineBridge
from app.chat.chat_page import ChatPage
from app.chat.controller import ChatController
from app.chat.memory_watch import MemoryWatch
from app.control.seeds import NewSeed, new_seed
from app.insight.insight_panels import Insight
from app.markdown.formats import Marking
from app.model_keeper import ModelKeeper
from app.preferences import Preferences, save_preferences
from app.theme.appearance import Appearance, ThemeChoice
from medusa_core.errors import MedusaError
from medusa_core.model_choice import ModelChoice, demo_choice
from medusa_core.model_state import Phase
from medusa_core.presets import Presets

if TYPE_CHECKING:
    from app.library.library_dialog import LibraryDialog
    from medusa_core.api import Library

    OpenLibrary = Callable[[], Library]

TITLE = "Medusa Chat"
START_SIZE = QSize(1120, 800)
MIN_SIZE = QSize(700, 500)


class MainWindow(QMainWindow):
    """The window of the application.

    Args:
        config_dir: Where choices are kept; None forgets them.
        open_library: Opens the library when it is needed first; None offers none.

    Attributes:
        page: Its widgets.
        chat: Leads the conversation.
        insight: Shows how answers came to be.
        keeper: State of the model.
        memory: Says what it runs on, and how much memory that has.

    Signals:
        closed: The user is done.
    """

    closed = Signal()

    def __init__(
        self,
        bridge: EngineBridge,
        keeper: ModelKeeper,
        appearance: Appearance,
        preferences: Preferences,
        config_dir: Path | None,
        *,
        resources: Path,
        open_library: OpenLibrary | None = None,
        make_seed: NewSeed = new_seed,
    ) -> None:
        super().__init__()
        self.keeper = keeper
        self._appearance = appearance
        self._preferences = preferences
        self._config_dir = config_dir
        self._resources = resources
        self._open_library = open_library
        self.library: Library | None = None
        self.models: LibraryDialog | None = None
        presets = Presets(config_dir)
        self.page = ChatPage(appearance, presets, make_seed)
        self.chat = ChatController(self.page, bridge, keeper, appearance)
        demo = demo_choice()
        self._known = {demo.model_dir: demo}
        self.memory = MemoryWatch(self.page.strip, keeper)
        self.insight = Insight(self, self.chat, bridge, keeper, appearance)
        self.setAcceptDrops(True)
        self.setWindowTitle(TITLE)
        self.setWindowIcon(QIcon(str(resources / "icons" / "app.svg")))
        self.setMinimumSize(MIN_SIZE)
        self.resize(START_SIZE)
        self.setCentralWidget(self.page)
        self.page.show_panel(preferences.shows_panel)
        self._connect()
        self._add_shortcuts()
        self.page.strip.choose_marking(Marking(preferences.marking))
        self.page.header.choose_recording(preferences.records)
        self.page.empty.show_hint(not preferences.has_read_hint)
        if presets.trouble is not None:
            self.chat.errors.show(presets.trouble.message, presets.trouble.hint)
        self.page.composer.setFocus()

    def toggle_theme(self) -> None:
        """Take the other theme, and keep to it whatever the system says."""
        choice = ThemeChoice.LIGHT if self._appearance.theme.is_dark else ThemeChoice.DARK
        self._appearance.choose(choice)
        self._remember(theme=choice.value)

    def zoom(self, steps: int) -> None:
        """Make everything larger or smaller; 0 goes back to normal."""
        self._appearance.zoom(steps)
        self._remember(zoom=self._appearance.scale.zoom)

    def show_about(self) -> None:
        """Say what this is and whose work is in it."""
        dialog = AboutDialog(self._resources, self._appearance, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def stop(self) -> None:
        """Stop the answer that is being written, else the model that is being loaded."""
        if not self.chat.is_busy and self.keeper.status.phase is Phase.LOADING:
            self.keeper.cancel()
        self.chat.stop()

    def show_models(self) -> None:
        """Open the model manager."""
        library = self.need_library()
        if library is None:
            return
        if self.models is None:
            from app.library.library_dialog import LibraryDialog

            chosen = self._preferences
            self.models = LibraryDialog(
                library, self._appearance, chosen.unload_minutes, chosen.device, self
            )
            self.models.load_requested.connect(self.keeper.load)
            self.models.idle_chosen.connect(self._set_idle)
            self.models.device_chosen.connect(self._set_device)
            self.models.installed.cache_changed.connect(
                lambda folder: self._remember(models_dir=folder)
            )
        loaded = self.keeper.status.loaded
        plan = None if loaded is None else loaded.plan
        own = 0 if plan is None else plan.weights_bytes + plan.heads_bytes + plan.kv_bytes
        self.models.refresh(own)
        self.models.show()
        self.models.raise_()

    def need_library(self) -> Library | None:
        """The library, opened at the first call; None if there is none."""
        if self.library is None and self._open_library is not None:
            try:
                self.library = self._open_library()
            except MedusaError as error:
                self.chat.errors.show(error.message, error.hint)
                return None
            self.library.downloads.start()
        return self.library

    async def offer_installed(self) -> None:
        """Put what is on this computer into the header's list of models."""
        library = self.need_library()
        if library is None:
            return
        installed = await library.installed()
        for item in installed:
            if item.config is not None and item.is_complete:
                fitting = [h for h, reason in library.heads_for(item, installed) if not reason]
                heads_dir = fitting[0].folder if fitting else None
                name = item.name.rpartition("/")[2]
                self._known.setdefault(item.folder, ModelChoice(name, item.folder, heads_dir))
        self._offer_models()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls()]
        if len(paths) == 1 and paths[0].suffix.lower() == ".json":
            self.insight.files.open_trace(paths[0])
        else:
            self.chat.errors.show(
                "This can't be opened.", "Drop one trace: a .json file that was saved here."
            )

    def closeEvent(self, event: QCloseEvent) -> None:
        self.insight.close_all()
        self.closed.emit()
        super().closeEvent(event)

    def _connect(self) -> None:
        self._appearance.changed.connect(self.page.restyle)
        self.page.header.theme_toggled.connect(self.toggle_theme)
        self.page.header.about_requested.connect(self.show_about)
        self.page.strip.marking_changed.connect(
            lambda marking: self._remember(marking=marking.value)
        )
        self.page.empty.hint_dismissed.connect(self._dismiss_hint)
        self.page.empty.models_requested.connect(self.show_models)
        self.page.header.models_requested.connect(self.show_models)
        self.page.header.offer_insight(
            (
                ("Visualize tree\tF9", self.insight.open_tree),
                ("Steps\tF10", self.insight.open_steps),
                ("Equilibrium\tCtrl+Shift+E", self.insight.open_equilibrium),
                ("Compare two modes …\tCtrl+Shift+D", self.insight.open_compare),
                ("Open a trace …", self.insight.files.ask_to_open),
            )
        )
        self.page.header.recording_chosen.connect(self._set_recording)
        self.page.panel_shown.connect(lambda is_open: self._remember(shows_panel=is_open))
        self.page.control.presets.refused.connect(self.chat.errors.show)
        self.keeper.chosen.connect(self._remember_model)

    def _add_shortcuts(self) -> None:
        standard = QKeySequence.StandardKey
        ctrl = Qt.KeyboardModifier.ControlModifier
        for keys, action in (
            (QKeySequence(standard.New), self.chat.new_chat),
            (QKeySequence(Qt.Key.Key_Escape), self.stop),
            (QKeySequence(QKeyCombination(ctrl, Qt.Key.Key_Return)), self.page.composer.submit),
            (QKeySequence(QKeyCombination(ctrl, Qt.Key.Key_R)), self.chat.regenerate),
            (
                QKeySequence(ctrl | Qt.KeyboardModifier.ShiftModifier | Qt.Key.Key_P),
                self.page.toggle_panel,
            ),
            (QKeySequence(standard.HelpContents), self.show_about),
            (
                QKeySequence(ctrl | Qt.KeyboardModifier.ShiftModifier | Qt.Key.Key_M),
                self.show_models,
            ),
            (QKeySequence(Qt.Key.Key_F9), lambda: self.insight.toggle(self.insight.open_tree)),
            (QKeySequence(Qt.Key.Key_F10), lambda: self.insight.toggle(self.insight.open_steps)),
            (
                QKeySequence(ctrl | Qt.KeyboardModifier.ShiftModifier | Qt.Key.Key_E),
                lambda: self.insight.toggle(self.insight.open_equilibrium),
            ),
            (
                QKeySequence(ctrl | Qt.KeyboardModifier.ShiftModifier | Qt.Key.Key_D),
                self.insight.open_compare,
            ),
            (QKeySequence(standard.ZoomIn), lambda: self.zoom(1)),
            # The same key without Shift on most keyboards.
            (QKeySequence(QKeyCombination(ctrl, Qt.Key.Key_Equal)), lambda: self.zoom(1)),
            (QKeySequence(standard.ZoomOut), lambda: self.zoom(-1)),
            (QKeySequence(QKeyCombination(ctrl, Qt.Key.Key_0)), lambda: self.zoom(0)),
        ):
            self._add_shortcut(keys, action)

    def _add_shortcut(self, keys: QKeySequence, action: Callable[[], object]) -> None:
        shortcut = QShortcut(keys, self)
        shortcut.activated.connect(action)

    def _dismiss_hint(self) -> None:
        self.page.empty.show_hint(False)
        self._remember(has_read_hint=True)

    def _remember_model(self) -> None:
        choice = self.keeper.choice
        self._remember(model=choice)
        self._known[choice.model_dir] = choice
        self._offer_models()

    def _offer_models(self) -> None:
        self.page.header.offer_models(tuple(self._known.values()), self.keeper.load)

    def _set_recording(self, on: bool) -> None:
        self.chat.records = on
        self._remember(records=on)

    def _set_idle(self, minutes: float) -> None:
        self._remember(unload_minutes=minutes)
        self.keeper.unload_after(minutes)

    def _set_device(self, device: str) -> None:
        self._remember(device=device)
        self.keeper.use_device(device)
        if self.keeper.status.phase is not Phase.ASLEEP:
            self.keeper.load()

    def _remember(self, **choices: object) -> None:
        # The names are fields of Preferences; mypy can't see through the star.
        self._preferences = replace(self._preferences, **choices)  # type: ignore[arg-type]
        if self._config_dir is not None:
            save_preferences(self._preferences, self._config_dir)
