"""Builds the application, runs its loop, and ends it cleanly."""

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
from app.startup.launcher import tell_launcher
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
    """How the application is to be built.

    Attributes:
        theme: `system`, `light` or `dark`; None for the user's choice.
        language: `system` or a code; None for the user's choice.
        platform: Qt's platform plugin, or None.
        is_verbose: Log DEBUG, which holds prompts and answers.
        open_library: Opens the library of models; None for this user's.
        is_fresh: Start as a new user's window does, and remember nothing.
        data_dir: Keeps all files of this user; None for where the system wants them.
        continues: Open the last conversation, unless the run before crashed.
        model: Load this model, a file or a folder, instead of the one that was loaded last.
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
    """The objects that live as long as the window.

    Attributes:
        bridge: To the engine.
        loaded_model: State of the model.
        appearance: Theme and zoom.
        window: What is seen.
        first_paint: When it was seen first.
    """

    def __init__(
        self,
        bridge: EngineBridge,
        loaded_model: LoadedModel,
        appearance: Appearance,
        window: MainWindow,
        model: Path | None = None,
    ) -> None:
        """Join the objects.

        Args:
            bridge: See above, as for the next three.
            loaded_model: Has the model to begin with.
            appearance: Is applied.
            window: Isn't shown yet.
            model: Takes the place of the loaded_model's model, where it can be opened.
        """
        self.bridge = bridge
        self.loaded_model = loaded_model
        self.appearance = appearance
        self.window = window
        self.first_paint = FirstPaint(window)
        self._model = model

    def open(self) -> None:
        """Show the window; the engine starts once it is visible."""
        self.first_paint.painted.connect(tell_launcher)
        self.first_paint.painted.connect(self._start_engine)
        self.window.restore()
        self.window.show()

    def close(self) -> None:
        """Hide the window, then end the engine, which may have a step to finish."""
        self.window.hide()
        self.bridge.close()

    def _start_engine(self) -> None:
        self.bridge.start()
        if self._model is not None:
            self.window.models.load_file(self._model, self.loaded_model.load)
        elif not self.loaded_model.is_wanted:  # a second start may have requested one already
            self.loaded_model.load()
        self.window.serve()


EXIT_TAKEN = 3
EXIT_RESTART = 4
AfterPaint = Callable[[Application], Coroutine[None, None, int]]


def build(options: Options) -> Application:
    """Make all objects of the application; nothing is shown or started yet."""
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
        make_server=partial(_make_server, shared),
    )
    return Application(bridge, loaded_model, appearance, window, options.model)


def _make_server(shared: SharedEngine, port: int, events: ServerEvents) -> RunningServer:
    """Makes a server; what speaks HTTP is imported when it is turned on.

    Raises:
        MissingExtraError: It isn't installed.
    """
    from medusa_core.api import SERVER_EXTRA

    SERVER_EXTRA.need()
    from app.server.window_server import WindowServer

    return WindowServer(shared, port, events)


def _library_opener(where: Places) -> OpenLibrary:
    """Opens the library of this user."""

    def open_library() -> Library:
        from medusa_core.api import Library, user_hub_settings

        store, folders = where.state / "downloads.db", where.data / "folders.json"
        return Library(store, folders, user_hub_settings())

    return open_library


def run(options: Options, work: AfterPaint | None = None) -> int:
    """Run the application.

    Args:
        options: How it is built.
        work: What is done with it; None serves the user until the window is closed.

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
    if serves and not instance.take():
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
    """Let `medusa ps` see what the window has loaded, and where programs reach it."""
    from medusa_core.api import RunningFile

    file = RunningFile(where.running, "window")
    application.bridge.model_changed.connect(file.receive)
    server = application.window.server
    if server is not None:
        server.changed.connect(lambda: file.set_address(server.status.address))
    return file


def continue_or_explain(window: MainWindow, has_crashed: bool, continues: bool) -> None:
    """Open the last conversation if that is wanted; after a crash offer it only.

    What was open may be what made the window hang: opened by itself, it would do so again.
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
    """Show the window that is open already; says so where it doesn't answer."""
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
