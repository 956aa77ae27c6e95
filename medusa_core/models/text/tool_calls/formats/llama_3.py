"""`{"name": …, "parameters": …}` as the whole answer: Llama 3.1 to 3.3.

Source: the models' chat templates, which take one call in an answer; `<|python_tag|>` stands before
some.
"""

from __future__ import annotations

import re

from medusa_core.models.text.tool_calls.call_shape import CallShape
from medusa_core.models.text.tool_calls.tool_format import ToolFormat

_SHAPE = CallShape(arguments_key="parameters", optional_mark="<|python_tag|>")


def _fits(template: str) -> bool:
    has_tools = re.search(r"\btools\b", template) is not None
    is_llama = "<|start_header_id|>" in template and '"parameters": ' in template
    return is_llama and has_tools and "<tool_call>" not in template


SPEC = ToolFormat("llama_3", _fits, _SHAPE)
