"""In a language that marks all it translates, nothing is shown without its mark."""

import asyncio
import re
from collections.abc import Iterable, Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QObject, QTranslator
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QFontComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QTableWidget,
    QTabWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.help.diagnostics import DiagnosticsDialog
from app.models.library_dialog import LibraryDialog
from app.theme.appearance import Appearance
from app.window.main_window import MainWindow
from medusa_core.doctor.check import Check
from tests.support.window.driving import ask
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import Run, dialog, hub, library, run, settings
from tests.support.window.managing import card, until, wait_for_tasks

__all__ = ["dialog", "hub", "library", "run", "settings"]

BEGIN, END = "⟦", "⟧"
MARKED = re.compile(f"{BEGIN}[^{BEGIN}{END}]*{END}")
WORD = re.compile(r"[^\W\d_]{3,}")
# Names, units, and what is said in English to a model that knows nothing else.
NAMES = re.compile(
    r"[\w.-]+/[\w.-]+|eagle|dflash|dspark|jetspec|hydra|mtp|assistant|"
    r"medusa chat|llama-pebble|pebble|fake|deutsch|english|markdown|json|gguf|"
    r"h1|suffix:|phrases:|ahead:|grammar:|tokens?/s|gib|mib|float32|fp32|cpu|gpu|ctrl|shift|return|esc|del|alt|"
    r"/[\w/.-]+|lmsys|fasterdecoding|medusa|vicuna|llama|qwen|mistral|gemma|phi|smollm|instruct|mini|nf4|with|huggingfacetb|"
    r"write a bedtime story about a small bear|who are you|what is the capital of france|"
    r"write a podcast about the moon",
    re.IGNORECASE,
)


class Marks(QTranslator):
    """Language in which each text is in brackets."""

    def translate(
        self, context: str, source: str, disambiguation: str | None = None, n: int = -1
    ) -> str:
        # A number box's prefix and values would be read back.
        return f"{BEGIN}{source}{END}"

    def isEmpty(self) -> bool:
        return False


@pytest.fixture
def marked(qapp: QApplication) -> Iterator[None]:
    translator = Marks()
    QCoreApplication.installTranslator(translator)
    yield
    QCoreApplication.removeTranslator(translator)


def texts_of(widget: QObject) -> Iterable[str]:
    """Return all texts and accessible texts of a widget."""
    if isinstance(widget, QAction):
        yield from (widget.text(), widget.toolTip())
    if not isinstance(widget, QWidget):
        return
    yield from (widget.toolTip(), widget.accessibleName(), widget.accessibleDescription())
    if widget.isWindow():
        yield widget.windowTitle()
    match widget:
        case QLabel() | QAbstractButton():
            yield widget.text()
        case QLineEdit() | QPlainTextEdit():
            yield widget.placeholderText()
        case QFontComboBox():
            return
        case QComboBox():
            yield from (widget.itemText(row) for row in range(widget.count()))
        case QTabWidget():
            yield from (widget.tabText(tab) for tab in range(widget.count()))
        case QTableWidget():
            heads = [widget.horizontalHeaderItem(i) for i in range(widget.columnCount())]
            heads += [widget.verticalHeaderItem(i) for i in range(widget.rowCount())]
            yield from (head.text() for head in heads if head is not None)


def unmarked(root: QObject) -> dict[str, str]:
    """Texts with words in English, by the class that shows them."""
    found: dict[str, str] = {}
    for one in (root, *root.findChildren(QObject)):
        for text in texts_of(one):
            plain = re.sub(r"<[^>]*>|&\w+;|&", " ", text)
            while MARKED.search(plain):
                plain = MARKED.sub(" ", plain)
            # A button's tip leaves out what stands behind a bracket in its action's text.
            plain = plain.partition(BEGIN)[0]
            if WORD.search(NAMES.sub(" ", plain)):
                found[text] = f"{type(one).__name__} {one.objectName()}"
    return found


def visible_windows() -> set[QWidget]:
    return {one for one in QApplication.topLevelWidgets() if one.isVisible()}


def opened(open_ready: Open) -> MainWindow:
    window, _ = open_ready()
    return window


def test_an_untranslated_text_is_detected(marked: None, qtbot: QtBot) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    for text in ("Not translated", QCoreApplication.translate("Any", "Translated"), "12 MiB"):
        QLabel(text, widget)
    assert list(unmarked(widget)) == ["Not translated"]


def test_the_window_with_an_answer_an_error_and_panels_is_translated(
    marked: None, qtbot: QtBot, open_ready: Open
) -> None:
    window = opened(open_ready)
    ask(qtbot, window, "12")
    window.insight.open_tree()
    window.insight.open_steps()
    window.insight.open_equilibrium()
    window.page.show_panel(True)
    window.page.errors.show_error("No model is loaded.", "Load a model first.", can_retry=True)
    compare = window.insight.open_compare()
    found = [unmarked(window), unmarked(compare)]
    compare.close()
    assert found == [{}, {}]


def test_settings_palette_and_menus_are_translated(
    marked: None, qtbot: QtBot, open_ready: Open, run: Run
) -> None:
    window = opened(open_ready)
    before = visible_windows()

    async def show() -> None:
        window.pages.open("settings")
        window.pages.open("palette")
        while len(visible_windows() - before) < 2 or asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.sleep(0.01)

    run(show)
    shown = visible_windows() - before
    found = [unmarked(one) for one in shown]
    for one in shown:
        one.close()
    assert found == [{}, {}]


def test_the_model_manager_is_translated(marked: None, run: Run, dialog: LibraryDialog) -> None:
    async def work() -> None:
        card(dialog, 8)
        await dialog.installed.refresh()
        await wait_for_tasks(dialog)
        for row in range(dialog.discover.table.rowCount()):
            dialog.discover.table.selectRow(row)

    run(work)
    for index in range(dialog.tabs.count()):
        dialog.tabs.setCurrentIndex(index)
        found = unmarked(dialog)
        assert found == {}, dialog.tabs.tabText(index)


def test_diagnostics_are_translated(
    marked: None, qtbot: QtBot, appearance: Appearance, run: Run
) -> None:
    checks = (
        Check("Compiled library", True, "In use: avx2."),
        Check("Device", False, "This torch finds no CUDA device.", "Choose another."),
    )
    report = DiagnosticsDialog(lambda: checks, lambda _: "", appearance)
    qtbot.addWidget(report)
    report.show()

    async def work() -> None:
        report.look()
        await until(lambda: report.table.rowCount() == len(checks))

    run(work)
    found = unmarked(report)
    assert found == {}
