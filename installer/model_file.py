"""The model of the first start, as far as it is known before the program is installed.

The program itself fetches it: `medusa pull`.
"""

import os
from pathlib import Path

NAME = "SmolLM2 135M Instruct"
FOLDER = "smollm2-135m-instruct"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_BYTES = 98_362_432
PULL = ("-m", "medusa_core", "pull", FOLDER)  # for the Python of an environment


def models_folder(own: Path) -> Path:
    """Where the program looks for it: a folder of the user's, else the one of the environment."""
    return Path(os.environ.get("MEDUSA_MODELS") or own)


def has_first_model(own: Path) -> bool:
    """Whether it is there, in its size; its bytes are compared by `medusa pull`."""
    try:
        return (models_folder(own) / FOLDER / FILE).stat().st_size == FILE_BYTES
    except OSError:
        return False
