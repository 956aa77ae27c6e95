"""Words for tools, servers and their states."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from app.i18n.words import QT_TRANSLATE_NOOP
from medusa_core.api import BuiltinTool, ServerState

translate = QCoreApplication.translate

_BUILTIN = {
    "calculate": (
        QT_TRANSLATE_NOOP("Tools", "Calculator"),
        QT_TRANSLATE_NOOP("Tools", "Calculates exactly. It reaches nothing outside of itself."),
    ),
    "date_time": (
        QT_TRANSLATE_NOOP("Tools", "Date and time"),
        QT_TRANSLATE_NOOP("Tools", "Reads this computer's clock and nothing else."),
    ),
    "web_page": (
        QT_TRANSLATE_NOOP("Tools", "Web page"),
        QT_TRANSLATE_NOOP(
            "Tools",
            "Fetches a page from the internet as text. It reaches the hosts that you approve, "
            "which learn your address and what is asked for.",
        ),
    ),
    "web_search": (
        QT_TRANSLATE_NOOP("Tools", "Web search"),
        QT_TRANSLATE_NOOP(
            "Tools",
            "Searches by the SearXNG address below. Only that host is reached; it learns the "
            "words that are searched for.",
        ),
    ),
}
_STATES = {
    ServerState.OFF: QT_TRANSLATE_NOOP("Tools", "off"),
    ServerState.STARTING: QT_TRANSLATE_NOOP("Tools", "starting…"),
    ServerState.READY: QT_TRANSLATE_NOOP("Tools", "ready"),
    ServerState.FAILED: QT_TRANSLATE_NOOP("Tools", "failed"),
}


def builtin_words(tool: BuiltinTool) -> tuple[str, str]:
    """Return the name of a built-in tool, and what it does and reaches."""
    label, reach = _BUILTIN.get(tool.name, (tool.label, tool.description))
    return translate("Tools", label), translate("Tools", reach)


def state_word(state: ServerState) -> str:
    """Return the state of a server."""
    return translate("Tools", _STATES[state])
