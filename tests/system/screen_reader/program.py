"""The real window under a screen reader: started, driven by keys, and left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

from tests.system.screen_reader.bus import Bus, Node, NotFoundError
from tests.system.screen_reader.laws import INNER, key_of

MOST_TABS = 120
# Of Qt's bridge to the bus: a client asked for what no program has, or for what is gone by now.
_HARMLESS = re.compile("GetApplicationBusAddress|Could not find accessible|invalid interface")


class Program:
    """Process of `python -m app` with its own folder.

    Args:
        python: Interpreter of the project.
        root: Checkout.
        folder: Takes all of the user's data.

    Attributes:
        bus: What it says, and the keyboard.
        app: It, on the bus.
    """

    def __init__(self, python: str, root: Path, folder: Path) -> None:
        environment = os.environ | {
            "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
            "QT_ACCESSIBILITY": "1",
            "QT_QPA_PLATFORM": "xcb",
            "HOME": str(folder),
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "2",
        }
        self.bus = Bus()
        command = [python, "-m", "app", "--data-dir", str(folder / "data")]
        self._log_path = folder / "stderr"
        with self._log_path.open("w") as log:
            self._process = subprocess.Popen(command, env=environment, cwd=root, stderr=log)
        self.app = self.bus.program(self._process.pid)

    def close(self) -> None:
        """End it as a user's session would."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()

    @property
    def window(self) -> Node:
        """The main window."""
        return self.app.find("frame", "Medusa Chat")

    def dialog(self, title: str = "") -> Node:
        """The dialog of that title, once it is there."""
        found = self.bus.until(f"dialog {title!r}", lambda: self._dialog(title))
        assert isinstance(found, Node)
        return found

    def dialogs(self) -> list[Node]:
        """Return the visible dialogs, the topmost last."""
        return [n for n in self.app.children if n.role in ("dialog", "alert") and n.is_seen]

    def close_dialog(self) -> None:
        """Close the dialog on top by Escape."""
        before = len(self.dialogs())
        if before:
            self.bus.press("Escape")
            self.bus.until("the dialog to close", lambda: len(self.dialogs()) < before, 10.0)

    def close_dialogs(self) -> None:
        """Close all dialogs."""
        while self.dialogs():
            self.close_dialog()

    def warnings(self) -> list[str]:
        """Return Qt's warnings."""
        said = self._log_path.read_text(encoding="utf-8").splitlines()
        return [line for line in said if "WARNING qt" in line and not _HARMLESS.search(line)]

    def command(self, words: str) -> None:
        """Do what is in the palette under these words."""
        self.bus.press("Control+k", 0.3)
        self.bus.type(words)
        self.bus.pause(0.2)
        self.bus.press("Return", 0.4)

    def wait_for_model(self) -> None:
        """Wait until it is ready."""
        self.bus.until(
            "a model", lambda: "parameters" in self.window.find("label", "Model:").own_name, 90.0
        )

    def tab_through(self, page: Node) -> list[str]:
        """Press Tab until it comes back; keys of all that had the focus."""
        seen: list[str] = []
        for _ in range(MOST_TABS):
            here = self.focused(page)
            if here is not None:
                if seen and key_of(here) == seen[0] and len(set(seen)) > 1:
                    break
                seen.append(key_of(here))
            self.bus.press("Tab", 0.06)
        return seen

    def tab_to(self, page: Node, role: str, name: str) -> Node:
        """Press Tab until the keyboard is there: boxes of choices take no focus by the bus."""
        for _ in range(MOST_TABS):
            here = self.focused(page)
            if here is not None and here.role == role and here.name == name:
                return here
            self.bus.press("Tab")
        raise NotFoundError(f"Tab never comes to {role} {name!r}")

    def focused(self, page: Node) -> Node | None:
        """Return the focused object of a window: the innermost of those that report focus."""
        found = [n for n in page.walk() if n.has("FOCUSED") and n.has("FOCUSABLE")]
        for node in reversed(found):
            # An item is focused inside its list, whether the list has the keyboard or not.
            if node.role not in INNER:
                return node
        return None

    def _dialog(self, title: str) -> Node:
        for node in reversed(self.dialogs()):
            if title.casefold() in node.own_name.casefold():
                return node
        raise NotFoundError(title)
