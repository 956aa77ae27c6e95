"""How long a conversation is before it is sent, and what of it will be read."""

from __future__ import annotations

from medusa_core.engine.admission import admit
from medusa_core.engine.overflow import fit
from medusa_core.engine.transcript import transcribe
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import Count, Counted, Role


def count(command: Count, target: Target) -> Counted:
    """Count a conversation by the model's own template and tokenizer; no session is touched.

    Args:
        command: Which conversation; one in which nobody asks anything has no tokens yet.
        target: The loaded target.

    Raises:
        RequestError: A setting is out of range.
        ModelError: The template or the tokenizer can't serve.
    """
    admit(command.messages, command.settings)
    ids, limit = (command.session_id, command.request_id), target.config.context_tokens
    if all(message.role is Role.ASSISTANT for message in command.messages):
        return Counted(*ids, 0, 0, limit, None, "", "")
    try:
        fitted = fit(command.messages, None, target, command.settings, tools=command.tools)
    except RequestError as error:
        num_tokens = int(error.data.get("num_tokens", 0))
        is_shown = command.wants_prompt and num_tokens > 0  # only too long
        prompt = _whole_prompt(command, target) if is_shown else ""
        return Counted(*ids, num_tokens, num_tokens, limit, None, error.message, prompt)
    prompt = fitted.transcript.prompt if command.wants_prompt else ""
    num_read = len(fitted.transcript.token_ids)
    return Counted(*ids, fitted.num_tokens, num_read, limit, fitted.cut, "", prompt)


def _whole_prompt(command: Count, target: Target) -> str:
    thinks = command.settings.thinks
    return transcribe(command.messages, None, target, thinks, command.tools).prompt
