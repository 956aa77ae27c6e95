"""The style sheet: a template filled with the colours of a theme and lengths in font units."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from string import Template

from app.theme.fonts import CODE_FAMILY, FontScale
from app.theme.tokens import Theme

EM = re.compile(r"em\(([0-9.]+)\)")


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
    return EM.sub(lambda match: f"{scale.px(float(match.group(1)))}px", filled)
