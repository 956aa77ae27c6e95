"""German: every text that can be translated is, and the window is shown in it."""

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QLocale, QTranslator
from PySide6.QtWidgets import QApplication, QScrollArea
from pytestqt.qtbot import QtBot

from app.chat_settings.number_box import NumberBox
from app.chat_settings.speeds import Speeds
from app.i18n.engine_texts import engine_text
from app.i18n.numbers import Number
from app.i18n.translation import (
    chosen_language,
    install_language,
)
from app.insight.plots import Plot
from app.training.gain_words import gain_text, with_loss
from app.widgets.sizes import on_disk
from app.window.commands.palette import Palette
from medusa_core.api import read_attachment, read_trace, resources_dir
from medusa_core.chats.presets import Presets
from medusa_core.chats.settings import (
    SETTINGS,
    ChatSettings,
)
from medusa_core.errors import MedusaError
from medusa_core.i18n import tr
from medusa_core.messages import DrafterSpeed, WeightFormats
from medusa_core.models.architecture import unknown_family
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.models.quant.format import Hardware
from medusa_core.system.files.gguf import read_gguf
from medusa_core.system.jobs.heads_gain import HeadsGain
from tests.support.window.driving import show_all_settings
from tests.support.window.engine_events import ALL_DRAFTERS
from tests.support.window.fixtures import Open
from tests.tools.engine_texts import PACKAGE, parse, text_arguments, translated_files
from tests.tools.translations import compile_ts, extract, messages

