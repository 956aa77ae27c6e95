"""Builds the application, runs its event loop, and shuts it down."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import qasync
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from app.engine.bridge import EngineBridge
from app.engine.loaded_model import LoadedModel
from app.i18n.translation import install_language
from app.server.server_switch import RunningServer, ServerEvents
from app.settings.preferences import Preferences, load_preferences
from app.settings.store import SettingsStore
from app.startup.crash import CrashGuard
from app.startup.first_paint import FirstPaint
from app.startup.gc_scheduler import GcScheduler
from app.startup.launcher import notify_launcher
from app.startup.logs import (
    show_uncaught_errors,
    start_logging,
)
from app.startup.single_instance import SingleInstance
from app.state.tasks import Tasks
from app.theme.appearance import Appearance, ThemeChoice
from app.widgets.accessible_roles import give_roles
from app.window.main_window import (
    TITLE,
    MainWindow,
)
from medusa_core.api import (
    APP_NAME,
    Places,
    calibrations_dir,
    open_history,
    places,
    quantized_models_dir,
    resources_dir,
    start_engine,
)
from medusa_core.errors import MedusaError
from medusa_core.server.shared_engine import SharedEngine

if TYPE_CHECKING:
    from app.state.library import OpenLibrary
    from medusa_core.api import Library, RunningFile

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the application.

    Attributes:
        theme: `system`, `light` or `dark`; None for the user's choice.
        language: `system` or a code; None for the user's choice.
        platform: Qt's platform plugin, or None.
        is_verbose: Whether to log DEBUG, which includes prompts and answers.
        open_library: Opens the model library; None for the user's own.
        is_fresh: Whether to start with defaults and save nothing.
        data_dir: Folder of all user files; None for the system's folders.
        continues: Whether to open the last conversation, unless the last run crashed.
        model: File or folder of the model to load; None for the last one.
    """

    theme: str | None = None
    language: str | None = None
    platform: str | None = None
    is_verbose: bool = False
    open_library: OpenLibrary | None = None
    is_fresh: bool = False
    data_dir: Path | None = None
    continues: bool = False
    model: Path | None = None


class Application:
    """Owns the objects that live as long as the window.

    Attributes:
        bridge: Bridge to the engine.
        loaded_model: State of the model.
        appearance: Theme and zoom.
        window: The main window.
        first_paint: Time of the window's first paint.
    """

    def __init__(
        self,
        bridge: EngineBridge,
        loaded_model: LoadedModel,
        appearance: Appearance,
        window: MainWindow,
    ) -> None:
        """Connect the objects.

        Args:
            bridge: Bridge to the engine.
            loaded_model: State of the model; the one it is opening is loaded, else the initial one.
            appearance: Theme and zoom, which are applied.
            window: The main window, not shown yet.
        """
        self.bridge = bridge
        self.loaded_model = loaded_model
        self.appearance = appearance
        self.window = window
        self.first_paint = FirstPaint(window)

    def open(self) -> None:
        """Show the window; the engine starts once it is visible."""
        self.first_paint.painted.connect(notify_launcher)
        self.first_paint.painted.connect(self._start_engine)
        self.window.restore()
        self.window.show()

    def close(self) -> None:
        """Hide the window, then stop the engine after its current step."""
        self.window.hide()
        self.bridge.close()

    def _start_engine(self) -> None:
        self.bridge.start()
        if (opening := self.loaded_model.opening) is not None:
            self.window.models.load_file(opening, self.loaded_model.load)
        elif not self.loaded_model.is_wanted:  # a second start may have requested one already
            self.loaded_model.load()
        self.window.serve()


EXIT_TAKEN = 3
EXIT_RESTART = 4
AfterPaint = Callable[[Application], Coroutine[None, None, int]]


def build(options: Options) -> Application:
    """Create all objects of the application without showing or starting them."""
    where = places(options.data_dir)
    preferences = Preferences() if options.is_fresh else load_preferences(where.config)
    overrides = {"language": options.language} if options.language else {}
    if options.theme in set(ThemeChoice):
        overrides["theme"] = options.theme
    settings = SettingsStore(preferences, None if options.is_fresh else where.config, overrides)
    resources = resources_dir()
    app = QApplication.instance()
    assert app is not None
    install_language(app, settings.values.language, resources / "translations")
    appearance = Appearance(resources)
    shared = SharedEngine(start_engine)
    bridge = EngineBridge(shared.start)
    loaded_model = LoadedModel(
        bridge,
        preferences.drafted_model,
        opening=options.model,
        quantized_dir=quantized_models_dir(),
        calibrations_dir=calibrations_dir(),
        datastore_dir=None if options.is_fresh else where.learned,
    )
    give_roles()
    window = MainWindow(
        bridge,
        loaded_model,
        appearance,
        settings,
        open_library=options.open_library or _library_opener(where),
        places=None if options.is_fresh else where,
        history=None if options.is_fresh else open_history(where.history),
        datastore_dir=None if options.is_fresh else where.learned,
        make_server=partial(_make_server, shared, settings),
    )
    return Application(bridge, loaded_model, appearance, window)


