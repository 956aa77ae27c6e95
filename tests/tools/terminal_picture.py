"""Leads a chat with a real model at a terminal, and takes its picture.

python -m tests.tools.terminal_picture MODEL OUT.png [--text OUT.txt]
"""

from __future__ import annotations

import argparse
import os
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from prompt_toolkit.utils import get_cwidth
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QGuiApplication, QImage, QPainter

from app.theme.fonts import CODE_FAMILY, load_fonts
from medusa_core.system.resources import resources_dir
from tests.support.terminal.typing_at import READY, Typist

LINES, COLUMNS = 40, 88
LOAD_S = 600.0
PROMPT = "Write three sentences about a lighthouse and its keeper."
FONT_PIXELS, MARGIN = 15, 14
BACKGROUND, TEXT = "#16181d", "#d7dae0"
COLOURS = {31: "#f07178", 32: "#8fce7e", 33: "#e5c07b", 34: "#7aa2f7", 35: "#c792ea", 36: "#67c9d6"}
GREY = "#7c828d"
SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[=>]")


@dataclass(frozen=True, slots=True)
class Look:
    """Attributes of a character.

    Attributes:
        colour: Its colour's name.
        is_underlined: Whether it is.
    """

    colour: str = TEXT
    is_underlined: bool = False


class Paper:
    """Screen of a terminal that doesn't scroll.

    Attributes:
        lines: By row and column: a character and its look.
    """

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._row = self._column = 0
        self._look = Look()
        self.lines: dict[int, dict[int, tuple[str, Look]]] = defaultdict(dict)

    def take(self, output: str) -> None:
        """Write what a program has sent."""
        at = 0
        for found in SEQUENCE.finditer(output):
            self._write(output[at : found.start()])
            self._obey(found[1] or "", found[2] or "")
            at = found.end()
        self._write(output[at:])

    def text(self) -> str:
        """Return the text without attributes."""
        rows = range(max(self.lines, default=0) + 1)
        return "\n".join(self._row_text(row) for row in rows)

    def _row_text(self, row: int) -> str:
        text, end = "", 0
        for place, (char, _) in sorted(self.lines[row].items()):
            text += " " * (place - end) + char
            end = place + get_cwidth(char)
        return text.rstrip()

    def _write(self, text: str) -> None:
        for char in text:
            match char:
                case "\r":
                    self._column = 0
                case "\n":
                    self._row += 1
                case "\b":
                    self._column -= 1
                case _:
                    width = get_cwidth(char)
                    if self._column + width > self._columns:
                        self._row, self._column = self._row + 1, 0
                    self.lines[self._row][self._column] = (char, self._look)
                    self._column += width

    def _obey(self, values: str, command: str) -> None:
        count = int(values) if values.isdecimal() and values != "0" else 1
        match command:
            case "m":
                for value in map(int, filter(None, values.split(";") or ["0"])):
                    self._restyle(value)
                if not values:
                    self._look = Look()
            case "A":
                self._row -= count
            case "C":
                self._column += count
            case "D":
                self._column -= count
            case "G":
                self._column = count - 1
            case "K" | "J":
                row = self.lines[self._row]
                for place in [place for place in row if place >= self._column]:
                    del row[place]
                if command == "J":
                    for below in [one for one in self.lines if one > self._row]:
                        del self.lines[below]

    def _restyle(self, value: int) -> None:
        if value == 0:
            self._look = Look()
        elif value == 4:
            self._look = replace(self._look, is_underlined=True)
        elif value in (2, 90):
            self._look = replace(self._look, colour=GREY)
        elif value in COLOURS:
            self._look = replace(self._look, colour=COLOURS[value])


def painted(paper: Paper) -> QImage:
    """The picture of a terminal."""
    font = QFont(CODE_FAMILY)
    font.setPixelSize(FONT_PIXELS)
    metrics = QFontMetricsF(font)
    width, height = metrics.horizontalAdvance("m"), round(metrics.height() * 1.1)
    num_rows = len(paper.text().splitlines())
    size = (round(width * COLUMNS) + 2 * MARGIN, height * num_rows + 2 * MARGIN)
    image = QImage(*size, QImage.Format.Format_RGB32)
    image.fill(QColor(BACKGROUND))
    painter = QPainter(image)
    for row, cells in paper.lines.items():
        for column, (char, look) in cells.items():
            font.setUnderline(look.is_underlined)
            painter.setFont(font)
            painter.setPen(QColor(look.colour))
            place = QRectF(MARGIN + column * width, MARGIN + row * height, width + 1, height)
            painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextDontClip, char)
    painter.end()
    return image


def led(model: str) -> Paper:
    """A chat: a question, its figures and its tree."""
    settings = (("seed", "3"), ("max_new_tokens", "80"), ("tree_rows", "10"))
    options = [word for name, value in settings for word in ("--set", name, value)]
    with TemporaryDirectory() as folder:
        command = ("run", model, *options, "--no-learned", "--data-dir", folder)
        chat = Typist(*command, size=(LINES, COLUMNS))
        try:
            chat.wait_for(READY, LOAD_S)
            for line in (PROMPT, "/stats", "/tree", "/save lighthouse"):
                chat.ask(line)
            chat.ask("/bye", "")
            chat.end()
        finally:
            chat.close()
        name = Path(model).name
        paper = Paper(COLUMNS)
        paper.take(f"$ medusa run {name}\r\n" + chat.seen)
        return paper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("out", type=Path)
    parser.add_argument("--text", type=Path)
    args = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    qt = QGuiApplication([])
    load_fonts(resources_dir() / "fonts")
    paper = led(args.model)
    painted(paper).save(str(args.out))
    if args.text:
        args.text.write_text(paper.text() + "\n", encoding="utf-8")
    qt.quit()


if __name__ == "__main__":
    main()
