"""Makes all pictures of the documents: the tour's, a terminal's, and that of the first start.

python -m tests.tools.pictures [--models DIR] [--program DIR] [--into docs/images]

Take them on a quiet machine: they show speeds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QImage

from app.theme.appearance import ThemeChoice
from medusa_core.system.resources import first_model_file
from tests.tools.tour import STORY, Tour, take_tour

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
# Screens that documents show in both themes.
SHOWN = (
    *("empty", "answer", "panel", "tree-panel", "steps-panel", "equilibrium-panel", "compare"),
    *("models-discover", "server"),
)
THEMES = (ThemeChoice.LIGHT, ThemeChoice.DARK)
# Narrower than the window opens, so that its text can be read on a page.
WIDTH, HEIGHT = 1000, 720
HEIGHT_WITH_PANELS = 1080
NUM_COLOURS = 256
_AT_ONCE = 512  # colours whose nearest ones are looked for together

Colours = npt.NDArray[np.int32]  # [colours, 3]


class DocumentsTour(Tour):
    """The screens that documents show."""

    async def _visit(self) -> None:
        self._app.window.resize(WIDTH, HEIGHT)
        await self._begin()
        await self._ask(STORY, "answer")
        await self._show_panel()
        self._app.window.resize(WIDTH, HEIGHT_WITH_PANELS)
        await self._visit_insight()
        (await self._show_models()).close()
        await self._visit_server()


def main() -> int:
    """Make them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.pictures", description=__doc__)
    parser.add_argument(
        "--models",
        type=Path,
        metavar="DIR",
        help="holds the model of the first start (default: where the installer puts it)",
    )
    parser.add_argument(
        "--program",
        type=Path,
        metavar="DIR",
        help="a package's folder, of whose first start a picture is taken (default: none is)",
    )
    parser.add_argument("--into", type=Path, default=IMAGES, metavar="DIR")
    chosen = parser.parse_args()
    if chosen.models is not None:
        os.environ["MEDUSA_MODELS"] = str(chosen.models.absolute())
    model = first_model_file()
    if model is None:
        sys.stderr.write("The model of the first start isn't here; name its folder by --models.\n")
        return 1
    chosen.into.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="pictures-") as folder:
        for taken in _taken(Path(folder), model, chosen.program):
            made = chosen.into / taken.name
            shrunk(QImage(str(taken))).save(str(made))
            sys.stdout.write(f"{made.name}: {made.stat().st_size:,} bytes\n")
    return 0


def _taken(folder: Path, model: Path, program: Path | None) -> Iterator[Path]:
    """Pictures as their tools take them."""
    if program is not None:
        yield _made_by("first_start_picture", program, folder / "first-start.png")
    if take_tour(DocumentsTour, folder, THEMES, language="en", platform="offscreen"):
        raise SystemExit(1)  # the tour has said why
    for screen in SHOWN:
        for theme in THEMES:
            yield folder / f"{screen}-{theme.value}.png"
    yield _made_by("terminal_picture", model, folder / "terminal.png")


def _made_by(tool: str, of: Path, picture: Path) -> Path:
    """Return a picture that a tool takes in a separate process."""
    subprocess.run([sys.executable, "-m", f"tests.tools.{tool}", str(of), str(picture)], check=True)
    return picture


def shrunk(picture: QImage, num_colours: int = NUM_COLOURS) -> QImage:
    """Return the picture in its most frequent colours, others mapped to the nearest of them.

    A window has few colours. Qt's own reduction takes a fixed palette, and dots.
    """
    plain = picture.convertToFormat(QImage.Format.Format_RGB32)
    width, height = plain.width(), plain.height()
    pixels = np.frombuffer(plain.constBits(), np.uint32).reshape(height, -1)[:, :width]
    found, place, count = np.unique(pixels, return_inverse=True, return_counts=True)
    palette = found[np.argsort(-count, kind="stable")[:num_colours]]
    nearest = _nearest(_channels(found), _channels(palette))
    out = QImage(width, height, QImage.Format.Format_Indexed8)
    out.setColorTable([int(colour) for colour in palette])
    rows = np.frombuffer(out.bits(), np.uint8).reshape(height, -1)
    rows[:, :width] = nearest[place.reshape(height, width)]
    return out


def _channels(colours: npt.NDArray[np.uint32]) -> Colours:
    return np.stack([colours >> 16 & 255, colours >> 8 & 255, colours & 255], -1).astype(np.int32)


def _nearest(colours: Colours, palette: Colours) -> npt.NDArray[np.uint8]:
    """Return the palette index of the nearest colour for each colour. [colours]"""
    parts = [
        ((colours[at : at + _AT_ONCE, None] - palette) ** 2).sum(-1).argmin(1)
        for at in range(0, len(colours), _AT_ONCE)
    ]
    return np.concatenate(parts).astype(np.uint8)


if __name__ == "__main__":
    sys.exit(main())
