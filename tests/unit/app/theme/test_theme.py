"""Themes: every text can be read, every mark can be seen, every file is there."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontInfo
from PySide6.QtWidgets import QDialog, QListWidget
from pytestqt.qtbot import QtBot

import app
from app.theme.appearance import Appearance, ThemeChoice, render_stylesheet, theme_of_system
from app.theme.fonts import CODE_FAMILY, MAX_ZOOM, MIN_ZOOM, TEXT_FAMILY, FontScale
from app.theme.legend import Mark
from app.theme.marks import mark_style
from app.theme.tokens import CONTRAST, DARK, LIGHT, Theme, contrast
from app.widgets.number_edit import DecimalBox, WholeBox
from medusa_core.api import resources_dir
from tests.support.window.engine_events import LEGEND, OF_HEADS, SOURCES

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK, CONTRAST], ids=lambda theme: theme.name)
READABLE = 4.5
ENHANCED = 7.0  # WCAG 2.2, level AAA
VISIBLE = 3.0
APART = 5.0
# From linear red, green and blue to the cones of the eye, and from their cube roots to OKLab.
_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def test_contrast_agrees_with_the_examples_of_its_definition() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffffff", "#ffffff") == pytest.approx(1)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@THEMES
def test_all_text_is_readable_on_its_background(theme: Theme) -> None:
    behind = (theme.window, theme.surface, theme.raised, theme.hover, theme.bubble, theme.code)
    for ground in (*behind, theme.danger_surface, theme.selection):
        assert contrast(theme.text, ground) >= READABLE
    for ground in behind:
        for ink in (theme.muted, theme.link, theme.accent, theme.danger):
            assert contrast(ink, ground) >= READABLE, (ink, ground)
    for ink in (theme.text, theme.danger, theme.muted):
        assert contrast(ink, theme.danger_surface) >= READABLE
    for ground in (theme.accent, theme.accent_hover):
        assert contrast(theme.on_accent, ground) >= READABLE
    assert contrast(theme.link, theme.window) >= READABLE


def test_the_theme_follows_the_system_and_its_contrast_setting() -> None:
    scheme, contrast = Qt.ColorScheme, Qt.ContrastPreference
    assert theme_of_system(scheme.Light, contrast.NoPreference) is LIGHT
    assert theme_of_system(scheme.Dark, contrast.NoPreference) is DARK
    assert theme_of_system(scheme.Unknown, contrast.NoPreference) is LIGHT
    for one in scheme:
        assert theme_of_system(one, contrast.HighContrast) is CONTRAST


def test_high_contrast_reaches_the_enhanced_level_everywhere() -> None:
    theme = CONTRAST
    grounds = (theme.window, theme.surface, theme.raised, theme.hover, theme.bubble, theme.code)
    for ground in (*grounds, theme.danger_surface, theme.selection):
        assert contrast(theme.text, ground) >= ENHANCED
    for ground in grounds:
        for ink in (theme.muted, theme.link, theme.accent, theme.danger):
            assert contrast(ink, ground) >= ENHANCED, (ink, ground)
    for ground in (theme.accent, theme.accent_hover):
        assert contrast(theme.on_accent, ground) >= ENHANCED
    codes = (theme.code_keyword, theme.code_string, theme.code_comment, theme.code_number)
    for mark in theme.palette.values():
        for ink in (theme.text, theme.link, *codes, theme.code_name):
            assert contrast(ink, mark.tint) >= ENHANCED, (ink, mark)
        assert contrast(mark.line, theme.window) >= ENHANCED
    assert contrast(theme.border, theme.window) >= VISIBLE


@THEMES
def test_disabled_widgets_look_disabled_and_are_still_visible(theme: Theme, qtbot: QtBot) -> None:
    assert contrast(theme.disabled, theme.surface) >= 2
    assert contrast(theme.text, theme.surface) / contrast(theme.disabled, theme.surface) >= 2
    template = (resources_dir() / "styles" / "app.qss").read_text(encoding="utf-8")
    filled = render_stylesheet(template, theme, FontScale(), resources_dir() / "icons")
    for rule in (
        "QMenu::item:disabled",
        "QAbstractItemView::item:disabled",
        "QPushButton:disabled",
        "QComboBox:disabled",
    ):
        block = filled[filled.index(rule) :].split("}")[0]
        assert theme.disabled in block
    for path in re.findall(r'url\("([^"]+)"\)', filled):
        assert Path(path).is_file()


def test_number_fields_and_lists_look_like_other_fields(
    qtbot: QtBot, appearance: Appearance
) -> None:
    dialog = QDialog()
    qtbot.addWidget(dialog)
    whole, decimal, names = WholeBox(dialog), DecimalBox(dialog), QListWidget(dialog)
    names.addItem("A server")
    dialog.show()
    assert whole.sizeHint().height() == decimal.sizeHint().height()
    margins = []
    for zoom in (0.8, 1.0, 1.6):
        appearance.use(zoom=zoom)
        margins.append([box.lineEdit().textMargins().left() for box in (whole, decimal)])
    appearance.use(zoom=1.0)
    assert 4 <= margins[0][0] < margins[1][0] < margins[2][0]
    assert all(one == other for one, other in margins)
    assert names.visualItemRect(names.item(0)).height() > names.fontMetrics().lineSpacing() + 4
    ground = names.grab().toImage().pixelColor(names.width() // 2, names.height() - 8)
    assert ground.name() == appearance.theme.surface


@THEMES
def test_marked_text_is_readable_in_prose_and_in_code(theme: Theme) -> None:
    inks = (
        theme.text,
        theme.link,
        theme.muted,
        theme.code_keyword,
        theme.code_string,
        theme.code_comment,
        theme.code_number,
        theme.code_name,
    )
    for ink in inks:
        assert contrast(ink, theme.code) >= READABLE
        for head in theme.palette.values():
            assert contrast(ink, head.tint) >= READABLE, (ink, head)


@THEMES
def test_underlines_bars_and_the_focus_are_visible(theme: Theme) -> None:
    for head in (*theme.palette.values(), theme.agreed):
        for ground in (theme.window, theme.surface, theme.code, head.tint):
            assert contrast(head.line, ground) >= VISIBLE, (head, ground)
    assert contrast(theme.accent, theme.surface) >= VISIBLE
    assert contrast(theme.danger, theme.danger_surface) >= VISIBLE
    assert contrast(theme.text, theme.agreed.tint) >= READABLE


@THEMES
def test_any_two_colours_of_marks_are_distinguishable(theme: Theme) -> None:
    distances = {
        (one, other): oklab_distance(theme.palette[one].line, theme.palette[other].line)
        for one, other in combinations(theme.palette, 2)
    }
    assert {pair for pair, distance in distances.items() if distance < APART} == set()
    assert len({mark.tint for mark in theme.palette.values()}) == len(theme.palette)


@THEMES
def test_the_colours_of_curves_repeat_after_the_last(theme: Theme) -> None:
    assert [theme.series(1 + part) for part in range(len(theme.palette))] == list(
        theme.palette.values()
    )
    assert theme.series(len(theme.palette) + 1) == theme.series(1) == theme.mark("no such")


@THEMES
def test_every_source_has_its_colours_and_those_of_heads_repeat(theme: Theme) -> None:
    for info in SOURCES:
        assert set(info.colours) <= theme.palette.keys()
        lines = [LEGEND.colour(Mark(info.name, depth)) for depth in range(1, 12)]
        assert lines[: len(info.colours)] == list(info.colours)
        assert lines[len(info.colours)] == info.colours[0]
    for one, other in combinations(SOURCES, 2):
        # A target has heads of one kind, so those of another are never drawn beside them.
        never_together = {one.name, other.name} <= OF_HEADS
        assert never_together or not {*one.colours} & {*other.colours}, (one.name, other.name)


def oklab_distance(first: str, second: str) -> float:
    """Return the perceived difference of two "#rrggbb" colours: 2 is just visible, 100 is black to
    white.

    Source: B. Ottosson, A perceptual color space for image processing, 2020.
    """

    def lab(colour: str) -> np.ndarray:
        rgb = QColor(colour)
        lms = _LMS @ [_linear(c) for c in (rgb.redF(), rgb.greenF(), rgb.blueF())]
        return _OKLAB @ np.cbrt(lms)

    return 100 * float(np.linalg.norm(lab(first) - lab(second)))


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


@THEMES
def test_the_style_sheet_has_no_unfilled_placeholder(theme: Theme, qtbot: QtBot) -> None:
    template = (resources_dir() / "styles" / "app.qss").read_text(encoding="utf-8")
    filled = render_stylesheet(template, theme, FontScale(), Path("arrow.svg"))
    assert "$" not in filled
    assert "em(" not in filled.split("*/", 1)[1]
    assert theme.window in filled


def test_an_unknown_colour_in_the_style_sheet_is_an_error(qtbot: QtBot) -> None:
    with pytest.raises(KeyError):
        render_stylesheet("* { color: $pink; }", LIGHT, FontScale(), Path("arrow.svg"))


def test_the_bundled_fonts_are_used(appearance: Appearance) -> None:
    for family in (TEXT_FAMILY, CODE_FAMILY):
        assert QFontInfo(QFont(family)).family() == family
    semi_bold = QFontInfo(appearance.scale.font(weight=QFont.Weight.DemiBold))
    assert semi_bold.weight() == QFont.Weight.DemiBold
    fonts = resources_dir() / "fonts"
    assert sum(path.stat().st_size for path in fonts.iterdir()) < 1_500_000
    assert len(list(fonts.glob("LICENSE-*.txt"))) == 2


def test_choosing_a_theme_changes_colours_and_emits_a_signal(
    appearance: Appearance, qtbot: QtBot
) -> None:
    with qtbot.waitSignal(appearance.changed):
        appearance.use(ThemeChoice.DARK)
    assert appearance.theme is DARK
    appearance.use(ThemeChoice.LIGHT)
    assert appearance.theme is LIGHT


def test_zoom_has_limits_and_can_be_reset(appearance: Appearance) -> None:
    def zoom(steps: int) -> float:
        appearance.use(zoom=appearance.scale.zoomed(steps).zoom)
        return appearance.scale.zoom

    assert 1.0 < zoom(1) < MAX_ZOOM
    assert zoom(20) == MAX_ZOOM
    assert zoom(-30) == MIN_ZOOM
    appearance.use(zoom=1.0)
    assert appearance.scale.zoom == 1.0


def test_lengths_follow_the_zoom(qtbot: QtBot) -> None:
    assert FontScale(2.0).px(10) == pytest.approx(2 * FontScale(1.0).px(10), abs=4)


def test_an_icon_is_drawn_once_for_each_colour_and_size(appearance: Appearance) -> None:
    first = appearance.icon("copy", "#ff0000", 1.0)
    assert appearance.icon("copy", "#ff0000", 1.0).cacheKey() == first.cacheKey()
    others = (("copy", "#00ff00", 1.0), ("copy", "#ff0000", 2.0), ("stop", "#ff0000", 1.0))
    for name, colour, em in others:
        assert appearance.icon(name, colour, em).cacheKey() != first.cacheKey()


def test_icons_have_the_requested_colour_and_size(appearance: Appearance) -> None:
    for path in (resources_dir() / "icons").glob("*.svg"):
        picture = appearance.icon(path.stem, "#ff0000", 2.0).pixmap(64, 64).toImage()
        colours = {
            picture.pixelColor(x, y).name()
            for x in range(picture.width())
            for y in range(picture.height())
            if picture.pixelColor(x, y).alpha() == 255
        }
        assert colours, path.name
        if b"currentColor" in path.read_bytes():
            assert colours == {"#ff0000"}, path.name


@THEMES
def test_answers_are_painted_in_the_colours_of_the_theme(theme: Theme, qtbot: QtBot) -> None:
    style = mark_style(theme, FontScale(1.5), LEGEND)
    lines = [style.underline(Mark("medusa", depth)) for depth in range(1, 6)]
    assert lines == [theme.series(number).line for number in range(1, 6)]
    assert style.text == theme.text
    assert style.text_size_pt == FontScale(1.5).point_size


def test_no_text_is_bolder_than_the_bundled_fonts(qtbot: QtBot) -> None:
    template = (resources_dir() / "styles" / "app.qss").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in Path(app.__path__[0]).rglob("*.py")]
    weights = re.findall(r"font-weight:\s*(\w+)", "\n".join((template, *sources)))
    assert set(weights) == {"400", "600"}
    assert not any("</b>" in source or "Weight.Bold" in source for source in sources)
