"""The main tasks, done by keys and heard on the bus alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from tests.system.screen_reader.bus import Node, NotFoundError
from tests.system.screen_reader.program import Program
from tests.system.screen_reader.visit import ask, choose_tab

STORY = "Write a bedtime story about a small bear."


class TaskError(Exception):
    """Raised if a task failed or wasn't announced."""


def write_and_hear(program: Program) -> str:
    """Type a message, send it, and check that the answer is announced sentence by sentence."""
    program.bus.forget()
    ask(program, STORY)
    program.bus.pause(1.0)
    heard, answer = program.bus.announced, _last_answer(program)
    _demand(len(heard) > 3, f"too few announcements: {heard}")
    _demand(all(sentence in answer for sentence in heard), f"{heard} isn't in {answer!r}")
    read, written = _squeezed("".join(heard)), _squeezed(answer)
    _demand(read == written, f"read as {read!r}, but written {written!r}")
    return f"{len(heard)} sentences"


def stop(program: Program) -> str:
    """Stop an answer, and check the announcement."""
    said, edit = "You stopped the answer.", program.window.find("text", "Message")
    for wait_s in (0.05, 0.1, 0.2, 0.02):  # the demo model answers in a quarter of a second
        edit.focus()
        program.bus.type(STORY)
        program.bus.forget()
        program.bus.press("Return", wait_s)
        program.bus.press("Escape", 1.0)
        if said in program.bus.announced:
            return said
        _clear(program)
    raise TaskError("no answer could be stopped")


def read_a_verdict(program: Program) -> str:
    """Open the model manager and read a row's verdict about this computer."""
    program.bus.press("Control+Shift+m", 1.0)
    dialog = program.dialog("Models")
    choose_tab(program, dialog, "Discover")
    table = dialog.find("table", "")
    program.bus.until("rows", lambda: _cells(table))
    table.focus()
    program.bus.press("Home")
    program.bus.press("Down")
    row = program.bus.until("a chosen row", lambda: _chosen(table))
    assert isinstance(row, list)
    heads = [head.own_name for head in table.children if head.role == "table column header"]
    said = "; ".join(f"{head}: {cell}" for head, cell in zip(heads, row, strict=False))
    _demand(bool(re.search(r"[Ff]its|GiB|[Rr]eady", said)), f"no verdict in {said!r}")
    return said


def load_a_model(program: Program) -> str:
    """Load the demo model in the model manager, and check the announcement."""
    dialog = program.dialog("Models")
    choose_tab(program, dialog, "Installed")
    table = dialog.find("table", "")
    program.bus.until("rows", lambda: _cells(table))
    table.focus()
    program.bus.press("Home")
    program.bus.until("the plan", lambda: dialog.find("push button", "Load").has("ENABLED"))
    program.bus.forget()
    dialog.find("push button", "Load").focus()
    program.bus.press("Space")
    program.bus.until("ready", lambda: any("is ready" in one for one in program.bus.announced))
    said = [one for one in program.bus.announced if "model" in one or "ready" in one]
    program.close_dialogs()
    return " / ".join(said)


def use_the_menu(program: Program) -> str:
    """Open the window's menu, check an entry's announcement, and close it."""
    program.tab_to(program.window, "push button", "Menu")
    program.bus.press("Space", 0.5)
    program.bus.forget()
    program.bus.press("Down", 0.3)
    program.bus.press("Down", 0.3)
    heard = [one.data for one in program.bus.heard if "focused" in one.kind and one.detail]
    program.bus.press("Escape", 0.5)
    _demand(len(heard) > 1 and all(heard), f"the entries of the menu aren't heard: {heard}")
    return " / ".join(heard)


def read_the_tree(program: Program) -> str:
    """Open the tree, move between steps, and check that accepted drafts are announced."""
    ask(program, STORY)
    program.command("Tree")
    slider = program.window.find("slider", "Step")
    slider.focus()
    program.bus.forget()
    program.bus.press("Home", 0.5)
    for _ in range(3):
        program.bus.press("Right", 0.3)
    heard = program.bus.announced
    _demand(len(heard) >= 3, f"too few steps were read: {heard}")
    found = [
        re.search(r"step \d+ of \d+: .*\d+ of \d+ draft tokens accepted", one) for one in heard
    ]
    _demand(any(found), f"no word of guesses in {heard}")
    picture = program.window.find("chart", "Token tree")
    _demand(
        "draft tokens accepted" in picture.description, f"the tree says {picture.description!r}"
    )
    picture.focus()
    program.bus.forget()
    program.bus.press("Right", 0.3)
    program.bus.press("Right", 0.3)
    _demand(bool(program.bus.announced), "a chosen node isn't read")
    node = program.bus.announced[-1]
    program.command("Tree")
    return f"{heard[-1]} / {node}"


