"""`[TOOL_CALLS][{"name": …, "arguments": …}]`: Mistral until the middle of 2024 (tokenizer v3).

Source: the models' chat templates.
"""

from __future__ import annotations

from medusa_core.models.text.tool_calls.call_shape import CallShape
from medusa_core.models.text.tool_calls.tool_format import ToolFormat

_SHAPE = CallShape(mark="[TOOL_CALLS]", before="[", between=", ", behind="]")


def _fits(template: str) -> bool:
    return "[TOOL_CALLS]" in template and "[ARGS]" not in template


SPEC = ToolFormat("mistral_list", _fits, _SHAPE, replays=False)
