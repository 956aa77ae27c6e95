"""Functions described to models whose templates know none."""

from __future__ import annotations

from medusa_core.messages import ChatMessage, Role, ToolCallFormat
from medusa_core.models.text.template_messages import without_tools

_FORM = '{{"name": "<name of the function>", "{key}": {{<its arguments>}}}}'
_SEVERAL = "For several calls write one such object per line. "
_DESCRIPTION = (
    "You may call functions. To call one, answer with nothing but a JSON object of this form:\n"
    "{form}\n"
    "{several}The result of each call comes with the next message. If no function helps, answer in "
    "words.\n\n"
    "The functions, each with a JSON schema of its parameters:\n"
    "{functions}"
)


def with_described_tools(
    messages: tuple[ChatMessage, ...],
    tools: tuple[str, ...],
    shape: ToolCallFormat,
    is_parallel: bool,
) -> tuple[ChatMessage, ...]:
    """Describe functions in the system message, and turn earlier calls into text.

    Args:
        tools: As `ChatRequest.tools`.
        shape: Format of the calls.
        is_parallel: Whether an answer may have several calls.
    """
    description = _DESCRIPTION.format(
        form=_FORM.format(key=shape.arguments_key),
        several=_SEVERAL if is_parallel else "",
        functions="\n".join(tools),
    )
    plain = without_tools(messages)
    if plain and plain[0].role is Role.SYSTEM:
        system = f"{plain[0].text}\n\n{description}"
        return (ChatMessage(Role.SYSTEM, system), *plain[1:])
    return (ChatMessage(Role.SYSTEM, description), *plain)
