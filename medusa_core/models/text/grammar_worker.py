"""Worker process that compiles grammars for the first time.

A grammar can exhaust the stack, which would end the whole engine. Here it ends only the worker,
whose stack is smaller than that of any thread that compiles the same grammar later.
"""

from __future__ import annotations

import faulthandler
import re
import threading
from typing import Any

from llguidance import LLTokenizer, TokenizerWrapper

from medusa_core.errors import GrammarError
from medusa_core.i18n import text_to_json
from medusa_core.models.text.grammar_limits import build_matcher, check_matcher
from medusa_core.system.sandbox.channel import Channel, limit_process, open_channel
from medusa_core.system.sandbox.worker import WORKER_BYTES

_STACK_BYTES = 768 << 10
# Token ids in a grammar are those of the target; one of this vocabulary replaces them.
_NUMBERED = re.compile(r"<\[[\d,\- ]+\]>")
_ANY_NUMBERED = "<[256]>"
_ORPHAN_S = 10.0  # the parent has given up long before, or is gone


class _ByteVocabulary:
    """Vocabulary of all single bytes and EOS: enough to compile a grammar."""

    eos_token_id = 256
    bos_token_id = None
    special_token_ids = (256,)
    tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")

    def __call__(self, text: bytes) -> list[int]:
        return list(text)


def main() -> int:
    """Answer until the parent closes the pipe."""
    threading.stack_size(_STACK_BYTES)
    with open_channel() as channel:
        limit_process(WORKER_BYTES, 0)
        thread = threading.Thread(target=_serve, args=(channel,))
        thread.start()
        thread.join()
    return 0


def _serve(channel: Channel) -> None:
    """Compile one grammar per request and answer with its error, empty if it compiles."""
    tokenizer = LLTokenizer(TokenizerWrapper(_ByteVocabulary()))
    channel.send(ready=True)
    while True:
        text = str(channel.receive()["grammar"])
        # Ends the process from outside of Python, which may hang in a single operation.
        faulthandler.dump_traceback_later(_ORPHAN_S, exit=True)
        error: Any = ""
        try:
            matcher = build_matcher(tokenizer, _NUMBERED.sub(_ANY_NUMBERED, text))
            matcher.compute_bitmask()
            check_matcher(matcher)
        except GrammarError as refusal:
            error = text_to_json(refusal.message)
        channel.send(error=error)
        faulthandler.cancel_dump_traceback_later()
