"""Imports bitsandbytes without the line that it prints on some machines."""

from __future__ import annotations

import importlib
import logging
from typing import Any

logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

# Its types say little: most of what is used here is untyped there.
bitsandbytes: Any = importlib.import_module("bitsandbytes")
