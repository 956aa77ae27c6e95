"""`{"name": …, "arguments": …}` as the whole answer, for models whose own format is unknown."""

from __future__ import annotations

from medusa_core.models.text.tool_calls.call_shape import CallShape
from medusa_core.models.text.tool_calls.tool_format import USUAL, ToolFormat

# It fits no template: it is what is left.
SPEC = ToolFormat(USUAL, lambda _: False, CallShape(between="\n"), is_described=False)
