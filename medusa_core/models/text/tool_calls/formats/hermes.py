"""`<tool_call>{"name": …, "arguments": …}</tool_call>`: Hermes, Qwen 2.5 and 3, Granite 4.

Source: the models' chat templates.
"""

from __future__ import annotations

import re

from medusa_core.models.text.tool_calls.call_shape import CallShape
from medusa_core.models.text.tool_calls.tool_format import ToolFormat

_SHAPE = CallShape(mark="<tool_call>", before="\n", behind="\n", close="</tool_call>", gap="\n")
# Marks of templates with the same tags around something else than JSON.
_OTHERS = ("<function=", "arg_key")


def _fits(template: str) -> bool:
    has_tools = re.search(r"\btools\b", template) is not None
    is_json = "<tool_call>" in template and "arguments" in template
    return has_tools and is_json and not any(other in template for other in _OTHERS)


SPEC = ToolFormat("hermes", _fits, _SHAPE)
