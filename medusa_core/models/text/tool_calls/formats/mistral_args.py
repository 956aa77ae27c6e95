"""`[TOOL_CALLS]name[ARGS]{…}`: Mistral since 2025 (tokenizer v11 and later).

Source: the models' chat templates.
"""

from __future__ import annotations

from medusa_core.models.text.tool_calls.call_shape import CallShape
from medusa_core.models.text.tool_calls.tool_format import ToolFormat

_SHAPE = CallShape(mark="[TOOL_CALLS]", arguments_mark="[ARGS]")


def _fits(template: str) -> bool:
    return "[TOOL_CALLS]" in template and "[ARGS]" in template


SPEC = ToolFormat("mistral_args", _fits, _SHAPE, replays=False)
