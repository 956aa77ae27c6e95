"""Writes the picture of a tree as SVG or PNG."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QCoreApplication, QIODevice, QRect, QRectF
from PySide6.QtGui import QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgGenerator

from app.insight.tree_view import TreeView

PNG_SCALE = 2  # sharp on paper and on dense screens


class PictureError(Exception):
    """A picture can't be written.

    Attributes:
        message: Reason.
        hint: What the user can do.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def save_picture(view: TreeView, path: Path) -> None:
    """Write the whole tree as SVG or PNG, by the file's extension.

    Raises:
        PictureError: The file can't be written, or its extension is unknown.
    """
    ending = path.suffix.lower()
    if ending not in (".svg", ".png"):
        raise PictureError(
            QCoreApplication.translate("Insight", "“{0}” isn't the name of a picture.").format(
                path.name
            ),
            QCoreApplication.translate("Insight", "End it with .svg or .png."),
        )
    rect = view.picture_rect()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    paint = _paint_svg if ending == ".svg" else _paint_png
    paint(view, buffer, rect)
    try:
        path.write_bytes(buffer.data().data())
    except OSError as error:
        raise PictureError(
            QCoreApplication.translate("Insight", "{0} can't be written: {1}.").format(
                path, error.strerror or error
            ),
            QCoreApplication.translate("Insight", "Choose another folder, or make space."),
        ) from error


def _paint_svg(view: TreeView, buffer: QBuffer, rect: QRectF) -> None:
    size = rect.size().toSize()
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setTitle(QCoreApplication.translate("Insight", "Token tree of one step"))
    painter = QPainter(generator)
    view.paint_picture(painter, QRectF(0, 0, size.width(), size.height()))
    painter.end()


def _paint_png(view: TreeView, buffer: QBuffer, rect: QRectF) -> None:
    size = rect.size().toSize() * PNG_SCALE
    image = QImage(size, QImage.Format.Format_ARGB32)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    view.paint_picture(painter, QRectF(0, 0, size.width(), size.height()))
    painter.end()
    QImageWriter(buffer, QByteArray(b"png")).write(image)
