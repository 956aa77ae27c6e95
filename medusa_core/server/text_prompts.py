"""Tokenize prompts given as text, as token ids, or as text with a gap (fill-in-the-middle)."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.context import ServerContext
from medusa_core.server.fields import Fields
from medusa_core.server.limits import Limits

_MOST_PROMPT_TOKENS = 1 << 20
_MOST_FILES = 256
_REPOSITORY = "repository\n"  # a name must follow the token, and requests bring none
_FILE = "file\n"


class ExtraFile(BaseModel):
    """Another file, as context of the gap.

    Attributes:
        text: Content of the file.
        filename: Name of the file.
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    text: str
    filename: str = "file"


class InfillFields(BaseModel):
    """Fields of llama-server's `/infill`.

    Attributes:
        input_prefix: Text before the gap.
        input_suffix: Text after the gap.
        prompt: Beginning of the text in the gap.
        input_extra: Other files, as context.
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    input_prefix: str
    input_suffix: str
    prompt: str = ""
    input_extra: list[ExtraFile] = Field(default=[], max_length=_MOST_FILES)


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


def read_prompts(fields: Fields, limits: Limits) -> tuple[str | tuple[int, ...], ...]:
    """Read the prompts of a request, each as text or as token ids.

    Raises:
        ApiError: There is no prompt, there are too many, or one has the wrong type.
    """
    value = fields.values.get("prompt")
    if isinstance(value, str):
        return (value,)
    found = fields.array("prompt", _MOST_PROMPT_TOKENS)
    if not found:
        raise fields.missing("prompt")
    if _is_tokens(found):
        return (tuple(found),)
    if len(found) > limits.most_choices:
        raise fields.invalid("prompt", f"a list of at most {limits.most_choices} prompts")
    prompts: list[str | tuple[int, ...]] = []
    for one in found:
        if isinstance(one, str):
            prompts.append(one)
        elif isinstance(one, list) and _is_tokens(one):
            prompts.append(tuple(one))
        else:
            raise fields.invalid("prompt", "a string, a list of tokens, or a list of these")
    return tuple(prompts)


async def prompt_ids(context: ServerContext, model: str, prompt: GivenPrompt) -> tuple[int, ...]:
    """Tokenize a prompt.

    Args:
        context: The server's shared objects.
        model: Id of the model; empty for the loaded one.
        prompt: The prompt.

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


def _is_tokens(values: list[Any]) -> bool:
    return bool(values) and all(
        isinstance(one, int) and not isinstance(one, bool) for one in values
    )
