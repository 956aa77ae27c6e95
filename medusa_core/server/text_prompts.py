"""Tokenize prompts given as text, as token ids, or as text with a gap (fill-in-the-middle)."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from pydantic import Field, PlainValidator, model_validator

from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.context import ServerContext
from medusa_core.server.limits import MOST_CHOICES
from medusa_core.server.records import Record, refusal

_MOST_FILES = 256
_REPOSITORY = "repository\n"  # the token needs a name after it, and requests have none
_FILE = "file\n"
_PROMPT_KINDS = "must be a string, a list of tokens, or a list of these"


class ExtraFile(Record):
    """Another file, as context of the gap.

    Attributes:
        text: Content of the file.
        filename: Name of the file.
    """

    text: str
    filename: str = "file"


class GapRecord(Record):
    """The fields of llama-server's `/infill` that describe the gap.

    Attributes:
        input_prefix: Text before the gap.
        input_suffix: Text after the gap.
        prompt: Beginning of the text in the gap.
        input_extra: Other files, as context.
    """

    input_prefix: str
    input_suffix: str
    prompt: str = ""
    input_extra: tuple[ExtraFile, ...] = Field(default=(), max_length=_MOST_FILES)

    @model_validator(mode="after")
    def _needs_text(self) -> GapRecord:
        """Require text around the gap."""
        if not self.input_prefix and not self.prompt and not self.input_suffix:
            raise refusal("must have text, or `input_suffix` must", "input_prefix")
        return self


class GapPrompt(NamedTuple):
    """A text with a gap.

    Attributes:
        prefix: Text before the gap.
        suffix: Text after the gap.
        files: Other files, as context.
        param: Name of the request's field, for error messages.
    """

    prefix: str
    suffix: str
    files: tuple[ExtraFile, ...] = ()
    param: str = "suffix"


GivenPrompt = str | tuple[int, ...] | GapPrompt


def _prompts(value: Any) -> tuple[str | tuple[int, ...], ...]:
    """Normalize a prompt to a list: text, token ids, or several of them."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not value:
        raise refusal(_PROMPT_KINDS)
    if isinstance(value[0], int):
        value = [value]
    if len(value) > MOST_CHOICES:
        raise refusal(f"must be a list of at most {MOST_CHOICES} prompts")
    if not all(isinstance(prompt, str) or _is_tokens(prompt) for prompt in value):
        raise refusal(_PROMPT_KINDS)
    return tuple(prompt if isinstance(prompt, str) else tuple(prompt) for prompt in value)


Prompts = Annotated[tuple[str | tuple[int, ...], ...], PlainValidator(_prompts)]


async def prompt_ids(context: ServerContext, model: str, prompt: GivenPrompt) -> tuple[int, ...]:
    """Tokenize a prompt.

    Args:
        context: The server's shared objects.
        model: Id of the model; empty for the loaded one.

    Raises:
        ApiError: The prompt is empty, or the model can't be loaded or has no tokens to fill gaps.
    """
    if isinstance(prompt, GapPrompt):
        return await _gap_ids(context, model, prompt)
    if isinstance(prompt, str):
        token_ids = (await context.tokenize(model, prompt, opens_prompt=True)).token_ids
    else:
        token_ids = prompt
    if not token_ids:
        raise ApiError(400, "The prompt is empty.", "prompt")
    return token_ids


async def _gap_ids(context: ServerContext, model: str, prompt: GapPrompt) -> tuple[int, ...]:
    """Tokenize a prompt with a gap: other files, prefix, suffix, then the middle token."""
    opening = (await context.tokenize(model, "", opens_prompt=True)).token_ids  # loads the model
    facts = context.models.facts
    marks = None if facts is None else facts.fill_tokens
    if marks is None:
        raise bad_request(
            "This model has no tokens for filling in the middle. Choose a code model that has, "
            "such as Qwen2.5-Coder.",
            prompt.param,
        )

    async def ids(text: str) -> tuple[int, ...]:
        """Tokenize a part; names of special tokens are ordinary text."""
        if not text:
            return ()
        found = await context.tokenize(model, text, opens_prompt=False, is_literal=True)
        return found.token_ids

    found = list(opening)
    if prompt.files and marks.repository >= 0:
        found += (marks.repository, *await ids(_REPOSITORY))
    for file in prompt.files:
        if marks.file >= 0:
            found += (marks.file, *await ids(f"{file.filename}\n{file.text}"))
        else:
            found += await ids(f"{file.text}\n\n")
    if prompt.files and marks.file >= 0:
        found += (marks.file, *await ids(_FILE))
    found += (marks.prefix, *await ids(prompt.prefix))
    found += (marks.suffix, *await ids(prompt.suffix))
    return (*found, marks.middle)


def _is_tokens(value: Any) -> bool:
    """Whether a value is a list of token ids."""
    return isinstance(value, list) and bool(value) and all(type(token) is int for token in value)
