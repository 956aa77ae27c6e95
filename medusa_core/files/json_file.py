"""JSON objects in files that come from anywhere. Nothing here needs torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from medusa_core.errors import CheckpointError


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        CheckpointError: The file is missing, unreadable, not JSON, or not an object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"{path.name} is missing in {path.parent}.",
            "Choose a folder in Hugging Face layout, or download the model again.",
        ) from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CheckpointError(
            f"{path} can't be read as JSON: {error}.", "Download the file again."
        ) from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds no JSON object.", "Download the file again.")
    return value
