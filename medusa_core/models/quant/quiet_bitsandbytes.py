"""Import bitsandbytes without the line that it prints on some machines."""

from __future__ import annotations

import importlib
import logging
from typing import Any

logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

# bitsandbytes has no type annotations for most of what is used here.
bitsandbytes: Any = importlib.import_module("bitsandbytes")
