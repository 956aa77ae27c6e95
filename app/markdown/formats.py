"""Qt formats of blocks and characters."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QTextBlockFormat,
    QTextCharFormat,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextListFormat,
    QTextTableFormat,
)

from app.markdown.model import UNKNOWN_CITATION, Marker, Paragraph, Place, TextStyle
from app.markdown.spans import Span
from app.theme.legend import Mark
from app.theme.text_style import (
    ACCEPTED,
    Ink,
    Marking,
    MarkStyle,
)

# Properties of the frame around code: its language, and the height of the header above it.
CODE_LANGUAGE = QTextFormat.Property.UserProperty.value + 1
CODE_HEADER_PX = CODE_LANGUAGE + 1
_CODE_HEADER_EM = 1.7
_HEADING_SCALES = (1.5, 1.3, 1.15, 1.05, 1.0, 1.0)
_BULLETS = (
    QTextListFormat.Style.ListDisc,
    QTextListFormat.Style.ListCircle,
    QTextListFormat.Style.ListSquare,
)
_ALIGNMENTS = {
    "left": Qt.AlignmentFlag.AlignLeft,
    "center": Qt.AlignmentFlag.AlignHCenter,
    "right": Qt.AlignmentFlag.AlignRight,
}


_SCRIPTS = TextStyle.SUBSCRIPT | TextStyle.SUPERSCRIPT
_Vertical = QTextCharFormat.VerticalAlignment
_Lines = QTextCharFormat.UnderlineStyle
_UNDERLINES = {
    "dash": _Lines.DashUnderline,
    "dot": _Lines.DotLine,
    "dash-dot": _Lines.DashDotLine,
    "wave": _Lines.WaveUnderline,
}


class LineLook(NamedTuple):
    """Properties that all characters of a line share.

    Attributes:
        level: Heading level; 0 for none.
        is_code: Whether it is a line of a code block.
        is_header: Whether it is a cell of a table's header.
        is_quoted: Whether it is in a quotation.
    """

    level: int = 0
    is_code: bool = False
    is_header: bool = False
    is_quoted: bool = False


class Formats:
    """Creates and caches the formats of a style.

    Args:
        style: Colours and fonts.
    """

    def __init__(self, style: MarkStyle) -> None:
        self._style = style
        self._unit_px = style.text_size_pt * 96 / 72
        self.indent_px = round(1.7 * self._unit_px)
        self._of_chars = lru_cache(maxsize=512)(self._make_chars)

    def chars(self, span: Span, look: LineLook) -> QTextCharFormat:
        """Format of a span's characters."""
        mark = span.mark if self._style.marking is not Marking.OFF else None
        if mark and self._style.marking is Marking.ACCEPTED:
            mark = ACCEPTED
        return self._of_chars(span.style, span.href, span.ink, mark, look)

    def line(self, look: LineLook) -> QTextCharFormat:
        """Format of an empty line, which sets its height."""
        return self._of_chars(TextStyle.PLAIN, "", Ink.PLAIN, None, look)

    def _make_chars(
        self, style: TextStyle, href: str, ink: Ink, mark: Mark | None, look: LineLook
    ) -> QTextCharFormat:
        fmt = QTextCharFormat()
        self._set_font(fmt, style, look)
        fmt.setForeground(QColor(self._foreground(style, href, ink, look)))
        if style & TextStyle.CODE and not look.is_code:
            fmt.setBackground(QColor(self._style.code_background))
        if style & TextStyle.STRIKE or href.startswith(UNKNOWN_CITATION):
            fmt.setFontStrikeOut(True)
        if style & _SCRIPTS:
            is_sub = style & TextStyle.SUBSCRIPT
            fmt.setVerticalAlignment(
                _Vertical.AlignSubScript if is_sub else _Vertical.AlignSuperScript
            )
        if href:
            fmt.setAnchor(True)
            fmt.setAnchorHref(href)
        if mark is not None:
            fmt.setBackground(QColor(self._style.tint(mark)))
            line = _UNDERLINES.get(self._style.line(mark), _Lines.SingleUnderline)
            fmt.setUnderlineStyle(line)
            fmt.setUnderlineColor(QColor(self._style.underline(mark)))
        return fmt

    def _set_font(self, fmt: QTextCharFormat, style: TextStyle, look: LineLook) -> None:
        is_mono = look.is_code or style & TextStyle.CODE
        families = self._style.mono_families if is_mono else self._style.text_families
        size_pt = self._style.mono_size_pt if is_mono else self._style.text_size_pt
        scale = _HEADING_SCALES[look.level - 1] if look.level else 1.0
        fmt.setFontFamilies(list(families))
        fmt.setFontPointSize(size_pt * scale)
        is_strong = style & TextStyle.STRONG or look.level or look.is_header
        fmt.setFontWeight(QFont.Weight.DemiBold if is_strong else QFont.Weight.Normal)
        fmt.setFontItalic(bool(style & (TextStyle.EMPHASIS | TextStyle.IMAGE)))

    def _foreground(self, style: TextStyle, href: str, ink: Ink, look: LineLook) -> str:
        if href and not href.startswith(UNKNOWN_CITATION):
            return self._style.link
        if href or style & TextStyle.IMAGE or (look.is_quoted and not look.is_code):
            return self._style.muted
        return self._style.ink(ink)

    def paragraph(self, block: Paragraph, *, is_first: bool) -> QTextBlockFormat:
        """Format of a paragraph or heading; the first one of an answer has no space above."""
        place = block.place
        fmt = self._block(place)
        # The marker's own format indents an item.
        fmt.setIndent(0 if place.marker is not None else place.list_depth)
        gap = 0.9 if block.level else 0.25 if place.list_depth else 0.6
        fmt.setTopMargin(0 if is_first or block.goes_on else gap * self._unit_px)
        fmt.setHeadingLevel(block.level)
        return fmt

    def rule(self, place: Place) -> QTextBlockFormat:
        """Format of the empty block that shows a horizontal line."""
        fmt = self._block(place)
        fmt.setIndent(place.list_depth)
        fmt.setTopMargin(0.4 * self._unit_px)
        fmt.setBottomMargin(0.4 * self._unit_px)
        # Qt draws the line in this colour.
        fmt.setBackground(QColor(self._style.rule))
        fmt.setProperty(
            QTextFormat.Property.BlockTrailingHorizontalRulerWidth,
            QTextLength(QTextLength.Type.PercentageLength, 100),
        )
        return fmt

    def _block(self, place: Place) -> QTextBlockFormat:
        fmt = QTextBlockFormat()
        fmt.setLineHeight(125, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        if place.quote_depth:
            fmt.setLeftMargin(place.quote_depth * self._unit_px)
            fmt.setProperty(QTextFormat.Property.BlockQuoteLevel, place.quote_depth)
        return fmt

    def marker(self, marker: Marker, place: Place) -> QTextListFormat:
        """Format of a list of one item: each item knows its number."""
        fmt = QTextListFormat()
        fmt.setIndent(place.list_depth)
        if marker.ordered:
            fmt.setStyle(QTextListFormat.Style.ListDecimal)
            fmt.setStart(marker.number)
            fmt.setNumberSuffix(marker.delimiter)
        else:
            fmt.setStyle(_BULLETS[(place.list_depth - 1) % len(_BULLETS)])
        return fmt

    def spacer(self) -> QTextBlockFormat:
        """Format of the minimal block that Qt requires around frames and tables."""
        fmt = QTextBlockFormat()
        fmt.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        return fmt

    def code_frame(self, place: Place, language: str) -> QTextFrameFormat:
        """Format of the frame around code; it stores the language for the code's header."""
        fmt = QTextFrameFormat()
        fmt.setProperty(CODE_LANGUAGE, language)
        fmt.setProperty(QTextFormat.Property.BlockQuoteLevel, place.quote_depth)
        fmt.setBackground(QBrush(QColor(self._style.code_background)))
        fmt.setPadding(0.6 * self._unit_px)
        fmt.setProperty(CODE_HEADER_PX, _CODE_HEADER_EM * self._unit_px)
        fmt.setTopMargin((0.5 + _CODE_HEADER_EM) * self._unit_px)
        fmt.setBottomMargin(0.5 * self._unit_px)
        fmt.setLeftMargin(self._left_px(place))
        return fmt

    def code_line(self) -> QTextBlockFormat:
        """Format of a line of code, which is always left-to-right."""
        fmt = QTextBlockFormat()
        fmt.setLineHeight(120, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        fmt.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        return fmt

    def table(self, place: Place, *, is_rtl: bool) -> QTextTableFormat:
        """Format of a table; right-to-left ones are right-aligned."""
        fmt = QTextTableFormat()
        if is_rtl:
            fmt.setAlignment(Qt.AlignmentFlag.AlignRight)
        fmt.setProperty(QTextFormat.Property.BlockQuoteLevel, place.quote_depth)
        fmt.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        fmt.setBorder(1)
        fmt.setBorderBrush(QBrush(QColor(self._style.rule)))
        fmt.setBorderCollapse(True)
        fmt.setCellPadding(0.35 * self._unit_px)
        fmt.setCellSpacing(0)
        fmt.setTopMargin(0.5 * self._unit_px)
        fmt.setBottomMargin(0.5 * self._unit_px)
        fmt.setLeftMargin(self._left_px(place))
        fmt.setHeaderRowCount(1)
        return fmt

    def cell(self, alignment: str) -> QTextBlockFormat:
        """Format of a cell's only block."""
        fmt = QTextBlockFormat()
        if alignment:
            fmt.setAlignment(_ALIGNMENTS[alignment])
        return fmt

    def _left_px(self, place: Place) -> float:
        return place.list_depth * self.indent_px + place.quote_depth * self._unit_px
