"""Tools that a conversation may choose, and those that it has chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.i18n.numbers import Number


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool that can be chosen.

    Attributes:
        id: Its id in the settings.
        label: Name for people.
        description: What it does.
        text: The tool as `Generate.tools` has it.
        is_missing: Whether it is chosen, but isn't there now.
    """

    id: str
    label: str
    description: str = ""
    text: str = ""
    is_missing: bool = False


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
        missing = (one for one in self._ids if one not in known)
        return (*self._offers, *(ToolOffer(one, one, is_missing=True) for one in missing))

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

    def toggle(self, tool_id: str, is_chosen: bool) -> None:
        """Choose a tool, or not any more; the order of the ids doesn't depend on clicks."""
        ids = {*self._ids, tool_id} if is_chosen else {*self._ids} - {tool_id}
        self.chosen.emit(tuple(offer.id for offer in self._ordered(tool_id) if offer.id in ids))

    def toggler(self, tool_id: str) -> Callable[[bool], None]:
        """Return a function for a signal that toggles a tool."""
        return lambda is_chosen: self.toggle(tool_id, is_chosen)

    def _ordered(self, tool_id: str) -> tuple[ToolOffer, ...]:
        offers = self.offers
        is_known = any(offer.id == tool_id for offer in offers)
        return offers if is_known else (*offers, ToolOffer(tool_id, tool_id))
