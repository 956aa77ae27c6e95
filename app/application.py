"""Builds the application, runs its loop, and ends it cleanly."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import qasync
from PySide6.QtWidgets import QApplication

from app.bridge import EngineBridge
from app.garbage import Garbage
from app.logs import show_uncaught_errors, start_logging
from app.model_keeper import ModelKeeper
from app.preferences import Preferences, load_preferences
from app.startup_probe import FirstPaint, StallProbe
from app.theme.appearance import Appearance, ThemeChoice
from app.window import TITLE, MainWindow
from medusa_core.api import calibrations_dir, kept_models_dir, resources_dir, start_engine
from medusa_core.errors import MedusaError
from medusa_core.model_state import Phase

if TYPE_CHECKING:
    from medusa_core.api import Library

log = logging.getLogger(__name__)

NAME = "medusa-chat"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for.

    Attributes:
        theme: `system`, `light`, `dark`, `both` (for the tour), or None for the user's choice.
        platform: Qt's platform plugin, or None.
        tour_dir: Where the pictures of the tour go; None opens the window for the user.
        probes_startup: Measure the start and end.
        probes_streaming: Measure answers in the window and without it, and end.
        is_verbose: Log DEBUG, which holds prompts and answers.
    """

    theme: str | None = None
    platform: str | None = None
    tour_dir: Path | None = None
    probes_startup: bool = False
    probes_streaming: bool = False
    is_verbose: bool = False

    @property
    def is_for_user(self) -> bool:
        """Whether a person sits in front of the window."""
        probes = self.probes_startup or self.probes_streaming
        return self.tour_dir is None and not probes


class Application:
    """The objects that live as long as the window.

    Attributes:
        bridge: To the engine.
        keeper: State of the model.
        appearance: Theme and zoom.
        window: What is seen.
        first_paint: When it was seen first.
    """

    def __init__(
        self, bridge: EngineBridge, keeper: ModelKeeper, appearance: Appearance, window: MainWindow
    ) -> None:
        self.bridge = bridge
        self.keeper = keeper
        self.appearance = appearance
        self.window = window
        self.first_paint = FirstPaint(window)

    def open(self) -> None:
        """Show the window; the engine starts once it is visible."""
        self.first_paint.painted.connect(self._start_engine)
        self.window.show()

    def close(self) -> None:
        """Hide the window, then end the engine, which may have a step to finish."""
        self.window.hide()
        self.bridge.close()

    def _start_engine(self) -> None:
        self.bridge.start()
        self.keeper.load()


def build(options: Options) -> Application:
    """Make all objects of the application; nothing is shown or started yet."""
    config_dir = Path(platformdirs.user_config_path(NAME))
    # A tour and a measurement start as a new user's window does, and leave no trace.
    preferences = load_preferences(config_dir) if options.is_for_user else Preferences()
    theme = options.theme if options.theme in set(ThemeChoice) else preferences.theme
    resources = resources_dir()
    appearance = Appearance(resources, ThemeChoice(theme), preferences.zoom)
    bridge = EngineBridge(start_engine)
    keeper = ModelKeeper(
        bridge, preferences.model, kept_dir=kept_models_dir(), calibrations_dir=calibrations_dir()
    )
    window = MainWindow(
        bridge,
        keeper,
        appearance,
        preferences,
        config_dir if options.is_for_user else None,
        resources=resources,
        open_library=_library_opener(options, preferences.models_dir),
    )
    keeper.unload_after(preferences.unload_minutes)
    appearance.apply()
    return Application(bridge, keeper, appearance, window)


def _library_opener(options: Options, models_dir: str) -> Callable[[], Library]:
    """Opens the library of this user; a tour's is empty and asks nobody."""

    def open_library() -> Library:
        from medusa_core.api import Library, offline_hub_settings, user_hub_settings

        if options.tour_dir is not None:
            folder = options.tour_dir / ".library"
            lists = (folder / "downloads.db", folder / "folders.json")
            return Library(*lists, offline_hub_settings(folder / "hub"))
        store = Path(platformdirs.user_state_path(NAME)) / "downloads.db"
        folders = Path(platformdirs.user_data_path(NAME)) / "folders.json"
        return Library(store, folders, user_hub_settings(Path(models_dir) if models_dir else None))

    return open_library


def run(options: Options) -> int:
    """Run the application until its window is closed; returns the exit code."""
    log_path = start_logging(Path(platformdirs.user_log_path(NAME)), is_verbose=options.is_verbose)
    arguments = [sys.argv[0]]
    if options.platform:
        arguments += ["-platform", options.platform]
    qt = QApplication(arguments)
    qt.setApplicationName(NAME)
    qt.setApplicationDisplayName(TITLE)
    qt.setQuitOnLastWindowClosed(False)
    loop = qasync.QEventLoop(qt)
    asyncio.set_event_loop(loop)
    garbage = Garbage()
    garbage.start()
    with loop:
        application = build(options)
        application.bridge.arrived.connect(garbage.put_off)
        if options.is_for_user:
            show_uncaught_errors(application.window.chat.errors.show, log_path)
        code: int = loop.run_until_complete(_work(options)(application))
        return code


def _work(options: Options) -> Callable[[Application], object]:
    if options.tour_dir is not None:
        from app.tour import Tour

        tour_dir, themes = options.tour_dir, _tour_themes(options.theme)
        return lambda application: Tour(application, tour_dir, themes).run()
    if options.probes_streaming:
        return _probe_streaming
    return _probe_startup if options.probes_startup else _serve_user


def _tour_themes(theme: str | None) -> tuple[ThemeChoice, ...]:
    if theme in (None, "both", "system"):
        return ThemeChoice.LIGHT, ThemeChoice.DARK
    return (ThemeChoice(theme),)


async def _serve_user(application: Application) -> int:
    closed = asyncio.Event()
    application.window.closed.connect(closed.set)
    if sys.platform != "win32":
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, application.window.close)
    application.open()
    offering = asyncio.ensure_future(_offer_models(application))
    await closed.wait()
    offering.cancel()
    if (library := application.window.library) is not None:
        await library.downloads.close()
    application.close()
    return 0


async def _offer_models(application: Application) -> None:
    """Once a model is ready, list the others that are here; downloads go on from then, too."""
    ready = asyncio.Event()
    application.keeper.chosen.connect(ready.set)
    await ready.wait()
    try:
        await application.window.offer_installed()
    except MedusaError as error:
        application.window.chat.errors.show(error.message, error.hint)


async def _probe_streaming(application: Application) -> int:
    """Print what the window costs an answer."""
    from app.streaming_probe import StreamingProbe

    application.open()
    sys.stdout.write(json.dumps(await StreamingProbe(application).run()) + "\n")
    application.close()
    return 0


async def _probe_startup(application: Application) -> int:
    """Print the times of the start."""
    from app.startup_probe import process_age_s

    settled = asyncio.Event()
    probe = StallProbe()

    def look() -> None:
        if application.keeper.status.phase is not Phase.LOADING:
            settled.set()

    application.first_paint.painted.connect(probe.start)
    application.keeper.changed.connect(look)
    application.open()
    await settled.wait()
    ready_s = process_age_s()
    probe.stop()
    failed = application.keeper.status.failed
    figures = {
        "window_s": round(application.first_paint.painted_s, 3),
        "torch_at_window": application.first_paint.had_torch,
        "ready_s": None if failed else round(ready_s, 3),
        "longest_stall_ms": round(probe.longest_stall_ms, 1),
        "error": failed.message if failed else None,
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    application.close()
    return 1 if failed else 0