def _make_server(
    shared: SharedEngine, settings: SettingsStore, port: int, events: ServerEvents
) -> RunningServer:
    """Create the API server; its HTTP libraries are imported only here.

    Raises:
        MissingExtraError: The server's packages aren't installed.
    """
    from medusa_core.api import SERVER_EXTRA

    SERVER_EXTRA.need()
    from app.server.window_server import WindowServer

    return WindowServer(shared, port, events, settings.values.embedding_model)


def _library_opener(where: Places) -> OpenLibrary:
    """Return a function that opens the user's model library."""

    def open_library() -> Library:
        from medusa_core.api import Library, user_hub_settings

        store, folders = where.state / "downloads.db", where.data / "folders.json"
        return Library(store, folders, user_hub_settings())

    return open_library


def run(options: Options, work: AfterPaint | None = None) -> int:
    """Run the application.

    Args:
        options: Options of the application.
        work: Run after the first paint; None runs until the window is closed.

    Returns:
        The exit code.
    """
    where = places(options.data_dir)
    where.make_private()
    log_path = start_logging(where.log, is_verbose=options.is_verbose)
    arguments = [sys.argv[0]]
    if options.platform:
        arguments += ["-platform", options.platform]
    qt = QApplication(arguments)
    qt.setApplicationName(APP_NAME)
    qt.setApplicationDisplayName(TITLE)
    qt.setDesktopFileName(APP_NAME)  # by it a desktop finds the icon and joins windows
    qt.setWindowIcon(QIcon(str(resources_dir() / "icons" / "app.svg")))  # of every window
    qt.setQuitOnLastWindowClosed(False)
    instance, guard = SingleInstance(where.state), CrashGuard(where.state, where.log)
    serves = work is None and not options.is_fresh
    if serves and not instance.acquire():
        return _raise_other(instance, options.model)
    has_crashed = serves and guard.begin()
    loop = qasync.QEventLoop(qt)
    asyncio.set_event_loop(loop)
    garbage = GcScheduler(lambda: application.bridge.is_busy)
    garbage.start()
    with loop:
        application = build(options)
        running = _listed_for_others(application, where) if serves else None
        if work is None:
            show_uncaught_errors(application.window.chat.errors.show_error, log_path)
            instance.raise_requested.connect(application.window.come_to_front)
            instance.open_requested.connect(application.window.models.load_file)
        continue_or_explain(application.window, has_crashed, options.continues)
        code: int = loop.run_until_complete((work or _serve_user)(application))
    if running is not None:
        running.close()
    if serves:
        guard.end()
        instance.release()
    return code


def _listed_for_others(application: Application, where: Places) -> RunningFile:
    """Publish the loaded model and the server's address for `medusa ps`."""
    from medusa_core.api import RunningFile

    file = RunningFile(where.running, "window")
    application.bridge.model_changed.connect(file.receive)
    server = application.window.server
    if server is not None:
        server.changed.connect(lambda: file.set_address(server.status.address))
    return file


def continue_or_explain(window: MainWindow, has_crashed: bool, continues: bool) -> None:
    """Open the last conversation if configured; after a crash, only offer to.

    The conversation may have caused the crash, and would cause it again.
    """
    if has_crashed:
        history = window.history
        window.error_actions.report_crash(
            None if history is None else history.open_last,
            lambda: window.pages.open("diagnostics"),
        )
    elif continues and window.history is not None:
        window.history.open_last()


def _raise_other(instance: SingleInstance, model: Path | None) -> int:
    """Raise the window of a running instance; log an error if it doesn't respond."""
    if instance.raise_other(model):
        log.info("the window that is open already is shown")
        return 0
    log.error(
        "Medusa Chat is open already, but doesn't answer. End it, or start another one with "
        "--data-dir FOLDER."
    )
    return EXIT_TAKEN


async def _serve_user(application: Application) -> int:
    closed = asyncio.Event()
    application.window.closed.connect(closed.set)
    if sys.platform != "win32":
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, application.window.close)
    application.first_paint.painted.connect(application.window.pages.start)
    application.first_paint.painted.connect(application.window.first_model.offer_once)
    application.first_paint.painted.connect(application.window.proposal.watch)
    application.open()
    tasks = Tasks()
    tasks.start(_offer_models(application))
    if (learned := application.window.learned) is not None:
        learned.tidy()
    await closed.wait()
    tasks.cancel()
    if (library := application.window.models.library) is not None:
        await library.downloads.close()
    application.close()
    return EXIT_RESTART if application.window.wants_restart else 0


async def _offer_models(application: Application) -> None:
    """After the first model has loaded, list other installed models and resume downloads."""
    ready = asyncio.Event()
    application.loaded_model.chosen.connect(ready.set)
    await ready.wait()
    try:
        if application.window.models.open() is not None:
            await application.window.models.refresh()
    except MedusaError as error:
        application.window.chat.errors.show_error(error.message, error.hint)
