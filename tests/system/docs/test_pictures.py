"""Pictures of the documents are made small, and look as they were."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QImage

from docs.pages import ROOT, site_files
from tests.tools.pictures import NUM_COLOURS, SHOWN, THEMES, shrunk


def painted(colour_at: dict[tuple[int, int], QColor], width: int, height: int) -> QImage:
    picture = QImage(width, height, QImage.Format.Format_RGB32)
    picture.fill(QColor("white"))
    for (x, y), colour in colour_at.items():
        picture.setPixelColor(x, y, colour)
    return picture


def test_few_colours_stay_as_they_are() -> None:
    spots = {(0, 0): QColor(31, 95, 139), (6, 2): QColor(224, 160, 32)}  # rows of 7: padded
    made = shrunk(painted(spots, 7, 3))
    assert made.format() == QImage.Format.Format_Indexed8
    assert (made.width(), made.height()) == (7, 3)
    assert {place: made.pixelColor(*place) for place in spots} == spots
    assert made.pixelColor(3, 1) == QColor("white")


@pytest.mark.parametrize("num_colours", [4, NUM_COLOURS])
def test_rare_colours_become_the_nearest_of_the_frequent(num_colours: int) -> None:
    greys = {(x, y): QColor(x, x, x) for x in range(0, 256, 64) for y in range(9)}
    odd = {(200, 0): QColor(66, 63, 64)}
    made = shrunk(painted(greys | odd, 256, 9), num_colours)
    assert made.colorCount() <= num_colours
    assert made.pixelColor(200, 0) == (QColor(64, 64, 64) if num_colours == 4 else odd[200, 0])


def test_every_screen_that_documents_show_is_there_in_both_themes() -> None:
    taken = {f"docs/images/{screen}-{theme.value}.png" for screen in SHOWN for theme in THEMES}
    others = {"docs/images/terminal.png", "docs/images/first-start.png"}
    there = {path for path in site_files() if path.endswith(".png")}
    assert there == taken | others
    assert all((ROOT / path).stat().st_size > 5000 for path in there)
