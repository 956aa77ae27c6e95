"""`{"name": …, "parameters": …}` as the whole answer: Llama 3.1 to 3.3.

Source: the models' chat templates; `<|python_tag|>` stands before some calls.
"""

from __future__ import annotations

from medusa_core.server.tool_calls.call_shape import CallShape
from medusa_core.server.tool_calls.tool_format import ToolFormat

_SHAPE = CallShape(between="; ", arguments_key="parameters", optional_mark="<|python_tag|>")


def _fits(template: str) -> bool:
    is_llama = "<|start_header_id|>" in template and '"parameters": ' in template
    return is_llama and "tools" in template and "<tool_call>" not in template


SPEC = ToolFormat("llama_3", _fits, _SHAPE)
