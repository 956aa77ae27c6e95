"""Well-known shapes with other sizes."""

from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.system.files.json_file import read_json
from medusa_core.system.resources import shapes_dir


def resized(name: str, **changes: int) -> ModelConfig:
    """Return a shape with other values of some `config.json` keys."""
    return parse_config({**read_json(shapes_dir() / f"{name}.json"), **changes}, {})
