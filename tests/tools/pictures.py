"""Makes all pictures of the documents: the tour's, and that of a terminal.

python -m tests.tools.pictures [--models DIR] [--into docs/images]

DIR holds the model of the first start as the installer lays it, by default the installer's own.
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

from medusa_core.system.resources import first_model_file

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
# The screens of the tour that documents show.
SHOWN = (
    *("empty", "answer", "tree", "steps", "equilibrium", "compare"),
    *("panel", "models-discover", "server"),
)
THEMES = ("light", "dark")
NUM_COLOURS = 256
_AT_ONCE = 512  # colours whose nearest ones are looked for together

Colours = npt.NDArray[np.int32]  # [colours, 3]


def main() -> int:
    """Make them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.pictures", description=__doc__)
    parser.add_argument("--models", type=Path, metavar="DIR", help="sets MEDUSA_MODELS")
    parser.add_argument("--into", type=Path, default=IMAGES, metavar="DIR")
    chosen = parser.parse_args()
    if chosen.models is not None:
        os.environ["MEDUSA_MODELS"] = str(chosen.models.absolute())
    model = first_model_file()
    if model is None:
        sys.stderr.write("The model of the first start isn't here; name its folder by --models.\n")
        return 1
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    chosen.into.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="pictures-") as folder:
        for taken in _taken(Path(folder), model):
            made = chosen.into / taken.name
            shrunk(QImage(str(taken))).save(str(made))
            sys.stdout.write(f"{made.name}: {made.stat().st_size:,} bytes\n")
    return 0


def _taken(folder: Path, model: Path) -> Iterator[Path]:
    """Pictures as their tools take them."""
    _run("tests.tools.tour", str(folder))
    for screen in SHOWN:
        for theme in THEMES:
            yield folder / f"{screen}-{theme}.png"
    terminal = folder / "terminal.png"
    _run("tests.tools.terminal_picture", str(model), str(terminal))
    yield terminal


def _run(tool: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", tool, *arguments], check=True)


def shrunk(picture: QImage, num_colours: int = NUM_COLOURS) -> QImage:
    """The picture in its most frequent colours; others become the nearest of them.

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
    """For each colour the place of the nearest one in the palette: [colours]."""
    parts = [
        ((colours[at : at + _AT_ONCE, None] - palette) ** 2).sum(-1).argmin(1)
        for at in range(0, len(colours), _AT_ONCE)
    ]
    return np.concatenate(parts).astype(np.uint8)


if __name__ == "__main__":
    sys.exit(main())
