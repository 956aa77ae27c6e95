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
# Draws argv[1] into pictures: argv[2], and so on, are FILE:WIDTH:HEIGHT. One that is no square gets
# the icon's colour, so that the icon's edge can't be seen, and the icon in its upper part.
_DRAW = """
import sys
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
drawing = QSvgRenderer(sys.argv[1])
assert drawing.isValid(), sys.argv[1]
for wanted in sys.argv[2:]:
    file, width, height = wanted.rsplit(":", 2)
    width, height = int(width), int(height)
    is_square = width == height
    form = QImage.Format.Format_ARGB32 if is_square else QImage.Format.Format_RGB888
    image = QImage(width, height, form)
    image.fill(QColor(0, 0, 0, 0) if is_square else QColor("#1f5f8b"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    banner = QRectF(width * 0.1, width * 0.2, width * 0.8, width * 0.8)
    drawing.render(painter, QRectF(0, 0, width, height) if is_square else banner)
    painter.end()
    assert image.save(file)
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
    _draw(job, *(f"{folder / str(size)}.png:{size}:{size}" for size in wanted))
    return {size: (folder / f"{size}.png").read_bytes() for size in wanted}


def draw_banner(job: Job) -> Path:
    """Draw the picture of NSIS's first and last page; returns a BMP file in the work folder.

    Raises:
        SetupError: as `draw_pictures`.
    """
    banner = job.work / "banner.bmp"
    width, height = BANNER_SIZE
    _draw(job, f"{banner}:{width}:{height}")
    return banner


def _draw(job: Job, *pictures: str) -> None:
    compiler = tool(job, "pyside6-lrelease", "pyside6-essentials")
    python = compiler.with_name(f"python{compiler.suffix}")  # it has PySide6
    drawing = job.layout.root / "resources" / "icons" / "app.svg"
    command = [str(python), "-c", _DRAW, str(drawing), *pictures]
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
