"""Which tokens a text is, and which text tokens are."""

from __future__ import annotations

from medusa_core.engine.transcript import transcript_of
from medusa_core.loading.target import Target
from medusa_core.messages import Tokenize, Tokenized


def tokenize(command: Tokenize, target: Target) -> Tokenized:
    """Carry out a command by the target's tokenizer; no session is touched.

    Args:
        command: A text, or tokens.
        target: The loaded target.

    Raises:
        RequestError: A token is none of the target's.
        TokenizerError: The text can't be encoded.
    """
    tokenizer = target.tokenizer
    if command.token_ids:
        token_ids = transcript_of(command.token_ids, target).prompt_ids
    elif command.is_literal:
        token_ids = tokenizer.encode_literal(command.text)
    else:
        encode = tokenizer.encode_prompt if command.opens_prompt else tokenizer.encode
        token_ids = encode(command.text)
    names = dict(tokenizer.special_tokens)
    pieces = tuple(
        names[token_id].encode() if token_id in names else tokenizer.bytes_of(token_id)
        for token_id in token_ids
    )
    text = tokenizer.decode(token_ids)
    return Tokenized(command.session_id, command.request_id, tuple(token_ids), pieces, text)
