"""Goes to every page of the window by keys, and judges what a screen reader has of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from app.window.pages.registry import all_pages
from tests.system.screen_reader.bus import Node, NotFoundError
from tests.system.screen_reader.laws import faults
from tests.system.screen_reader.program import Program

# Pages with a tour of their own.
_TOURED = {"compare", "models", "palette", "settings", "welcome"}
Pages = Iterator[tuple[str, Node]]
Tour = Callable[[Program], Pages]


def visit(program: Program, name: str, tour: Tour) -> dict[str, list[str]]:
    """Faults of each page of a tour, by its name."""
    found: dict[str, list[str]] = {}
    try:
        for page, node in tour(program):
            found[page] = faults(node, program.tab_through(node))
    except NotFoundError as error:
        found[name] = [f"the tour ended: {error}"]
    program.close_dialogs()
    return found


def welcome(program: Program) -> Pages:
    """The pages that a new user is led through."""
    dialog = program.dialog("First steps")
    for step in range(1, 4):
        yield f"welcome {step}", dialog
        if step < 3:
            dialog.find("push button", "Next").act()
            program.bus.pause(0.5)
    program.close_dialogs()


def _chat(program: Program) -> Pages:
    program.wait_for_model()
    yield "chat, empty", program.window
    ask(program, "Who are you?")
    yield "chat", program.window
    program.bus.press("Control+f", 0.3)
    program.bus.type("demo")
    yield "find", program.window
    program.bus.press("Escape", 0.3)
    program.bus.press("Control+Shift+p", 0.5)
    yield "settings of this chat", program.window
    program.bus.press("Control+Shift+p", 0.5)
    program.bus.press("Control+k", 0.5)
    yield "palette", program.dialog("Find a command")
    program.close_dialog()


def _panels(program: Program) -> Pages:
    for name, command in (
        ("tree", "Tree"),
        ("steps", "Steps"),
        ("equilibrium", "Equilibrium"),
    ):
        program.command(command)
        program.bus.pause(1.5)
        yield name, program.window
        if name == "tree":
            program.window.find("check box", "Table").act("Press")
            program.bus.pause(0.5)
            yield "tree, table", program.window
            program.window.find("check box", "Table").act("Press")
        program.command(command)
        program.bus.pause(0.5)
    program.command("Compare two modes")
    yield "compare", program.dialog("Compare")
    program.close_dialog()


def _models(program: Program) -> Pages:
    program.bus.press("Control+Shift+m", 1.0)
    dialog = program.dialog("Models")
    for tab in ("Discover", "Installed", "Downloads", "Other machines"):
        choose_tab(program, dialog, tab)
        program.bus.pause(2.0)
        yield f"models, {tab}", dialog
    choose_tab(program, dialog, "Installed")
    program.bus.pause(1.0)
    dialog.find("push button", "Train heads").act()
    program.bus.pause(1.0)
    yield "train heads", program.dialog("rain")
    program.close_dialog()
    program.close_dialog()


def _settings(program: Program) -> Pages:
    program.bus.press("Control+comma", 1.0)
    dialog = program.dialog("Settings")
    names = dialog.find("list", "Pages")
    names.focus()
    program.bus.press("Home")
    for item in [node.own_name for node in names.children]:
        program.bus.pause(0.5)
        yield f"settings, {item}", dialog
        names.focus()
        program.bus.press("Down")
    program.close_dialog()


def _others(program: Program) -> Pages:
    """The pages of the window that no other tour goes to."""
    for name, page in all_pages().items():
        if name not in _TOURED and not page.is_panel:
            program.command(page.title.rpartition("’")[2])  # which no keyboard has
            program.bus.pause(1.5)
            yield name, program.dialog(page.title)
            program.close_dialog()


def ask(program: Program, prompt: str) -> None:
    """Type a prompt, send it, and wait for the end of the answer."""
    edit = program.window.find("text", "Message")
    edit.focus()
    program.bus.type(prompt)
    program.bus.press("Return")
    program.bus.until(
        "an answer", lambda: program.window.find("push button", "Regenerate").is_seen, 90.0
    )


def choose_tab(program: Program, page: Node, name: str) -> None:
    """Go to a tab by the arrow keys."""
    tabs = page.find("page tab list")
    tabs.focus()
    for key, count in (("Left", 6), ("Right", 6)):
        for _ in range(count):
            if any(t.own_name == name and t.has("SELECTED") for t in page.all("page tab")):
                return
            program.bus.press(key)
    raise NotFoundError(f"no tab {name}")


TOURS: dict[str, Tour] = {
    "chat": _chat,
    "panels": _panels,
    "models": _models,
    "settings": _settings,
    "others": _others,
}
