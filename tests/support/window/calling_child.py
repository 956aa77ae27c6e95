"""A window whose answer calls a tool, in a process that is killed meanwhile.

`python -m tests.support.window.calling_child FOLDER MOMENT`: says the moment, `waits` or `runs`, on
standard output once it has come. The tool adds a line to `FOLDER/ran` whenever it begins.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app.engine.bridge import EngineBridge
from app.engine.loaded_model import LoadedModel
from app.settings.preferences import Preferences
from app.settings.store import SettingsStore
from app.state.chat import ChatPhase
from app.theme.appearance import Appearance, ThemeChoice
from app.window.main_window import MainWindow
from medusa_core.api import History, resources_dir
from medusa_core.chats.rounds import Approval, ToolResult
from medusa_core.loading.choice import demo_choice
from medusa_core.messages import ToolCallFormat
from medusa_core.tools.results import RunningCall
from medusa_core.tools.toolbox import OfferedTool, Toolbox
from tests.support.window.fakes import FakeEngine, Script

SUM = '{"name": "calculate", "arguments": {"expression": "6*7"}}'


class EndlessToolbox(Toolbox):
    """Its calls begin and never end."""

    folder: Path

    def run(
        self, tool: OfferedTool, arguments: str, on_done: Callable[[ToolResult], None]
    ) -> RunningCall:
        with (self.folder / "ran").open("a") as file:
            file.write(f"{arguments}\n")
        return RunningCall(on_done, lambda: None)


def main(folder: Path, moment: str) -> None:
    """Open the window, ask, and wait to be killed."""
    app = QApplication([])
    looks = Appearance(resources_dir())
    looks.use(ThemeChoice.LIGHT)
    engine = FakeEngine(Script(answer=SUM, tool_calls=ToolCallFormat()))
    bridge = EngineBridge(engine.start)
    model = LoadedModel(bridge, demo_choice())
    settings = SettingsStore(Preferences(), folder)
    window = MainWindow(bridge, model, looks, settings, history=History(folder / "history.db"))
    toolbox = EndlessToolbox(folder / "tools")
    toolbox.folder = folder
    toolbox.set_builtin("calculate", True)
    window.chat.toolbox = toolbox
    window.show()
    bridge.start()
    model.load()
    window.page.settings_panel.tools.chosen.emit(("builtin/calculate",))
    window.chat.send("How much?")

    def look() -> None:
        if window.chat.state.phase is ChatPhase.AWAITING_APPROVAL:
            if moment == "runs":
                window.chat.decide(0, 0, Approval.ONCE, '{"expression": "6*7"}')
            print(moment, flush=True)
            timer.stop()

    timer = QTimer()
    timer.timeout.connect(look)
    timer.start(5)
    app.exec()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
