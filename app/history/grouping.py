"""Rows of the list of conversations, grouped by folder and date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from PySide6.QtCore import QCoreApplication

from app.i18n.words import QT_TRANSLATE_NOOP
from medusa_core.api import ConversationInfo, Folder

MONTHS = (
    QT_TRANSLATE_NOOP("History", "January"),
    QT_TRANSLATE_NOOP("History", "February"),
    QT_TRANSLATE_NOOP("History", "March"),
    QT_TRANSLATE_NOOP("History", "April"),
    QT_TRANSLATE_NOOP("History", "May"),
    QT_TRANSLATE_NOOP("History", "June"),
    QT_TRANSLATE_NOOP("History", "July"),
    QT_TRANSLATE_NOOP("History", "August"),
    QT_TRANSLATE_NOOP("History", "September"),
    QT_TRANSLATE_NOOP("History", "October"),
    QT_TRANSLATE_NOOP("History", "November"),
    QT_TRANSLATE_NOOP("History", "December"),
)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the list.

    Attributes:
        text: Its text.
        folder_id: Its folder; None for a date.
    """

    text: str
    folder_id: str | None = None


GroupedRow = Heading | ConversationInfo


def rows_of(
    conversations: Iterable[ConversationInfo], folders: Sequence[Folder], now: datetime
) -> tuple[GroupedRow, ...]:
    """Group conversations: pinned ones, then folders, then the others by date.

    Args:
        conversations: Conversations, the newest first.
        folders: All folders; empty ones get a heading, too.
        now: Current time in the user's time zone.
    """
    names = {folder.id: Heading(folder.name, folder.id) for folder in folders}
    groups: dict[Heading, list[ConversationInfo]] = {
        Heading(QCoreApplication.translate("History", "Pinned")): []
    }
    groups.update((heading, []) for heading in names.values())
    for one in conversations:
        if one.is_pinned:
            heading = Heading(QCoreApplication.translate("History", "Pinned"))
        elif one.folder_id in names:
            heading = names[one.folder_id]
        else:
            heading = Heading(_day(datetime.fromtimestamp(one.changed_s).date(), now.date()))
        groups.setdefault(heading, []).append(one)
    rows: list[GroupedRow] = []
    for heading, members in groups.items():
        if members or heading.folder_id is not None:
            rows += [heading, *members]
    return tuple(rows)


def _day(day: date, today: date) -> str:
    """Return the name of a date's group; dates in the future count as today."""
    age = (today - day).days
    if age <= 0:
        return QCoreApplication.translate("History", "Today")
    if age == 1:
        return QCoreApplication.translate("History", "Yesterday")
    if age <= 7:
        return QCoreApplication.translate("History", "Last 7 days")
    if age <= 30:
        return QCoreApplication.translate("History", "Last 30 days")
    month = QCoreApplication.translate("History", MONTHS[day.month - 1])
    return f"{month} {day.year}"
