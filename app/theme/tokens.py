"""The colours of the themes.

The first colours of marks come from the palette of Okabe and Ito, which people with the common
forms of colour blindness can tell apart; a mark is always a tint and an underline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtGui import QColor


@dataclass(frozen=True, slots=True)
class MarkColour:
    """Colours of a mark, such as that of a head's tokens.

    Attributes:
        tint: Background behind the text, as "#rrggbb".
        line: Underline, bar and swatch, as "#rrggbb"; at least 3:1 against the window.
    """

    tint: str
    line: str


@dataclass(frozen=True, slots=True)
class Theme:
    """Every colour that the window uses, as "#rrggbb".

    Attributes:
        name: `light`, `dark` or `contrast`.
        window: Background of the window.
        surface: Header, strip and composer.
        raised: Buttons and pickers.
        hover: Their colour under the mouse.
        border: Hairlines around them.
        text: Main text.
        muted: Secondary text; at least 4.5:1.
        disabled: Text of disabled controls; distinct from both, and still visible.
        accent: Colour of primary actions.
        accent_hover: Their colour under the mouse.
        on_accent: Text and icons on it.
        bubble: Background of the user's messages.
        code: Background of code.
        link: Links in answers.
        agreed: Accepted tokens of any drafter.
        danger: Line and icon of an error.
        danger_surface: Background of an error.
        selection: Background of selected text.
        target_bar: Bars of tokens that the target chose itself.
        code_keyword: Keywords in code; readable on every tint, like the other colours of code.
        code_string: Strings in code.
        code_comment: Comments in code.
        code_number: Numbers in code.
        code_name: Names that code defines.
        palette: Colours of marks and curves, by the names that sources declare.
    """

    name: str
    window: str
    surface: str
    raised: str
    hover: str
    border: str
    text: str
    muted: str
    disabled: str
    accent: str
    accent_hover: str
    on_accent: str
    bubble: str
    code: str
    link: str
    agreed: MarkColour
    danger: str
    danger_surface: str
    selection: str
    target_bar: str
    code_keyword: str
    code_string: str
    code_comment: str
    code_number: str
    code_name: str
    palette: Mapping[str, MarkColour]

    @property
    def is_dark(self) -> bool:
        """Whether text is lighter than the window."""
        return contrast(self.text, "#000000") > contrast(self.text, "#ffffff")

    def series(self, number: int) -> MarkColour:
        """Return the colour of a series by its number."""
        colours = tuple(self.palette.values())
        return colours[(number - 1) % len(colours)]

    def mark(self, colour: str) -> MarkColour:
        """Return the colour with a name; the first for an unknown name."""
        return self.palette.get(colour) or self.series(1)


LIGHT = Theme(
    name="light",
    window="#fbfbfa",
    surface="#ffffff",
    raised="#f3f3f1",
    hover="#e9e9e6",
    border="#dededa",
    text="#1d1e20",
    muted="#62656b",
    disabled="#a0a3a8",
    accent="#1f5f8b",
    accent_hover="#184d72",
    on_accent="#ffffff",
    bubble="#eef1f4",
    code="#f2f2ef",
    link="#155d92",
    agreed=MarkColour("#dcefd6", "#33802c"),
    danger="#b3361e",
    danger_surface="#fcf0ed",
    selection="#c3ddf0",
    target_bar="#c4c5c2",
    code_keyword="#7a3a8f",
    code_string="#2f6412",
    code_comment="#5c5f65",
    code_number="#8c4408",
    code_name="#0d5383",
    palette={
        "blue": MarkColour("#d9ebf8", "#0072b2"),
        "amber": MarkColour("#fbe8c4", "#b37400"),
        "green": MarkColour("#d3f0e6", "#008a65"),
        "pink": MarkColour("#f6e0ed", "#b85c91"),
        "vermilion": MarkColour("#fae0d2", "#c65600"),
        "grey": MarkColour("#e6e5df", "#55585d"),
        "violet": MarkColour("#e8e2f4", "#6a55a0"),
        "teal": MarkColour("#d2eff2", "#00798a"),
        "brown": MarkColour("#ece2d8", "#8a5a2b"),
        "olive": MarkColour("#ecedcb", "#6c7000"),
        "magenta": MarkColour("#f9def9", "#b000b8"),
        "indigo": MarkColour("#dfe1fb", "#2b2fb0"),
        "steel": MarkColour("#dfe8f0", "#114574"),
        "lime": MarkColour("#e2f2d0", "#2f7a12"),
    },
)

DARK = Theme(
    name="dark",
    window="#17181a",
    surface="#1e1f22",
    raised="#2a2c2f",
    hover="#35373b",
    border="#36383c",
    text="#e8e8e5",
    muted="#a2a5ab",
    disabled="#6a6d73",
    accent="#6cb4e4",
    accent_hover="#8cc6ed",
    on_accent="#0d1c27",
    bubble="#26292d",
    code="#232528",
    link="#7cc0ee",
    agreed=MarkColour("#1f3a1b", "#7fc775"),
    danger="#f0886f",
    danger_surface="#33211d",
    selection="#2f4f68",
    target_bar="#55585d",
    code_keyword="#d3a8e6",
    code_string="#b0d68c",
    code_comment="#adb0b6",
    code_number="#f0b684",
    code_name="#8fcbf2",
    palette={
        "blue": MarkColour("#16384f", "#56b4e9"),
        "amber": MarkColour("#44330d", "#e69f00"),
        "green": MarkColour("#0f3d30", "#1fbf91"),
        "pink": MarkColour("#44283a", "#d98bb6"),
        "vermilion": MarkColour("#4a2813", "#ee7c33"),
        "grey": MarkColour("#393b40", "#b9bcc2"),
        "violet": MarkColour("#332b47", "#b7a3e3"),
        "teal": MarkColour("#0f3a40", "#3fc1d4"),
        "brown": MarkColour("#3d2f22", "#d0a070"),
        "olive": MarkColour("#34361a", "#bdc352"),
        "magenta": MarkColour("#3f1b44", "#f06cf5"),
        "indigo": MarkColour("#262950", "#7f8cff"),
        "steel": MarkColour("#1c2d3b", "#417c9a"),
        "lime": MarkColour("#233a14", "#7ef04a"),
    },
)


CONTRAST = Theme(
    name="contrast",
    window="#000000",
    surface="#000000",
    raised="#111111",
    hover="#2b2b2b",
    border="#d0d0d0",
    text="#ffffff",
    muted="#e0e0e0",
    disabled="#8c8c8c",
    accent="#ffd83d",
    accent_hover="#ffe98a",
    on_accent="#000000",
    bubble="#1a1a1a",
    code="#0d0d0d",
    link="#8ad0ff",
    agreed=MarkColour("#0d2b0a", "#7dff70"),
    danger="#ffa394",
    danger_surface="#240a05",
    selection="#264a66",
    target_bar="#a8a8a8",
    code_keyword="#ecc4ff",
    code_string="#c6f59a",
    code_comment="#d8d8d8",
    code_number="#ffd0a0",
    code_name="#b4e0ff",
    palette={
        "blue": MarkColour("#00263d", "#6ec8ff"),
        "amber": MarkColour("#332500", "#ffb92e"),
        "green": MarkColour("#002e22", "#35e0b0"),
        "pink": MarkColour("#3a1730", "#ffa8dc"),
        "vermilion": MarkColour("#3b1a05", "#ff9a5c"),
        "grey": MarkColour("#2c2c2c", "#dcdcdc"),
        "violet": MarkColour("#271d42", "#cdbbff"),
        "teal": MarkColour("#00292e", "#5ee0f0"),
        "brown": MarkColour("#302010", "#eac08c"),
        "olive": MarkColour("#26280a", "#e0e67c"),
        "magenta": MarkColour("#300a33", "#ff8cff"),
        "indigo": MarkColour("#14163d", "#97a3ff"),
        "steel": MarkColour("#0b1d2b", "#72b0d2"),
        "lime": MarkColour("#122b05", "#7dff4a"),
    },
)


def relative_luminance(colour: str) -> float:
    """Luminance of a "#rrggbb" colour, 0 (black) to 1 (white).

    Source: WCAG 2.2, definition of relative luminance.
    """
    rgb = QColor(colour)
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (rgb.redF(), rgb.greenF(), rgb.blueF())
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two "#rrggbb" colours, 1 to 21.

    Source: WCAG 2.2, definition of contrast ratio.
    """
    lighter, darker = sorted((relative_luminance(first), relative_luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)
