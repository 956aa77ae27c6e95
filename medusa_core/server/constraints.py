"""Constraints of an answer (schema, regex, choice, grammar) in llama-server's and vLLM's fields.

Source: llama.cpp's `tools/server/README.md` (`grammar`, `json_schema`) and vLLM's structured
outputs (`structured_outputs`, and `guided_*` before version 0.12).
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, NamedTuple

from llguidance.gbnf_to_lark import any_to_lark
from pydantic import ConfigDict, Field, PlainValidator, StringConstraints

from medusa_core.server.api_error import bad_request
from medusa_core.server.json_schema import ANY_OBJECT, schema_text
from medusa_core.server.records import Flag, Record, refusal

_MOST_CHARS = 1 << 16
_MOST_CHOICES = 1000
# Strings and regular expressions stay as they are where a rule is renamed.


def _json_schema(value: Any) -> Any:
    """Validate the type of a JSON schema."""
    if not isinstance(value, dict | bool | str):
        raise refusal("must be a JSON schema")
    return value


Schema = Annotated[dict[str, Any] | bool | str, PlainValidator(_json_schema)]
Pattern = Annotated[str, StringConstraints(max_length=_MOST_CHARS)]
Choice = Annotated[tuple[str, ...], Field(min_length=1, max_length=_MOST_CHOICES)]


class StructuredOutputs(Record):
    """vLLM's `structured_outputs`: one constraint.

    Attributes:
        schema_: JSON schema, as an object or as text; the field is named `json`.
        regex: Regular expression that the whole answer must match.
        choice: Texts, of which the answer must be one.
        grammar: Grammar in GBNF or Lark.
        json_object: Whether the answer must be a JSON object.
    """

    model_config = ConfigDict(extra="forbid")

    schema_: Schema | None = Field(default=None, alias="json")
    regex: Pattern | None = None
    choice: Choice | None = None
    grammar: Pattern = ""
    json_object: Flag = False
    # Settings of vLLM's own backends, which don't change what an answer may be.
    disable_any_whitespace: Flag = False
    disable_fallback: Flag = False
    disable_additional_properties: Flag = False
    whitespace_pattern: str = ""


class ConstraintRecord(Record):
    """Fields of a request that constrain its answer, apart from `response_format`.

    Attributes:
        grammar: llama-server's field: grammar in GBNF or Lark.
        json_schema: llama-server's field: JSON schema.
        structured_outputs: vLLM's field.
        guided_json: JSON schema; this and the fields below are vLLM's before 0.12.
        guided_regex: See `StructuredOutputs.regex`.
        guided_choice: See `StructuredOutputs.choice`.
        guided_grammar: See `StructuredOutputs.grammar`.
    """

    grammar: Pattern = ""
    json_schema: Schema | None = None
    structured_outputs: StructuredOutputs = StructuredOutputs()
    guided_json: Schema | None = None
    guided_regex: Pattern | None = None
    guided_choice: Choice | None = None
    guided_grammar: Pattern = ""


class Constraint(NamedTuple):
    """The constraint of an answer, as a schema or as a grammar.

    Attributes:
        schema: JSON schema as text; empty for none.
        grammar: Lark grammar; empty for none.
    """

    schema: str = ""
    grammar: str = ""


def read_constraint(record: ConstraintRecord, response_schema: str = "") -> Constraint:
    """Return the only constraint of a request; several raise.

    Args:
        record: Fields of the request.
        response_schema: JSON schema of the request's `response_format`; empty for none.

    Raises:
        ApiError: A constraint is invalid, or there are several.
    """
    of_vllm = record.structured_outputs
    schemas = {
        "json_schema": record.json_schema,
        "guided_json": record.guided_json,
        "structured_outputs.json": of_vllm.schema_,
        "structured_outputs.json_object": ANY_OBJECT if of_vllm.json_object else None,
    }
    grammars = {
        "grammar": record.grammar,
        "guided_grammar": record.guided_grammar,
        "structured_outputs.grammar": of_vllm.grammar,
    }
    patterns = {"guided_regex": record.guided_regex, "structured_outputs.regex": of_vllm.regex}
    choices = {"guided_choice": record.guided_choice, "structured_outputs.choice": of_vllm.choice}
    found = {"response_format": Constraint(response_schema)} if response_schema else {}
    for where, schema in schemas.items():
        if schema is not None:
            found[where] = Constraint(_schema_text(schema, where))
    for where, grammar in grammars.items():
        if grammar:  # llama-server's clients send an empty one for none
            found[where] = Constraint(grammar=_lark(grammar, where))
    for where, pattern in patterns.items():
        if pattern is not None:
            found[where] = Constraint(grammar=f"start: {_regex(pattern)}\n")
    for where, choice in choices.items():
        if choice is not None:
            texts = " | ".join(json.dumps(text, ensure_ascii=False) for text in choice)
            found[where] = Constraint(grammar=f"start: {texts}\n")
    if len(found) > 1:
        first, second, *_ = found
        raise bad_request(f"`{first}` and `{second}` both constrain the answer; send one.", second)
    return next(iter(found.values()), Constraint())


def _schema_text(schema: dict[str, Any] | bool | str, field: str) -> str:
    """Parse a schema that may be given as text, and check it."""
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError):
            raise bad_request(f"`{field}` is no JSON.", field) from None
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise bad_request(f"`{field}` must be a JSON schema.", field)
    return schema_text(schema, field)


def _lark(grammar: str, field: str) -> str:
    """Convert GBNF to Lark."""
    try:
        return any_to_lark(grammar)
    except RecursionError:
        raise bad_request(f"The grammar in `{field}` is nested too deeply.", field) from None
    except Exception as error:  # noqa: BLE001 - the library raises plain ones
        raise bad_request(f"The grammar in `{field}` is invalid: {error}.", field) from None


def _regex(pattern: str) -> str:
    """Return a Lark regex; unescaped slashes are escaped."""
    return "/" + re.sub(r"\\.|/", lambda found: found.group().replace("/", r"\/"), pattern) + "/"
