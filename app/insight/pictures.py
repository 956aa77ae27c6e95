"""Writes what a view shows as SVG or PNG."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QRect, QRectF, QSize
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgGenerator

from app.insight.tree_view import TreeView

PNG_SCALE = 2  # sharp on paper and on dense screens


class PictureError(Exception):
    """A picture can't be written."""


def save_picture(view: TreeView, path: Path) -> None:
    """Write the whole tree; the ending of the name says how.

    Raises:
        PictureError: The folder can't be written to.
    """
    rect = view.picture_rect()
    if path.suffix.lower() == ".svg":
        _save_svg(view, path, rect)
    else:
        _save_png(view, path, rect)


def _save_svg(view: TreeView, path: Path, rect: QRectF) -> None:
    size = rect.size().toSize()
    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setTitle("Token tree of one step")
    painter = QPainter()
    if not painter.begin(generator):
        raise PictureError(f"{path} can't be written.")
    view.paint_picture(painter, QRectF(0, 0, size.width(), size.height()))
    painter.end()


def _save_png(view: TreeView, path: Path, rect: QRectF) -> None:
    size = rect.size().toSize() * PNG_SCALE
    image = QImage(QSize(size), QImage.Format.Format_ARGB32)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    view.paint_picture(painter, QRectF(0, 0, size.width(), size.height()))
    painter.end()
    if not image.save(str(path), b"PNG"):  # whatever the name ends in
        raise PictureError(f"{path} can't be written.")
