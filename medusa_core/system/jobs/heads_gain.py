"""Speedup of trained heads, measured at the end of their training and kept in their folder."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import NamedTuple

FILE_NAME = "medusa_gain.json"


class HeadsGain(NamedTuple):
    """Results on held-out prompts, on the machine that trained the heads.

    Attributes:
        tau: Mean tokens per step.
        x_plain: Speed relative to plain decoding, in alternating measurements.
    """

    tau: float
    x_plain: float

    @property
    def pays(self) -> bool:
        """Whether the heads make answers faster."""
        return self.x_plain > 1.0


def write_gain(folder: Path, gain: HeadsGain) -> None:
    """Write the result to the folder of the heads.

    Raises:
        OSError: It can't be written.
    """
    (folder / FILE_NAME).write_text(json.dumps(gain._asdict()) + "\n", encoding="utf-8")


def read_gain(folder: Path) -> HeadsGain | None:
    """Read the result in a folder of heads; None if there is none, or it can't be read."""
    try:
        raw = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
        gain = HeadsGain(float(raw["tau"]), float(raw["x_plain"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return gain if all(math.isfinite(number) and number >= 0 for number in gain) else None
