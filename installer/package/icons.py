"""The application's icon in the forms that systems want: PNG, ICO (Windows), ICNS (macOS)."""

import struct
from pathlib import Path

from installer.package.format import Job
from installer.package.tools import tool
from installer.process import run_checked

ICO_SIZES = (16, 20, 24, 32, 40, 48, 64, 128, 256)
# What Apple calls each picture, and its width in pixels. Some are others at two pixels a point.
ICNS_TYPES = {
    "icp4": 16,
    "icp5": 32,
    "ic07": 128,
    "ic08": 256,
    "ic09": 512,
    "ic10": 1024,
    "ic11": 32,
    "ic12": 64,
    "ic13": 256,
    "ic14": 512,
}
BANNER_SIZE = (164, 314)  # of the pictures beside the first and the last page of NSIS's installers
# Draws argv[1] once for each size after argv[2], which is the folder of the pictures.
_DRAW = """
import sys
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
drawing = QSvgRenderer(sys.argv[1])
assert drawing.isValid(), sys.argv[1]
for size in map(int, sys.argv[3:]):
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    drawing.render(painter)
    painter.end()
    assert image.save(f"{sys.argv[2]}/{size}.png")
"""
# Draws argv[1] in the upper part of a banner of argv[3] by argv[4] pixels: argv[2], a BMP file.
_DRAW_BANNER = """
import sys
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
width, height = int(sys.argv[3]), int(sys.argv[4])
image = QImage(width, height, QImage.Format.Format_RGB888)
image.fill(QColor("#1f5f8b"))  # of the icon, whose edge is not to be seen
painter = QPainter(image)
painter.setRenderHint(QPainter.RenderHint.Antialiasing)
place = QRectF(width * 0.1, width * 0.2, width * 0.8, width * 0.8)
QSvgRenderer(sys.argv[1]).render(painter, place)
painter.end()
assert image.save(sys.argv[2])
"""


def draw_pictures(job: Job, sizes: tuple[int, ...]) -> dict[int, bytes]:
    """Draw the icon.

    Args:
        job: its work folder gets the pictures.
        sizes: widths in pixels.

    Returns:
        A PNG file of each width.

    Raises:
        SetupError: PySide6, which draws it, is missing and can't be fetched, or fails.
    """
    folder = job.work / "pictures"
    folder.mkdir(exist_ok=True)
    wanted = sorted(set(sizes))
    _draw(job, _DRAW, str(folder), *map(str, wanted))
    return {size: (folder / f"{size}.png").read_bytes() for size in wanted}


def draw_banner(job: Job) -> Path:
    """Draw the picture of NSIS's first and last page; returns a BMP file in the work folder.

    Raises:
        SetupError: as `draw_pictures`.
    """
    banner = job.work / "banner.bmp"
    _draw(job, _DRAW_BANNER, str(banner), *map(str, BANNER_SIZE))
    return banner


def _draw(job: Job, script: str, *words: str) -> None:
    compiler = tool(job, "pyside6-lrelease", "pyside6-essentials")
    python = compiler.with_name(f"python{compiler.suffix}")  # it has PySide6
    drawing = job.layout.root / "resources" / "icons" / "app.svg"
    command = [str(python), "-c", script, str(drawing), *words]
    run_checked(job.commands, command, {"QT_QPA_PLATFORM": "offscreen"})


def ico_file(pictures: dict[int, bytes]) -> bytes:
    """Return pictures as one ICO file.

    Args:
        pictures: a PNG file of each width, up to 256 pixels.

    Source: Windows takes PNG files in it since Vista.
    """
    head = struct.pack("<HHH", 0, 1, len(pictures))
    offset = len(head) + 16 * len(pictures)
    entries, data = b"", b""
    for size, picture in sorted(pictures.items()):
        # 256 is written as 0.
        entries += struct.pack(
            "<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(picture), offset + len(data)
        )
        data += picture
    return head + entries + data


def icns_file(pictures: dict[int, bytes]) -> bytes:
    """Return pictures as one ICNS file.

    Args:
        pictures: a PNG file of each width in ICNS_TYPES.
    """
    parts = b"".join(
        struct.pack(">4sI", name.encode("ascii"), 8 + len(pictures[size])) + pictures[size]
        for name, size in ICNS_TYPES.items()
    )
    return struct.pack(">4sI", b"icns", 8 + len(parts)) + parts
