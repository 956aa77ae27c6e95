"""What heads were found to bring at the end of their training, kept in their folder."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import NamedTuple

FILE_NAME = "medusa_gain.json"


class HeadsGain(NamedTuple):
    """Of held-out prompts, where they were trained.

    Attributes:
        tau: Tokens per step.
        x_plain: Speed over plain decoding, measured in turns with it.
    """

    tau: float
    x_plain: float

    @property
    def pays(self) -> bool:
        """Whether they make answers faster."""
        return self.x_plain > 1.0


def write_gain(folder: Path, gain: HeadsGain) -> None:
    """Keep it beside the heads.

    Raises:
        OSError: It can't be written.
    """
    (folder / FILE_NAME).write_text(json.dumps(gain._asdict()) + "\n", encoding="utf-8")


def read_gain(folder: Path) -> HeadsGain | None:
    """What was found of the heads in a folder; None where nothing was, or it can't be read."""
    try:
        raw = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
        gain = HeadsGain(float(raw["tau"]), float(raw["x_plain"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return gain if all(math.isfinite(number) and number >= 0 for number in gain) else None
