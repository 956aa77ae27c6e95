"""Commands that only tokenize: the length of a conversation, the tokens of a text."""

from __future__ import annotations

from medusa_core.engine.admission import admit
from medusa_core.engine.overflow import fit
from medusa_core.engine.transcript import transcribe, transcript_of
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import Count, Counted, Role, Tokenize, Tokenized


def count(command: Count, target: Target) -> Counted:
    """Count the tokens of a conversation, and of the part that fits into the context.

    A conversation without a question has no tokens yet.

    Raises:
        RequestError: A setting is out of range.
        ModelError: The template or the tokenizer fails.
    """
    admit(command.messages, command.settings)
    ids, limit = command.ids, target.config.context_tokens
    if all(message.role is Role.ASSISTANT for message in command.messages):
        return Counted(*ids, 0, 0, limit, None, "", "")
    try:
        fitted = fit(command.messages, None, target, command.settings, tools=command.tools)
    except RequestError as error:
        num_tokens = int(error.data.get("num_tokens", 0))
        prompt = ""
        if command.wants_prompt and num_tokens > 0:  # it is too long, but can be rendered
            thinks = command.settings.thinks
            prompt = transcribe(command.messages, None, target, thinks, command.tools).prompt
        return Counted(*ids, num_tokens, num_tokens, limit, None, error.message, prompt)
    prompt = fitted.transcript.prompt if command.wants_prompt else ""
    num_read = len(fitted.transcript.token_ids)
    return Counted(*ids, fitted.num_tokens, num_read, limit, fitted.cut, "", prompt)


def tokenize(command: Tokenize, target: Target) -> Tokenized:
    """Tokenize a text, or decode tokens, with the target's tokenizer.

    Raises:
        RequestError: A token isn't in the target's vocabulary.
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
    return Tokenized(*command.ids, tuple(token_ids), pieces, text)
