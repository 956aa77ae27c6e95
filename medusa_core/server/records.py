"""Validate fields of a request by pydantic models."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from medusa_core.server.api_error import ApiError, bad_request
from medusa_core.server.fields import Fields

_UNION_PARTS = ("dict[str,any]", "bool", "str")  # what pydantic calls the members of a union
_Record = TypeVar("_Record", bound=BaseModel)


def read_record(kind: type[_Record], fields: Fields) -> _Record:
    """Validate a request's fields by a pydantic model.

    Args:
        kind: The model class.
        fields: The request's fields.

    Raises:
        ApiError: A field has the wrong type or is out of range.
    """
    try:
        return kind.model_validate(fields.values)
    except ValidationError as error:
        raise _invalid(error) from None


def _invalid(error: ValidationError) -> ApiError:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"] if part not in _UNION_PARTS)
    return bad_request(f"`{where}` is invalid: {first['msg']}.", where)
