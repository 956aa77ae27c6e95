"""Tools that a conversation may choose, and those that it has chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from PySide6.QtCore import QObject, Signal

from app.i18n.numbers import Number
from app.widgets.qt_text import with_visible_controls

_BUILTIN = "builtin"  # in place of a server in the ids of built-in tools
_TOKENS_PER_CHAR = 0.25  # before the model's tokenizer has counted some


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool that can be chosen.

    Attributes:
        id: Its id in the settings, `server/tool`.
        label: Name for people, with that of its server.
        description: What it does.
        text: The tool as `Generate.tools` has it.
        server: Name of its server for people; empty for a built-in tool.
        is_missing: Whether it is chosen, but isn't there now.
    """

    id: str
    label: str
    description: str = ""
    text: str = ""
    server: str = ""
    is_missing: bool = False

    @property
    def name(self) -> str:
        """Name for people without that of the server."""
        return self.label.removeprefix(f"{self.server} · ")


class ToolServerOffer(NamedTuple):
    """The tools of a server that can be chosen, or the built-in ones.

    Attributes:
        name: Name for people.
        offers: The tools.
    """

    name: str
    offers: tuple[ToolOffer, ...]


class ToolChoice(QObject):
    """State of the choice, which the panel and the composer's menu show.

    Attributes:
        is_available: Whether there are tools in this window at all.
        reason: Why tools can't be used now; empty if they can.
        note: What to expect of the tools with this model; may be empty.
        num_tokens: Tokens that the chosen tools add to a prompt; None if unknown.

    Signals:
        changed: There is something else to show.
        chosen: The user chose other tools (a tuple of ids).
        manage_requested: The user wants to see all tools.
    """

    changed = Signal()
    chosen = Signal(object)
    manage_requested = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.is_available = False
        self.reason = self.note = ""
        self.num_tokens: int | None = None
        self._offers: tuple[ToolOffer, ...] = ()
        self._ids: tuple[str, ...] = ()

    @property
    def offers(self) -> tuple[ToolOffer, ...]:
        """The tools that can be chosen in their order, then the chosen ones that are missing."""
        known = {offer.id for offer in self._offers}
        missing = (_missing(one) for one in self._ids if one not in known)
        return (*self._offers, *missing)

    @property
    def servers(self) -> dict[str, ToolServerOffer]:
        """`offers` by server; the keys are the beginnings of the tools' ids."""
        found: dict[str, ToolServerOffer] = {}
        for offer in self.offers:
            key = offer.id.partition("/")[0]
            name = offer.server or self.tr("Built in")
            known = found.get(key, ToolServerOffer(name, ()))
            found[key] = known._replace(offers=(*known.offers, offer))
        return found

    @property
    def texts(self) -> tuple[str, ...]:
        """The chosen tools as `Generate.tools` has them; none if they can't be used."""
        if self.reason:
            return ()
        return tuple(offer.text for offer in self._offers if offer.id in self._ids)

    @property
    def num_chosen(self) -> int:
        """Number of the chosen tools that are there."""
        return sum(offer.id in self._ids for offer in self._offers)

    @property
    def summary(self) -> str:
        """Number of the chosen tools and what they take, in words."""
        if not self.num_chosen:
            return self.tr("No tools are chosen for this chat.")
        return f"{self._number_and_tokens} {self.note}".strip()

    @property
    def _number_and_tokens(self) -> str:
        number = self.tr("{0} tools") if self.num_chosen > 1 else self.tr("{0} tool")
        words = number.format(f"{Number(self.num_chosen)}")
        if self.num_tokens is None:
            return f"{words}."
        tokens = self.tr("about {0} tokens of each prompt").format(f"{Number(self.num_tokens):,}")
        return f"{words}, {tokens}."

    def estimate_tokens(self, offers: Iterable[ToolOffer]) -> int:
        """Estimate what tools add to a prompt by their length, as far as tokens are known."""
        num_chars = sum(map(len, self.texts))
        is_known = self.num_tokens is not None and num_chars
        per_char = (self.num_tokens or 0) / num_chars if is_known else _TOKENS_PER_CHAR
        return round(per_char * sum(len(one.text) for one in offers))

    def is_chosen(self, offer: ToolOffer) -> bool:
        """Whether a tool is chosen."""
        return offer.id in self._ids

    def offer(self, offers: Sequence[ToolOffer]) -> None:
        """Offer tools, in a stable order."""
        if self.is_available and tuple(offers) == self._offers:
            return  # a server has written to its log
        self.is_available, self._offers = True, tuple(offers)
        self.changed.emit()

    def show_chosen(self, ids: Sequence[str]) -> None:
        """Show which tools are chosen."""
        if tuple(ids) != self._ids:
            self._ids = tuple(ids)
            self.changed.emit()

    def show_model(self, reason: str, note: str) -> None:
        """Show what another model does with tools; see `reason` and `note`."""
        if (reason, note) != (self.reason, self.note):
            self.reason, self.note = reason, note
            self.changed.emit()

    def show_tokens(self, num_tokens: int | None) -> None:
        """Show what the chosen tools add to a prompt; None if it isn't known."""
        if num_tokens != self.num_tokens:
            self.num_tokens = num_tokens
            self.changed.emit()

    def choose(self, tool_ids: Sequence[str], is_chosen: bool) -> None:
        """Choose tools, or not any more; the order of the ids doesn't depend on clicks."""
        ids = {*self._ids, *tool_ids} if is_chosen else {*self._ids} - {*tool_ids}
        known = (*(offer.id for offer in self.offers), *tool_ids)
        self.chosen.emit(tuple(one for one in dict.fromkeys(known) if one in ids))

    def toggler(self, tool_id: str) -> Callable[[bool], None]:
        """Return a function for a signal that toggles a tool."""
        return lambda is_chosen: self.choose((tool_id,), is_chosen)


def _missing(tool_id: str) -> ToolOffer:
    """Return the offer of a chosen tool that isn't there."""
    key, _, name = with_visible_controls(tool_id).partition("/")
    server = "" if key == _BUILTIN else unquote(key)
    label = f"{server} · {name}" if server else name
    return ToolOffer(tool_id, label, server=server, is_missing=True)
