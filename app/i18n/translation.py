"""The language of the window: Qt's translators, by the user's choice or the system's.

`python3 installer run` and `test` compile translations. One that isn't compiled is as good as none:
the window is in English then.
"""

from __future__ import annotations

import logging
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

log = logging.getLogger(__name__)

SYSTEM = "system"
SOURCE = "en"  # what the texts are written in
PREFIX = "medusa_"


def languages(folder: Path) -> tuple[str, ...]:
    """The codes of all languages that are compiled, English first."""
    found = sorted(path.stem.removeprefix(PREFIX) for path in folder.glob(f"{PREFIX}*.qm"))
    return (SOURCE, *found)


def chosen_language(choice: str, folder: Path, wanted: list[str] | None = None) -> str:
    """The language to show.

    Args:
        choice: A code, or `system`.
        folder: Folder of the translations.
        wanted: Preferred languages such as `de-DE`, best first; None asks the system.
    """
    offered = languages(folder)
    languages_wanted = wanted if wanted is not None else QLocale.system().uiLanguages()
    codes = [name.partition("-")[0] for name in languages_wanted] if choice == SYSTEM else [choice]
    for code in codes:
        if code in offered:
            return code
        if (folder / f"{PREFIX}{code}.ts").exists():
            log.warning("%s%s.ts isn't compiled: `python3 installer run` does that", PREFIX, code)
    return SOURCE


def install_language(app: QCoreApplication, choice: str, folder: Path) -> str:
    """Translate all that is shown from now on; the application keeps the translators.

    Returns:
        The language.
    """
    language = chosen_language(choice, folder)
    QLocale.setDefault(QLocale(language))  # numbers follow it, too
    if language == SOURCE:
        return language
    qt_folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    for name, where in ((f"qtbase_{language}", qt_folder), (f"{PREFIX}{language}", str(folder))):
        translator = QTranslator(app)
        if translator.load(name, where):
            app.installTranslator(translator)
        else:
            log.warning("%s has no translation %s", where, name)
    return language