FOLDER = resources_dir() / "translations"
WINDOW = resources_dir().parent / "app"
BERT = "Modelle der Art 'bert' werden nicht unterstützt: sie lesen einen Text in beiden Richtungen."
# What shows a text, or raises an error that is shown; of Python's errors the log tells.
SHOWS = re.compile(
    r"_?show(_(error|problem|notice|message))?|emit|"
    r"(?!Value|Type|Runtime|NotImplemented|Assertion)[A-Z]\w*Error"
)
SENTENCE = re.compile(r"[A-Za-z]{2,}.* .*[.!?…]['\"]$")
FIELD = re.compile(r"\{[^{}]*\}")
# Actions of menus and buttons by the English verb that they begin with.
INFINITIVES = {
    "Close": "schließen",
    "Copy": "kopieren",
    "Delete": "löschen",
    "Export": "exportieren",
    "Import": "importieren",
    "Open": "öffnen",
    "Remove": "entfernen",
    "Rename": "umbenennen",
    "Reset": "zurücksetzen",
    "Save": "speichern",
    "Show": "zeigen",
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiled translation, whether the installer has made one or not."""
    folder = tmp_path_factory.mktemp("translations")
    compile_ts(FOLDER / "medusa_de.ts", folder / "medusa_de.qm")
    return folder


@pytest.fixture
def german(qapp: QApplication, compiled: Path) -> Iterator[None]:
    before = set(qapp.findChildren(QTranslator))
    assert install_language(qapp, "de", compiled) == "de"
    yield
    QLocale.setDefault(QLocale("en"))
    for translator in set(qapp.findChildren(QTranslator)) - before:
        qapp.removeTranslator(translator)
        translator.deleteLater()


def test_every_german_text_has_the_same_fields_as_its_english(tmp_path: Path) -> None:
    fresh = tmp_path / "medusa_de.ts"
    fresh.write_bytes((FOLDER / "medusa_de.ts").read_bytes())
    extract(fresh)
    found = messages(fresh)
    assert len(found) > 180
    translated = {text: reported for text, reported in found.items() if reported}
    for (_, source), reported in translated.items():
        assert sorted(FIELD.findall(source)) == sorted(FIELD.findall(reported)), source
    warn_of_missing([source for (_, source), reported in found.items() if not reported])
    assert len(translated) > 0.9 * len(found), "hardly anything is German"


def test_texts_of_errors_keep_their_template() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in translated_files()
        for node in formatted_texts(parse(path))
    }
    assert found == set()


@pytest.mark.parametrize(
    "source",
    [
        "raise ModelError(f'{name} is bad.')",
        "raise ModelError('A ' + 'b.', 'Do it.')",
        "raise ModelError('Bad.', hint='Choose {}.'.format(name))",
        "raise ModelError('Bad.', f'Choose {a}.' if a else 'Choose.')",
        "def work(name):\n    text = f'{name} is bad.'\n    raise ModelError(text)",
        "_HINT = 'Choose another.'\ndef work():\n    raise ModelError('Bad.', _HINT)",
        "tr(f'{name} is bad.')",
    ],
)
def test_a_text_that_loses_its_template_is_found(source: str) -> None:
    assert len(formatted_texts(ast.parse(source))) == 1


def formatted_texts(module: ast.Module) -> list[ast.expr]:
    """Texts of errors, and of `tr`, that are formatted before they are translated or not marked."""
    assigned: dict[tuple[ast.AST, str], list[ast.expr]] = {}
    calls: list[tuple[ast.AST, ast.Call]] = []
    functions: dict[ast.AST, ast.AST] = {}
    for node in ast.walk(module):  # from outside to inside
        scope = functions.get(node, module)
        for child in ast.iter_child_nodes(node):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            functions[child] = node if is_function else scope
        if isinstance(node, ast.Call):
            calls.append((scope, node))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            assigned.setdefault((scope, node.targets[0].id), []).append(node.value)
    texts = []
    for scope, call in calls:
        for text in text_arguments(call):
            if is_formatted(text):
                texts.append(text)
            if isinstance(text, ast.Name):
                values = assigned.get((scope, text.id)) or assigned.get((module, text.id), [])
                texts += [value for value in values if is_formatted(value) or is_literal(value)]
    return texts


def is_literal(text: ast.expr) -> bool:
    """Whether an expression is a sentence."""
    return isinstance(text, ast.Constant) and " " in str(text.value)


def is_formatted(text: ast.expr) -> bool:
    """Whether an expression formats or joins texts."""
    match text:
        case ast.JoinedStr() | ast.BinOp():
            return True
        case ast.Call(func=ast.Attribute(attr="format" | "join")):
            return True
    return False


def test_signals_with_message_and_hint_keep_their_template() -> None:
    """Qt makes plain texts of `Signal(str, str)`."""
    declared = "Signal(str, str)"
    assert not [path for path in WINDOW.rglob("*.py") if declared in path.read_text("utf-8")]


def test_the_window_shows_no_untranslated_literal() -> None:
    paths = WINDOW.rglob("*.py")
    found = {f"{path}:{text.lineno}" for path in paths for text in shown_literals(parse(path))}
    assert found == set()


@pytest.mark.parametrize(
    "source",
    [
        "self.errors.show_error('It failed.', self.tr('Try again.'))",
        "self.failed.emit(f'{name} failed.')",
        "raise TraceError('It is damaged.') from error",
        "box.show_problem(problem='It failed.')",
    ],
)
def test_an_untranslated_literal_is_detected(source: str) -> None:
    assert len(shown_literals(ast.parse(source))) == 1


def shown_literals(module: ast.Module) -> list[ast.expr]:
    """Sentences that are shown without `tr`."""
    calls = [node for node in ast.walk(module) if isinstance(node, ast.Call)]
    arguments = [
        argument
        for call in calls
        if SHOWS.fullmatch(getattr(call.func, "attr", getattr(call.func, "id", "")))
        for argument in (*call.args, *(word.value for word in call.keywords))
    ]
    return [
        text
        for text in arguments
        if isinstance(text, ast.Constant | ast.JoinedStr) and SENTENCE.search(ast.unparse(text))
    ]


def test_an_action_has_the_same_german_infinitive_in_all_menus_and_buttons() -> None:
    others, num_seen = {}, 0
    for (context, source), translation in messages(FOLDER / "medusa_de.ts").items():
        infinitive = INFINITIVES.get(re.split(r"\W", source, maxsplit=1)[0])
        if context == "Engine" or infinitive is None or source.endswith("."):
            continue  # sentences tell what to do: "Speichern Sie es neu."
        num_seen += 1
        if infinitive not in translation.lower():
            others[source] = translation
    assert num_seen > 60
    assert others == {}


def test_an_ellipsis_follows_a_german_word_as_it_follows_the_english_one() -> None:
    found = messages(FOLDER / "medusa_de.ts")
    assert not {s: t for (_, s), t in found.items() if t.endswith(" …") and not s.endswith(" …")}


def warn_of_missing(texts: list[str]) -> None:
    """Tell what is shown in English among German: it stops no work on the program."""
    if texts:
        reported = "; ".join(texts)
        how = "python -m tests.tools.translations"
        warnings.warn(f"{len(texts)} texts have no German one ({how}): {reported}", stacklevel=2)


def test_missing_translations_warn_and_fail_no_run() -> None:
    with pytest.warns(UserWarning, match="2 texts have no German one"):
        warn_of_missing(["One.", "Two."])
    warn_of_missing([])


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("No model is loaded.", "Es ist kein Modell geladen."),
        (
            tr("The chat template of {0} writes nothing.", "a/b"),
            "Die Chat-Vorlage von a/b schreibt nichts.",
        ),
        (str(unknown_family("bert", tr("they read a text in both directions")).message), BERT),
        (tr("{0} isn't a file.", "{0}"), "{0} ist keine Datei."),
        (
            tr("Nobody wrote {0}: {1}.", 1.5, tr("it is neither")),
            "Nobody wrote 1,5: it is neither.",
        ),
        ("Nobody wrote this.", "Nobody wrote this."),
        ("", ""),
    ],
)
def test_engine_texts_are_shown_in_german(german: None, text: str, reported: str) -> None:
    assert engine_text(text) == reported


def test_engine_errors_are_shown_in_german(german: None, tmp_path: Path) -> None:
    reported = []
    for work in (
        lambda: ModelFiles.open(tmp_path).config,
        lambda: read_trace(tmp_path / "missing.json"),
        lambda: read_attachment(tmp_path),
        lambda: Presets(tmp_path).save("exact", ChatSettings()),
        lambda: read_gguf(tmp_path / "x.gguf"),
        lambda: resolve_formats(WeightFormats(), "float12", Hardware("cpu")),
    ):
        with pytest.raises(MedusaError) as caught:
            work()
        reported.append((caught.value.message, caught.value.hint))
    for message, hint in reported:
        assert engine_text(message) != message
        assert not hint or engine_text(hint) != hint


def test_in_english_texts_stay_as_they_are() -> None:
    text = tr("{0} has {1:,} tokens.", "a/b", 4096)
    assert engine_text(text) == text == "a/b has 4,096 tokens."


def test_a_translation_with_a_surplus_field_is_shown_in_english_and_logged(
    qapp: QApplication, caplog: pytest.LogCaptureFixture
) -> None:
    class Wrong(QTranslator):
        def translate(
            self, context: str, source: str, disambiguation: str | None = None, n: int = -1
        ) -> str:
            return "{0} und {1}"

        def isEmpty(self) -> bool:
            return False

    translator = Wrong()
    qapp.installTranslator(translator)
    try:
        assert engine_text(tr("{0} isn't a file.", "a")) == "a isn't a file."
    finally:
        qapp.removeTranslator(translator)
    assert 'the translation of "{0} isn\'t a file." has other fields' in caplog.text


def test_the_systems_language_is_used_unless_another_is_chosen(compiled: Path) -> None:
    assert chosen_language("system", compiled, ["de-AT", "en-US"]) == "de"
    assert chosen_language("system", compiled, ["fr-FR", "de-DE"]) == "de"
    assert chosen_language("system", compiled, ["fr-FR"]) == "en"
    assert chosen_language("en", compiled, ["de-DE"]) == "en"
    assert chosen_language("tlh", compiled, []) == "en"


def test_a_translation_that_is_not_compiled_leaves_the_window_english_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "medusa_de.ts").touch()
    assert chosen_language("en", tmp_path, []) == chosen_language("fr", tmp_path, []) == "en"
    assert not caplog.records
    assert chosen_language("de", tmp_path, []) == "en"
    assert "medusa_de.ts isn't compiled: `python3 installer run`" in caplog.text


def test_menus_settings_palette_and_first_steps_are_german(german: None, open_ready: Open) -> None:
    window, _ = open_ready()
    table = window.commands
    texts = [action.text() for action in table.menu() if action is not None]
    assert texts[:2] == ["Baum", "Schritte"]
    assert "Einstellungen…" in texts
    window.pages.open("palette")
    assert window.pages.find(Palette).edit.placeholderText() == "Befehl oder Name eingeben"
    assert "Neues Gespräch" in [entry.label for entry in window.pages.find(Palette).entries]


def test_the_side_panel_is_german(german: None, open_ready: Open) -> None:
    window, _ = open_ready()
    settings_panel = window.page.settings_panel
    box = settings_panel.numbers.boxes["max_new_tokens"]
    assert box.accessibleName() == "Längste Antwort"
    box.setValue(0)
    assert (box.text(), box.valueFromText("ohne")) == ("ohne", 0)
    assert settings_panel.presets.box.currentText() == "Exakt"
    assert "auszulosen" in settings_panel.groups["Sampling"].note
    settings_panel.presets.save_as("Exact")  # in whatever language, it comes with the program
    assert [preset.name for preset in settings_panel.presets._presets.all].count("Exact") == 1


@pytest.mark.usefixtures("german")
def test_numbers_follow_the_language() -> None:
    assert f"{Number(4096):,}" == "4.096"
    assert f"{Number(0.255):.0%}" == "26\N{NO-BREAK SPACE}%"
    assert f"{Number(1234.5):,.2f} tokens" == "1.234,50 tokens"
    assert on_disk(13_500_000_000) == "13,5 GB"


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (
            tr("its vocabulary has {0:,} tokens, not {1:,}", 151_936, 49_152),
            "sein Vokabular hat 151.936 Token, nicht 49.152",
        ),
        (
            tr("This model needs {0:.1f} GiB more than {1} has free.", 2.6, "cuda:0"),
            "Dieses Modell braucht 2,6 GiB mehr, als auf cuda:0 frei ist.",
        ),
        (tr("vocabulary size {0:,} ≠ {1:,}", 151_936, 1_000), "Vokabular 151.936 ≠ 1.000"),
        (tr("{0} isn't a file.", "Qwen2.5-0.5B"), "Qwen2.5-0.5B ist keine Datei."),
        (tr("{0} isn't a file.", Path("1.5")), "1.5 ist keine Datei."),
    ],
)
def test_numbers_in_texts_of_the_engine_follow_the_language(text: str, reported: str) -> None:
    assert engine_text(text) == reported


@pytest.mark.usefixtures("german")
def test_the_axes_of_charts_have_decimal_commas(qtbot: QtBot) -> None:
    plot = Plot("Time", "Of each step")
    qtbot.addWidget(plot)
    for side in ("left", "bottom"):
        axis = plot.getPlotItem().getAxis(side)
        assert axis.tickStrings([0.0, 0.5, 1_500_000.0], 1.0, 0.5) == ["0", "0,5", "1,5e+06"]


@pytest.mark.usefixtures("german")
def test_figures_of_drafters_and_heads_have_decimal_commas() -> None:
    assert gain_text(HeadsGain(1.5, 1.25)).startswith("Die Köpfe sind fertig: 1,50 Token")
    assert "(0,95× " in with_loss("Köpfe", HeadsGain(1.5, 0.95))
    drafter = ALL_DRAFTERS[0]
    speeds = Speeds([DrafterSpeed(drafter.name, 1.2, 12.0, 1.4, 0.0)])
    assert speeds.row(drafter).startswith("1,2 Token/Schritt, 1,4×")


@pytest.mark.usefixtures("german")
def test_a_number_box_writes_a_comma_and_reads_a_point_as_well(qtbot: QtBot) -> None:
    box = NumberBox(SETTINGS["temperature"])
    qtbot.addWidget(box)
    box.setValue(1.0)
    assert box.text() == "1,0"
    for typed in ("0.7", "0,7"):
        box.setValue(1.0)
        box.lineEdit().setText(typed)
        box.interpretText()
        assert box.value() == pytest.approx(0.7)


def test_numbers_are_english_in_english() -> None:
    assert f"{Number(4096):,}" == "4,096"
    assert f"{Number(1.5):.2f}" == "1.50"


def test_no_german_setting_is_wider_than_the_panel(
    german: None, qtbot: QtBot, open_ready: Open
) -> None:
    window, _ = open_ready()
    show_all_settings(window)
    (area,) = window.page.settings_panel.findChildren(QScrollArea)
    content = area.widget()
    assert content is not None
    qtbot.waitUntil(area.verticalScrollBar().isVisible)
    assert content.minimumSizeHint().width() <= area.viewport().width()
