"""Worker process that compiles and renders a chat template that isn't ours.

It receives the template first, then conversations, and answers each with a text or an error.
"""

from __future__ import annotations

import faulthandler
from typing import Any

from medusa_core.errors import TemplateError
from medusa_core.i18n import text_to_json
from medusa_core.models.text.rendering import Rendering
from medusa_core.system.sandbox.channel import limit_process, open_channel
from medusa_core.system.sandbox.worker import WORKER_BYTES

_ORPHAN_S = 10.0  # the parent has given up long before, or is gone


def main() -> int:
    """Answer until the parent closes the pipe."""
    with open_channel() as channel:
        limit_process(WORKER_BYTES, 0)
        channel.send(ready=True)
        rendering: Rendering | None = None
        while True:
            request = channel.receive()
            # Ends the process from outside of Python, which may hang in a single operation.
            faulthandler.dump_traceback_later(_ORPHAN_S, exit=True)
            try:
                if rendering is None:
                    rendering = Rendering(request["source"], request["special_tokens"])
                    answer: dict[str, Any] = {"switch": rendering.switch}
                else:
                    answer = {"text": rendering.render(**request)}
            except TemplateError as error:
                texts = text_to_json(error.message), text_to_json(error.hint)
                answer = {"error": texts[0], "hint": texts[1], "data": error.data}
            channel.send(**answer)
            faulthandler.cancel_dump_traceback_later()
