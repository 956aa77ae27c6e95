"""`{"name": …, "parameters": …}` or `[name(key=value)]`, also in a fence: Gemma 2 and 3.

Their templates know no functions; the prompt describes them. Source: Google's page on function
calling with Gemma, which gives both forms.
"""

from __future__ import annotations

from medusa_core.models.text.tool_calls.call_shape import CallShape
from medusa_core.models.text.tool_calls.tool_format import ToolFormat

_SHAPE = CallShape(between="\n", arguments_key="parameters", reads_python=True)


def _fits(template: str) -> bool:
    return "<start_of_turn>" in template and "tools" not in template


SPEC = ToolFormat("gemma", _fits, _SHAPE, is_described=False)
