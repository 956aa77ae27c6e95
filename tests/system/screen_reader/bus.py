"""What a screen reader sees of a program on the accessibility bus, and the keys that it presses.

Runs under the system's Python, which has the bindings of libatspi (gir1.2-atspi-2.0).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib  # noqa: E402

POLL_S = 0.02
WAIT_S = 30.0
# A list of thousands of rows is read where it is shown, by nobody as a whole.
MOST_CHILDREN = 400
KEYS = {
    "Tab": 23,
    "Return": 36,
    "Escape": 9,
    "Space": 65,
    "Up": 111,
    "Down": 116,
    "Left": 113,
    "Right": 114,
    "Home": 110,
    "End": 115,
    "Delete": 119,
    "F9": 75,
    "F10": 76,
    "Control": 37,
    "Shift": 50,
    "Alt": 64,
    "comma": 59,
    "a": 38,
    "b": 56,
    "d": 40,
    "e": 26,
    "f": 41,
    "k": 45,
    "m": 58,
    "n": 57,
    "p": 33,
    "w": 25,
    "z": 52,
}  # X keycodes of a PC keyboard


class NotFoundError(Exception):
    """Raised if an object isn't on the accessibility bus in time."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An event of the program.

    Attributes:
        kind: As AT-SPI names it, such as `object:announcement`.
        detail: Its first number.
        data: Its text, or the name of what it is about.
        role: Role of the object that it came from.
    """

    kind: str
    detail: int
    data: str
    role: str


class Node:
    """An accessible object."""

    def __init__(self, raw: Atspi.Accessible) -> None:
        self.raw = raw

    @property
    def role(self) -> str:
        return self.raw.get_role_name() or ""

    @property
    def own_name(self) -> str:
        return self.raw.get_name() or ""

    @property
    def label(self) -> str:
        """The texts of what labels it, by relation."""
        found = []
        for relation in self.raw.get_relation_set() or ():
            if relation.get_relation_type() == Atspi.RelationType.LABELLED_BY:
                targets = map(relation.get_target, range(relation.get_n_targets()))
                found += [target.get_name() or "" for target in targets]
        return " ".join(filter(None, found))

    @property
    def name(self) -> str:
        """Accessible name; of a combo box its label, as its name here is its current text."""
        return self.label if self.role == "combo box" else self.own_name or self.label

    @property
    def description(self) -> str:
        return self.raw.get_description() or ""

    @property
    def children(self) -> list[Node]:
        number = min(self.raw.get_child_count(), MOST_CHILDREN)
        found = (self.raw.get_child_at_index(index) for index in range(number))
        return [Node(child) for child in found if child is not None]

    def has(self, state: str) -> bool:
        """Whether it is in a state, such as `FOCUSABLE`."""
        return bool(self.raw.get_state_set().contains(getattr(Atspi.StateType, state)))

    @property
    def is_seen(self) -> bool:
        return self.has("SHOWING") and self.has("VISIBLE")

    @property
    def text(self) -> str:
        """Accessible text."""
        face = self.raw.get_text_iface()
        return "" if face is None else Atspi.Text.get_text(face, 0, -1)

    @property
    def actions(self) -> list[str]:
        face = self.raw.get_action_iface()
        if face is None:
            return []
        count = Atspi.Action.get_n_actions(face)
        return [Atspi.Action.get_action_name(face, index) for index in range(count)]

    def act(self, name: str = "Press") -> None:
        """Do one of its actions."""
        actions = self.actions
        if name not in actions:
            raise NotFoundError(f"{self} has no action {name}, only {actions}")
        Atspi.Action.do_action(self.raw.get_action_iface(), actions.index(name))

    def focus(self) -> None:
        """Give it the keyboard."""
        Atspi.Component.grab_focus(self.raw.get_component_iface())

    def walk(self, *, only_seen: bool = True) -> Iterator[Node]:
        """Yield the object and all descendants, in order."""
        yield self
        for child in self.children:
            if not only_seen or child.is_seen or child.role == "table column header":
                yield from child.walk(only_seen=only_seen)

    def find(self, role: str, name: str = "", *, only_seen: bool = True) -> Node:
        """The first one below it of this role whose name holds these words."""
        for node in self.walk(only_seen=only_seen):
            if node.role == role and name.casefold() in (node.name or node.own_name).casefold():
                return node
        raise NotFoundError(f"no {role} named {name!r} in {self}")

    def all(self, role: str) -> list[Node]:
        """Return all visible objects of this role."""
        return [node for node in self.walk() if node.role == role]

    def words(self) -> str:
        """Return all names and texts below the object, as they would be read."""
        said = []
        for node in self.walk():
            said += [node.own_name, node.description, node.text]
        return "\n".join(filter(None, said))

    def __str__(self) -> str:
        return f"[{self.role}] {self.name or self.own_name!r}"


class Bus:
    """The desktop as a screen reader has it.

    Attributes:
        heard: All that the program said since the last `forget`.
    """

    KINDS = (
        "object:announcement",
        "object:state-changed:focused",
        "object:text-changed",
        "object:property-change:accessible-name",
        "object:selection-changed",
        "window:activate",
    )

    def __init__(self) -> None:
        Atspi.init()
        Atspi.set_timeout(8000, 8000)  # ms: a window that loads a model answers late
        self.heard: list[Heard] = []
        self._listener = Atspi.EventListener.new(self._hear)
        for kind in self.KINDS:
            self._listener.register(kind)

    def forget(self) -> None:
        """Discard recorded announcements."""
        self.pause(0.05)
        self.heard.clear()

    @property
    def announced(self) -> list[str]:
        """Return the announcements of the program."""
        return [one.data for one in self.heard if one.kind.startswith("object:announcement")]

    def pause(self, seconds: float) -> None:
        """Take events for a while."""
        loop, end = GLib.MainContext.default(), time.monotonic() + seconds
        while time.monotonic() < end:
            while loop.pending():
                loop.iteration(False)
            time.sleep(POLL_S)

    def until(self, what: str, is_true: Callable[[], object], timeout_s: float = WAIT_S) -> object:
        """Wait for something; returns what it was."""
        end = time.monotonic() + timeout_s
        while True:
            try:
                if found := is_true():
                    return found
            except (GLib.Error, NotFoundError, AttributeError):
                pass
            if time.monotonic() > end:
                raise NotFoundError(f"waited {timeout_s:.0f} s in vain: {what}")
            self.pause(POLL_S)

    def program(self, pid: int) -> Node:
        """The program of a process, as soon as it is on the bus."""

        def look() -> Node | None:
            desktop = Node(Atspi.get_desktop(0))
            return next((n for n in desktop.children if n.raw.get_process_id() == pid), None)

        found = self.until("the program on the bus", look, 60.0)
        assert isinstance(found, Node)
        return found

    # Keys -----------------------------------------------------------------------------------------

    def press(self, keys: str, pause_s: float = 0.1) -> None:
        """Press keys together, such as `Control+Shift+m`."""
        *held, last = keys.split("+")
        for key in held:
            self._key(KEYS[key], Atspi.KeySynthType.PRESS)
        self._key(KEYS[last], Atspi.KeySynthType.PRESSRELEASE)
        for key in reversed(held):
            self._key(KEYS[key], Atspi.KeySynthType.RELEASE)
        self.pause(pause_s)

    def type(self, text: str) -> None:
        """Type a text."""
        for char in text:
            Atspi.generate_keyboard_event(_keysym(char), None, Atspi.KeySynthType.SYM)
            self.pause(POLL_S)

    def _key(self, code: int, kind: Atspi.KeySynthType) -> None:
        Atspi.generate_keyboard_event(code, None, kind)

    def _hear(self, event: Atspi.Event) -> None:
        try:
            data = event.any_data
            text = data if isinstance(data, str) else (event.source.get_name() or "")
            heard = Heard(event.type, event.detail1, text, event.source.get_role_name() or "")
        except (GLib.Error, AttributeError):
            return  # the object went away before it could be asked
        self.heard.append(heard)


def _keysym(char: str) -> int:
    """Return the X keysym of a character: Latin-1's are its codes, others begin at 2²⁴."""
    return ord(char) if ord(char) < 0x100 else 0x1000000 + ord(char)
