"""Detect scripts without an installed font, and suggest a package that has one."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QFontDatabase

from app.i18n.words import QT_TRANSLATE_NOOP

_System = QFontDatabase.WritingSystem
_CJK, _CORE, _EMOJI = "fonts-noto-cjk", "fonts-noto-core", "fonts-noto-color-emoji"


class Script(NamedTuple):
    """A writing system, or emoji.

    Attributes:
        name: Name as shown to users.
        chars: Body of a regular expression's character set that matches the script.
        systems: Qt's writing systems for it, any of which suffices; empty for emoji.
        package: Package of Debian and Ubuntu with a font for it.
    """

    name: str
    chars: str
    systems: tuple[QFontDatabase.WritingSystem, ...]
    package: str


_HAN = (_System.SimplifiedChinese, _System.TraditionalChinese, _System.Japanese)
_SCRIPTS = (
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Chinese"),
        "\u3400-\u4dbf\u4e00-\u9fff",
        _HAN,
        _CJK,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Japanese"),
        "\u3041-\u30ff",
        (_System.Japanese,),
        _CJK,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Korean"),
        "\u1100-\u11ff\uac00-\ud7a3",
        (_System.Korean,),
        _CJK,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Arabic"),
        "\u0620-\u06ff",
        (_System.Arabic,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Hebrew"),
        "\u05d0-\u05ea",
        (_System.Hebrew,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Thai"),
        "\u0e01-\u0e5b",
        (_System.Thai,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Devanagari"),
        "\u0900-\u097f",
        (_System.Devanagari,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Bengali"),
        "\u0980-\u09ff",
        (_System.Bengali,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Gurmukhi"),
        "\u0a00-\u0a7f",
        (_System.Gurmukhi,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Gujarati"),
        "\u0a80-\u0aff",
        (_System.Gujarati,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Tamil"),
        "\u0b80-\u0bff",
        (_System.Tamil,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Telugu"),
        "\u0c00-\u0c7f",
        (_System.Telugu,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Kannada"),
        "\u0c80-\u0cff",
        (_System.Kannada,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Malayalam"),
        "\u0d00-\u0d7f",
        (_System.Malayalam,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Sinhala"),
        "\u0d80-\u0dff",
        (_System.Sinhala,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Lao"),
        "\u0e80-\u0eff",
        (_System.Lao,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Myanmar"),
        "\u1000-\u109f",
        (_System.Myanmar,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Khmer"),
        "\u1780-\u17ff",
        (_System.Khmer,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Georgian"),
        "\u10a0-\u10ff",
        (_System.Georgian,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "Armenian"),
        "\u0531-\u058f",
        (_System.Armenian,),
        _CORE,
    ),
    Script(
        QT_TRANSLATE_NOOP("Scripts", "emoji"),
        "\U0001f300-\U0001f64f\U0001f680-\U0001faff",
        (),
        _EMOJI,
    ),
)
_EMOJI_FONTS = ("emoji", "symbola")


class FontHints:
    """Suggests fonts for scripts that can't be shown, once for each script."""

    def __init__(self) -> None:
        self._hinted: set[str] = set()

    def hint(self, *texts: str) -> str:
        """Return which fonts to install for texts; empty if none is missing, or if said before."""
        # Of most texts in Latin letters this is all.
        shown = [text for text in texts if not text.isascii()]
        missing = [
            script
            for script in _SCRIPTS
            if script.name not in self._hinted
            and any(_pattern(script).search(text) for text in shown)
            and not has_font(script)
        ]
        self._hinted |= {script.name for script in missing}
        if not missing:
            return ""
        translate = QCoreApplication.translate
        names = ", ".join(translate("Scripts", script.name) for script in missing)
        lacks = translate("Scripts", "This computer has no font for some characters ({0}).")
        if sys.platform != "linux":
            helps = translate("Scripts", "Install one, and start the program again.")
            return f"{lacks.format(names)} {helps}"
        packages = ", ".join(sorted({script.package for script in missing}))
        helps = translate("Scripts", "Install {0}, and start the program again.")
        return f"{lacks.format(names)} {helps.format(packages)}"


def has_font(script: Script) -> bool:
    """Whether an installed font supports a script."""
    if script.systems:
        return any(QFontDatabase.families(system) for system in script.systems)
    families = " ".join(QFontDatabase.families()).lower()
    return any(name in families for name in _EMOJI_FONTS)


@cache
def _pattern(script: Script) -> re.Pattern[str]:
    return re.compile(f"[{script.chars}]")
