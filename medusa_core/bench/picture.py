"""A picture of several diagrams beside each other, drawn by matplotlib if that is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from medusa_core.errors import PromptFileError, RequestError
from medusa_core.system.extras import PLOTS_EXTRA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_picture(num: int) -> tuple[Figure, list[Axes]]:
    """An empty picture of so many diagrams.

    Raises:
        MissingExtraError: matplotlib isn't installed.
    """
    PLOTS_EXTRA.need()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 * num, 3.2), layout="constrained")
    return figure, list(figure.subplots(1, num))


def save_picture(figure: Figure, path: Path) -> None:
    """Write a picture; the ending of the name says how.

    Raises:
        RequestError: There is no such kind of picture.
        PromptFileError: The file can't be written.
    """
    try:
        figure.savefig(path)
    except ValueError as error:
        raise RequestError(f"{path.name} is no picture: {error}.", "Call it NAME.svg.") from error
    except OSError as error:
        raise PromptFileError(f"{path} can't be written: {error}.", "Name another file.") from error
