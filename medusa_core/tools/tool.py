"""Descriptions of tools."""

from __future__ import annotations

import json
from typing import NamedTuple

Schema = dict[str, object]


class Tool(NamedTuple):
    """A function that a model may call.

    Attributes:
        name: Name of the function.
        description: What it does, for the model.
        parameters: JSON schema of its arguments, as JSON text.
    """

    name: str
    description: str
    parameters: str

    @property
    def as_text(self) -> str:
        """The function as canonical JSON, for `Generate.tools`."""
        parameters = json.loads(self.parameters)
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return json.dumps(function, ensure_ascii=False, sort_keys=True)