def change_a_setting(program: Program) -> str:
    """Choose the dark theme by keys."""
    program.bus.press("Control+comma", 1.0)
    dialog = program.dialog("Settings")
    dialog.find("list", "Pages").focus()
    program.bus.press("Home", 0.5)
    program.bus.press("Down", 0.5)
    before = program.tab_to(dialog, "combo box", "Theme").own_name
    program.bus.press("Down", 0.5)
    after = dialog.find("combo box", "Theme").own_name
    _demand(after != before, f"the theme stays {before}")
    program.bus.press("Up", 0.5)
    program.close_dialog()
    return f"Theme: {before} → {after}"


def read_an_error(program: Program) -> str:
    """Send too long a prompt, check the announced error with its hint, and reach it by Tab."""
    edit = program.window.find("text", "Message")
    edit.focus()
    program.bus.type("remember ")
    program.bus.press("Control+a")
    face = edit.raw.get_editable_text_iface()
    face.set_text_contents("Please remember this. " * 2000)
    program.bus.forget()
    edit.focus()
    program.bus.press("Return", 0.5)
    program.bus.until("an error", lambda: any("Error" in one for one in program.bus.announced))
    said = next(one for one in program.bus.announced if "Error" in one)
    card = program.window.find("panel", "Error: ")
    _demand(card.name == said, f"the card says {card.name!r}")
    card.find("push button", "Dismiss").focus()
    program.bus.press("Space", 0.5)
    _demand(not _finds(program.window, "panel", "Error: "), "the error doesn't go")
    _clear(program)
    return said


def undo_a_deleted_chat(program: Program) -> str:
    """Trash a conversation, check that undo is announced, and undo it."""
    chats = program.window.find("list", "Conversations")
    before = _titles(chats)
    chats.focus()
    program.bus.press("Home")
    program.bus.press("Down")
    program.bus.forget()
    program.bus.press("Delete", 0.8)
    heard = program.bus.announced
    _demand(any("is in the trash" in one for one in heard), f"only this was said: {heard}")
    _demand(len(_titles(chats)) < len(before), "nothing was deleted")
    chats.focus()
    program.bus.press("Control+z", 0.8)
    _demand(_titles(chats) == before, f"{_titles(chats)} isn't {before}")
    _demand(any("back" in one for one in program.bus.announced), "nobody says that it is back")
    return next(one for one in heard if "is in the trash" in one)


TASKS = {
    task.__name__: task
    for task in (
        write_and_hear,
        stop,
        read_a_verdict,
        load_a_model,
        use_the_menu,
        read_the_tree,
        change_a_setting,
        read_an_error,
        undo_a_deleted_chat,
    )
}


def do(program: Program, task: Callable[[Program], str]) -> str:
    """Run a task and return its result, beginning with `FAILED` after a failure."""
    try:
        return task(program)
    except (TaskError, NotFoundError) as error:
        program.close_dialogs()
        return f"FAILED: {error}"


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise TaskError(otherwise)


def _clear(program: Program) -> None:
    """Empty the message that is being written."""
    program.window.find("text", "Message").focus()
    program.bus.press("Control+a")
    program.bus.press("Delete")


def _last_answer(program: Program) -> str:
    return [n for n in program.window.all("label") if n.own_name == "Answer"][-1].text


def _cells(table: Node) -> list[Node]:
    return [child for child in table.children if child.role == "table cell"]


def _chosen(table: Node) -> list[str]:
    return [cell.own_name for cell in _cells(table) if cell.has("SELECTED")]


def _titles(chats: Node) -> list[str]:
    names = [node.own_name for node in chats.children]
    return [name for name in names if not name.startswith("Heading")]


def _finds(page: Node, role: str, name: str) -> bool:
    try:
        page.find(role, name)
    except NotFoundError:
        return False
    return True


_squeezed = partial(re.sub, r"\s+", "")
