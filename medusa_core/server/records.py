"""Base of the typed records of request bodies, and validation errors as `ApiError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from medusa_core.server.api_error import bad_request

_REFUSED = "refused"  # type of the errors that `refusal` makes
_UNKNOWN = "unknown:"  # and beginning of the types of those of `by_type`
_KEY = "[key]"  # pydantic's mark of an error in a key of an object
_MOST_MAX_TOKENS = 1 << 20
# Pydantic's types of errors, by their beginnings, in the words of JSON.
_MESSAGES = {
    "missing": "is missing",
    "extra_forbidden": "is unknown",
    "string_type": "must be a string",
    "bool_": "must be true or false",
    "int_": "must be a whole number",
    "float_": "must be a number",
    "finite_number": "must be a finite number",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_": "must be an object",
    "too_long": "must have at most {max_length} items",
    "too_short": "must have at least {min_length} items",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
}


def without_nulls(value: Any) -> Any:
    """Drop the null fields of an object: clients send them for absent ones."""
    if not isinstance(value, dict):
        return value
    return {name: field for name, field in value.items() if field is not None}


class Record(BaseModel):
    """A JSON object of a request.

    Null counts as absent, and unknown fields are ignored.
    """

    # `model` and `schema` are fields of requests; pydantic has methods of such names.
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, protected_namespaces=())

    _drop_nulls = model_validator(mode="before")(without_nulls)


_Record = TypeVar("_Record", bound=BaseModel)


def _refuse_bool(value: Any) -> Any:
    """Refuse booleans as numbers."""
    # Python's booleans are integers, so pydantic would read `true` as 1.
    if isinstance(value, bool):
        raise refusal("must be a number")
    return value


def listed(value: Any) -> Any:
    """Make a list of a field that may be a string or a list of strings."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise refusal("must be a string or a list of strings")
    return value


def _max_tokens(value: int) -> int:
    """Validate a token limit; −1 means none."""
    if value == 0:
        raise refusal("must be 1 or more")
    return max(0, value)  # -1 is llama-server's word for no limit


# Numbers may come as strings, such as "0.7": some clients read them from forms and settings files.
Number = Annotated[float, BeforeValidator(_refuse_bool)]
Whole = Annotated[int, BeforeValidator(_refuse_bool)]
Flag = StrictBool
MaxTokens = Annotated[
    int,
    BeforeValidator(_refuse_bool),
    Field(ge=-1, le=_MOST_MAX_TOKENS),
    AfterValidator(_max_tokens),
]


def refusal(message: str, field: str = "") -> PydanticCustomError:
    """Make the error of a validator.

    Args:
        message: What the field must be; follows its name.
        field: Field of the validated object that is wrong; empty for the validated value itself.
    """
    return PydanticCustomError(_REFUSED, "{text}", {"text": message, "field": field})


def by_type(
    tag_of: Callable[[str], str | None], message: str, default: str = "", field: str = "type"
) -> Discriminator:
    """Choose the record of a union by a field of the object.

    Args:
        tag_of: Returns the tag of a type's record; None for an unknown type. Tags begin with a
            parenthesis, so that no field is taken for one.
        message: Message for other types.
        default: Type of an object without the field.
        field: The field with the type.
    """

    def tag(value: Any) -> str | None:
        """Return the tag of the record that fits a value."""
        kind = value.get(field) if isinstance(value, dict) else False
        kind = default if kind is None else kind
        return tag_of(kind) if isinstance(kind, str) else None

    return Discriminator(tag, custom_error_type=f"{_UNKNOWN}{field}", custom_error_message=message)


def validate(kind: type[_Record], values: Mapping[str, Any]) -> _Record:
    """Validate an object of a request.

    Args:
        kind: Record that describes it.

    Raises:
        ApiError: A field is missing, has the wrong type or is out of range.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    path = _path(first)
    raise bad_request(f"`{path}` {_message(first)}.", path)


def _path(error: ErrorDetails) -> str:
    """Return a field's path in the request, such as `messages[0].content`."""
    _, _, unknown = error["type"].partition(_UNKNOWN)
    parts = [*error["loc"], unknown or error.get("ctx", {}).get("field", "")]
    if _KEY in parts:
        parts = parts[: parts.index(_KEY) - 1]
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part and not part.startswith("("):  # tags of unions begin so
            path += f".{part}" if path else part
    return path


def _message(error: ErrorDetails) -> str:
    """Return the text of a validation error."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == _REFUSED:
        return str(context["text"])
    message = next((text for start, text in _MESSAGES.items() if kind.startswith(start)), "")
    if message:
        return message.format(**context)
    return error["msg"].replace("Input should be", "must be")
