"""Current appearance of the window: theme, zoom, icons, marks."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from enum import Enum
from functools import cache
from pathlib import Path
from string import Template

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPalette
from PySide6.QtWidgets import QApplication

from app.theme.fonts import CODE_FAMILY, TEXT_FAMILY, FontScale, load_fonts
from app.theme.icons import IconSet
from app.theme.legend import (
    Legend,
    Mark,
)
from app.theme.text_style import Marking
from app.theme.tokens import CONTRAST, DARK, LIGHT, MarkColour, Theme

_EM = re.compile(r"em\(([0-9.]+)\)")


class ThemeChoice(str, Enum):
    """The user's choice of a theme."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"
    CONTRAST = "contrast"


class Appearance(QObject):
    """Appearance of the application.

    Attributes:
        choice: The user's choice of a theme.
        theme: Colours of that theme.
        scale: Sizes at the user's zoom.
        legend: Names and marks of drafters.
        marking: Which tokens of answers are marked.

    Signals:
        changed: Theme or zoom changed.
        marking_changed: `marking` changed.
    """

    changed = Signal()
    marking_changed = Signal()

    def __init__(self, resources: Path) -> None:
        """Create the default appearance, which `use` applies.

        Args:
            resources: Folder of fonts, icons and styles.
        """
        super().__init__()
        load_fonts(resources / "fonts")
        self._icons = IconSet(resources / "icons")
        self._template = (resources / "styles" / "app.qss").read_text(encoding="utf-8")
        self._icons_dir = resources / "icons"
        self.choice = ThemeChoice.SYSTEM
        self.scale = FontScale(1.0, TEXT_FAMILY)
        self.legend = Legend()
        self.marking = Marking.HEADS
        self.theme = self._chosen()
        self._applied: tuple[Theme, FontScale] | None = None
        _take_fusion()
        # Qt's own file dialog takes its icons from here.
        QIcon.setThemeSearchPaths([str(resources / "icons")])
        QIcon.setThemeName("files")
        hints = QGuiApplication.styleHints()
        hints.colorSchemeChanged.connect(self._follow_system)
        hints.accessibility().contrastPreferenceChanged.connect(self._follow_system)

    def use(
        self,
        choice: ThemeChoice | None = None,
        *,
        zoom: float | None = None,
        family: str | None = None,
    ) -> None:
        """Change the appearance; None keeps a value.

        Args:
            choice: The theme.
            zoom: Zoom factor; 1 is normal.
            family: Font of all text except code; empty for the bundled one.
        """
        self.choice = choice or self.choice
        self.theme = self._chosen()
        if zoom is not None:
            self.scale = self.scale.zoomed_to(zoom)
        if family is not None:
            self.scale = replace(self.scale, family=family or TEXT_FAMILY)
        if self._applied != (self.theme, self.scale):
            self._applied = self.theme, self.scale
            self._apply()

    def _apply(self) -> None:
        """Apply font, palette and style sheet to the whole application."""
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.setFont(self.scale.font())
        app.setPalette(_palette(self.theme))
        sheet = render_stylesheet(self._template, self.theme, self.scale, self._icons_dir)
        if sheet != app.styleSheet():  # setting it again would style every widget anew: 0.1 s
            app.setStyleSheet(sheet)
        self.changed.emit()

    def mark_tokens(self, marking: Marking) -> None:
        """Set which tokens of answers are marked."""
        if marking is not self.marking:
            self.marking = marking
            self.marking_changed.emit()

    def mark(self, mark: Mark) -> MarkColour:
        """Return the colours of a mark."""
        return self.theme.mark(self.legend.colour(mark))

    def icon(self, name: str, colour: str, em: float = 1.3) -> QIcon:
        """Return an icon in a colour of the theme, sized in font units."""
        return self._icons.icon(name, colour, self.scale.px(em))

    def _chosen(self) -> Theme:
        if self.choice is ThemeChoice.SYSTEM:
            hints = QGuiApplication.styleHints()
            return theme_of_system(hints.colorScheme(), hints.accessibility().contrastPreference())
        return _THEMES[self.choice]

    def _follow_system(self) -> None:
        if self.choice is ThemeChoice.SYSTEM:
            self.use()


@cache
def _take_fusion() -> None:
    """Set Qt's Fusion style, once, since that restyles every widget."""
    QApplication.setStyle("Fusion")


def theme_of_system(scheme: Qt.ColorScheme, contrast: Qt.ContrastPreference) -> Theme:
    """Return the theme for the system's settings; high contrast takes priority."""
    if contrast is Qt.ContrastPreference.HighContrast:
        return CONTRAST
    return DARK if scheme is Qt.ColorScheme.Dark else LIGHT


_THEMES = {ThemeChoice.LIGHT: LIGHT, ThemeChoice.DARK: DARK, ThemeChoice.CONTRAST: CONTRAST}


def _palette(theme: Theme) -> QPalette:
    """Return the palette of roles that the style sheet can't set."""
    palette = QPalette()
    for role, colour in (
        (QPalette.ColorRole.Window, theme.window),
        (QPalette.ColorRole.WindowText, theme.text),
        (QPalette.ColorRole.Base, theme.window),
        (QPalette.ColorRole.AlternateBase, theme.surface),
        (QPalette.ColorRole.Text, theme.text),
        (QPalette.ColorRole.Button, theme.raised),
        (QPalette.ColorRole.ButtonText, theme.text),
        (QPalette.ColorRole.Highlight, theme.selection),
        (QPalette.ColorRole.HighlightedText, theme.text),
        (QPalette.ColorRole.Link, theme.link),
        (QPalette.ColorRole.PlaceholderText, theme.muted),
        (QPalette.ColorRole.ToolTipBase, theme.raised),
        (QPalette.ColorRole.ToolTipText, theme.text),
    ):
        palette.setColor(role, QColor(colour))
    for role in (
        QPalette.ColorRole.WindowText,
        QPalette.ColorRole.Text,
        QPalette.ColorRole.ButtonText,
    ):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(theme.disabled))
    return palette


def render_stylesheet(template: str, theme: Theme, scale: FontScale, icons: Path) -> str:
    """Fill a style sheet.

    Args:
        template: Qt style sheet with `$name` for colours and `em(1.5)` for lengths.
        theme: Colours; every field that holds a colour can be named.
        scale: Size of the text, to which lengths are relative.
        icons: Folder of the pictures that it names.

    Raises:
        KeyError: The template names something that the theme doesn't have.
    """
    named = {field.name: getattr(theme, field.name) for field in fields(theme)}
    colours = {name: colour for name, colour in named.items() if isinstance(colour, str)}
    filled = Template(template).substitute(
        colours,
        text_family=scale.family,
        code_family=CODE_FAMILY,
        chevron=(icons / "chevron.svg").as_posix(),
        chevron_up=(icons / "chevron-up.svg").as_posix(),
        check=(icons / f"tick-{theme.name}.svg").as_posix(),
        info=(icons / f"dialog-info-{theme.name}.svg").as_posix(),
        question=(icons / f"dialog-question-{theme.name}.svg").as_posix(),
        warning=(icons / f"dialog-warning-{theme.name}.svg").as_posix(),
    )
    return _EM.sub(lambda match: f"{scale.px(float(match.group(1)))}px", filled)
