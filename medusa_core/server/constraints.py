"""Constraints of an answer (schema, regex, choice, grammar) in llama-server's and vLLM's fields.

Source: llama.cpp's `tools/server/README.md` (`grammar`, `json_schema`) and vLLM's structured
outputs (`structured_outputs`, and `guided_*` before version 0.12).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from llguidance.gbnf_to_lark import any_to_lark
from pydantic import BaseModel, ConfigDict, Field

from medusa_core.server.api_error import bad_request
from medusa_core.server.fields import Fields
from medusa_core.server.json_schema import ANY_OBJECT, check_schema, refuse_unenforced
from medusa_core.server.records import read_record

_MOST_CHARS = 1 << 16
_MOST_CHOICES = 1000
# Strings and regular expressions stay as they are where a rule is renamed.
_START = re.compile(r'"(?:[^"\\]|\\.)*"|/(?:[^/\\\n]|\\.)*/|\bstart\b')

Schema = dict[str, Any] | bool | str


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class StructuredOutputs(_Record):
    """vLLM's `structured_outputs`: one constraint.

    Attributes:
        schema_: JSON schema, as an object or as text; the field is named `json`.
        regex: Regular expression that the whole answer must match.
        choice: Texts, of which the answer must be one.
        grammar: Grammar in GBNF or Lark.
        json_object: Whether the answer must be a JSON object.
    """

    schema_: Schema | None = Field(default=None, alias="json")
    regex: str | None = Field(default=None, max_length=_MOST_CHARS)
    choice: list[str] | None = Field(default=None, min_length=1, max_length=_MOST_CHOICES)
    grammar: str | None = Field(default=None, max_length=_MOST_CHARS)
    json_object: bool = False
    # Settings of vLLM's own backends, which say nothing of the answer.
    disable_any_whitespace: bool = False
    disable_fallback: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: str | None = None


class ConstraintFields(BaseModel):
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

    model_config = ConfigDict(extra="ignore", strict=True)

    grammar: str | None = Field(default=None, max_length=_MOST_CHARS)
    json_schema: Schema | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: Schema | None = None
    guided_regex: str | None = Field(default=None, max_length=_MOST_CHARS)
    guided_choice: list[str] | None = Field(default=None, min_length=1, max_length=_MOST_CHOICES)
    guided_grammar: str | None = Field(default=None, max_length=_MOST_CHARS)


class Constraint(NamedTuple):
    """The constraint of an answer, as a schema or as a grammar.

    Attributes:
        schema: JSON schema as text; empty for none.
        grammar: Lark grammar; empty for none.
    """

    schema: str = ""
    grammar: str = ""


def read_constraint(fields: Fields, response_schema: str) -> Constraint:
    """Read the constraint of a request.

    Args:
        fields: The request.
        response_schema: JSON schema of the request's `response_format`; empty for none.

    Raises:
        ApiError: A field has the wrong type, a constraint is invalid, or there are several.
    """
    record = read_record(ConstraintFields, fields)
    found = {"response_format": Constraint(response_schema)} if response_schema else {}
    of_vllm = record.structured_outputs or StructuredOutputs()
    for where, schema in (
        ("json_schema", record.json_schema),
        ("guided_json", record.guided_json),
        ("structured_outputs.json", of_vllm.schema_),
    ):
        if schema is not None:
            found[where] = Constraint(_schema_text(schema, where))
    if of_vllm.json_object:
        found["structured_outputs.json_object"] = Constraint(ANY_OBJECT)
    for where, grammar in (
        ("grammar", record.grammar),
        ("guided_grammar", record.guided_grammar),
        ("structured_outputs.grammar", of_vllm.grammar),
    ):
        if grammar:  # llama-server's clients send an empty one for none
            found[where] = Constraint(grammar=_lark(grammar, where))
    for where, pattern in (
        ("guided_regex", record.guided_regex),
        ("structured_outputs.regex", of_vllm.regex),
    ):
        if pattern is not None:
            found[where] = Constraint(grammar=f"start: {_regex(pattern)}\n")
    for where, choice in (
        ("guided_choice", record.guided_choice),
        ("structured_outputs.choice", of_vllm.choice),
    ):
        if choice is not None:
            words = " | ".join(json.dumps(word, ensure_ascii=False) for word in choice)
            found[where] = Constraint(grammar=f"start: {words}\n")
    if len(found) > 1:
        first, second, *_ = found
        raise bad_request(f"`{first}` and `{second}` both constrain the answer; send one.", second)
    return next(iter(found.values()), Constraint())


def as_rule(grammar: str, name: str) -> str:
    """Rename the rule `start` of a Lark grammar, so that it can be part of a larger one.

    Args:
        grammar: The grammar.
        name: New name of the rule.
    """
    lines = [line for line in grammar.splitlines() if not line.lstrip().startswith("%llguidance")]
    return _START.sub(
        lambda found: name if found.group() == "start" else found.group(), "\n".join(lines)
    )


def _schema_text(schema: Schema, where: str) -> str:
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError):
            raise bad_request(f"`{where}` is no JSON.", where) from None
    if schema is True:
        schema = {}
    if not isinstance(schema, Mapping):
        raise bad_request(f"`{where}` must be a JSON schema.", where)
    check_schema(schema, where)
    refuse_unenforced(schema, where)
    return json.dumps(schema, ensure_ascii=False)


def _lark(grammar: str, where: str) -> str:
    try:
        return any_to_lark(grammar)
    except RecursionError:
        raise bad_request(f"The grammar in `{where}` is nested too deeply.", where) from None
    except Exception as error:  # noqa: BLE001 - the library raises plain ones
        raise bad_request(f"The grammar in `{where}` is invalid: {error}.", where) from None


def _regex(pattern: str) -> str:
    return "/" + re.sub(r"\\.|/", lambda found: found.group().replace("/", r"\/"), pattern) + "/"
