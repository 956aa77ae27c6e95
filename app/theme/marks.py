"""Style of an answer's text, from the theme."""

from __future__ import annotations

from app.theme.fonts import CODE_FAMILY, FontScale
from app.theme.legend import Legend
from app.theme.text_style import (
    CodeInks,
    Marking,
    MarkStyle,
)
from app.theme.tokens import Theme

# JetBrains Mono looks larger than Inter at the same size.
CODE_SIZE = 0.93


def mark_style(
    theme: Theme, scale: FontScale, legend: Legend, marking: Marking = Marking.HEADS
) -> MarkStyle:
    """Return the style of answers for a theme, a zoom and the marks of a legend."""
    return MarkStyle(
        text=theme.text,
        muted=theme.muted,
        link=theme.link,
        rule=theme.border,
        code_background=theme.code,
        palette={name: (mark.tint, mark.line) for name, mark in theme.palette.items()},
        legend=legend,
        inks=CodeInks(
            keyword=theme.code_keyword,
            string=theme.code_string,
            comment=theme.code_comment,
            number=theme.code_number,
            name=theme.code_name,
        ),
        text_families=(scale.family, "sans-serif"),
        mono_families=(CODE_FAMILY, "monospace"),
        text_size_pt=scale.point_size,
        mono_size_pt=scale.point_size * CODE_SIZE,
        marking=marking,
    )
