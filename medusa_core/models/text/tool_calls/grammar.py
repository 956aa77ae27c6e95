"""Tool calls as rules of a Lark grammar for llguidance."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medusa_core.chats.tool_calls.arguments import resolved, types_of
from medusa_core.chats.tool_calls.matching import trigger_of
from medusa_core.messages.tool_calls import KEY, ArgumentStyle, Segment, Slot, ToolCallFormat
from medusa_core.models.text.schema_rules import arguments_rule, value_rule
from medusa_core.models.text.tool_calls.raw_strings import string_expression, text_pattern

_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_SLOTS = {
    Slot.CALL_ID: "CALL_ID: /[a-zA-Z0-9_.:-]{1,64}/",
    Slot.INDEX: "INDEX: /[0-9]{1,6}/",
}
_PYTHON_TEXT = r"""PYTHON_TEXT: /'([^'\\\n]|\\.)*'/ | /"([^"\\\n]|\\.)*"/"""
_ANY_KEY = "/[A-Za-z_][A-Za-z0-9_.-]{0,63}/"
_SCALAR = {"type": ["number", "boolean", "null"]}
_NO_TEXT = {"type": ["number", "boolean", "null", "array", "object"]}
_MOST_ITEMS = 256  # choices as rules; more are one lexeme, as a row of the parser holds 2,000
_MOST_LEVELS = 6  # of objects within objects that are checked
_FENCE = r"```[a-z_]{0,16}\n\s{0,8}"  # around JSON in Markdown


class ToolCallGrammar:
    """Lark rules of tool calls in one format, to be part of an answer's grammar.

    The rule `calls` matches the text after the trigger, up to the end of the last call.

    Attributes:
        token_ids: Ids of special tokens that decode to no text, by their names.
        trigger: Text that begins a call; empty if calls can only be the whole answer.
        takes_several: Whether several calls may follow each other, each after its own trigger.
    """

    def __init__(
        self,
        shape: ToolCallFormat,
        functions: Sequence[Mapping[str, Any]],
        token_ids: Mapping[str, int],
        *,
        is_parallel: bool,
    ) -> None:
        """Make the rules.

        Args:
            functions: Objects of `name` and `parameters`.
            token_ids: Special tokens without text, by their names.
            is_parallel: Whether an answer may have several calls.
        """
        self.shape, self._functions = shape, functions
        self.token_ids = {name: number for name, number in token_ids.items() if len(name) > 2}
        self._is_parallel = is_parallel and shape.is_parallel
        self._opening = shape.opening.strip() if shape.name_key else shape.opening.lstrip()
        self.trigger = self._trigger()
        self.takes_several = self._is_parallel and not shape.section_open and bool(self.trigger)

    @property
    def is_token(self) -> bool:
        """Whether the trigger is a special token that decodes to no text."""
        return self.trigger in self.token_ids

    @property
    def unmarked_beginnings(self) -> str:
        """Pattern of text that begins a call without its markers; empty if none does.

        It ends with the function's name: an object with another name is text.
        """
        names = "|".join(text_pattern(_escaped(one["name"])) for one in self._functions)
        found = [rf'({_FENCE})?{self._object_head}({names})"'] if self.shape.name_key else []
        if not self.trigger:
            start = self._object_start if self.shape.name_key else self._opening
            after = self.shape.call_open[2:3] if self.shape.call_open[1] is Slot.NAME else ()
            end = text_pattern(after[0][:1]) if after and isinstance(after[0], str) else ""
            found.append(text_pattern(start) + (f"({names}){end}" if after else ""))
        return "|".join(found)

    @property
    def required(self) -> str:
        """Rule body of an answer that consists of calls alone."""
        optional = ""
        if self.shape.optional_mark in self.token_ids:
            optional = f"{self.literal(self.shape.optional_mark)}? "
        trigger = "" if self.shape.is_open else self.literal(self.trigger)
        first = f"{optional}{trigger} calls".strip()
        return f"{first} {self._more}" if self.takes_several else first

    @property
    def unmarked(self) -> str:
        """Rule body of calls as JSON objects without their markers, in a fence or alone.

        Models write them that were trained on code rather than on tools. Empty if a call isn't a
        JSON object.
        """
        if not self.shape.name_key:
            return ""
        others = ' (","? object)*' if self._is_parallel else ""
        mark = self._after_object
        end = f" ({self.literal(mark)})?" if mark.strip() else ""
        return f'fenced{others} "\\n```" | object{others}{end}'

    def lines(self) -> Iterator[str]:
        """Yield `calls` and all rules that it refers to."""
        shape, opening = self.shape, self._opening
        first = shape.call_open[0]
        assert isinstance(first, str)  # by the making of formats
        rest = opening.removeprefix(self.trigger) if self.trigger else ""
        repeats = self._is_parallel and not self.takes_several
        between = self.literal(shape.separator + first) if self.trigger else ""
        more = f"({between} item)*" if repeats else ""
        start = "item" if self.trigger else "first"
        parts = (self.literal(rest), start, more, self.literal(shape.section_close))
        yield f"calls: {' '.join(filter(None, parts))}"
        close = self._segments(shape.call_close)
        if Slot.CALL_ID in shape.call_close and shape.name_key:
            # An id after the arguments comes from the program, not from the model.
            close = f"({close} | {self.literal('}' + self._after_object)})"
        yield f"item: {' '.join(filter(None, ('call', close)))}"
        if self.trigger:
            yield from self._heads("call", "")
        else:
            # No trigger tells a call from text: its beginning and its name are one lexeme.
            yield f"first: {' '.join(filter(None, ('first_call', close)))}"
            yield from self._heads("first_call", opening)
            yield from self._heads("call", shape.separator + first)
        for number, function in enumerate(self._functions):
            yield from self._arguments(number, function.get("parameters") or {})
        if shape.name_key:
            yield from self._unmarked_rules()
        used = (*shape.call_open, *shape.call_close)
        yield from (rule for slot, rule in _SLOTS.items() if slot in used)
        if shape.style is ArgumentStyle.PYTHON:
            yield _PYTHON_TEXT
        elif shape.style is ArgumentStyle.BARE_KEYS:
            yield from _bare_rules(self)

    def _unmarked_rules(self) -> Iterator[str]:
        """Yield the rules of JSON objects without markers.

        A lexeme that ends with the name tells an object from text. Then only the white space that
        models write is left open, so that the rest needs few decoding steps.
        """
        for rule, fence in (("fenced", _FENCE), ("object", "")):
            numbers = range(len(self._functions))
            yield f"{rule}: {' | '.join(f'{rule}_{n}' for n in numbers)}"
            for number, function in enumerate(self._functions):
                head, name = self._object_head, text_pattern(_escaped(function["name"]))
                yield f"{rule}_{number}: {rule.upper()}_{number} object_end_{number}"
                yield f'{rule.upper()}_{number}: /\\s*{fence}{head}{name}"/'
        key = text_pattern(_escaped(self.shape.arguments_key))
        for number in range(len(self._functions)):
            yield f"object_end_{number}: OBJECT_ARGUMENTS arguments_{number} OBJECT_CLOSE"
        yield f'OBJECT_ARGUMENTS: /,( |\\n  )"{key}": /'
        yield r"OBJECT_CLOSE: /\n?\}/"

    @property
    def _object_head(self) -> str:
        """Pattern of a JSON object up to the function's name."""
        key = text_pattern(_escaped(self.shape.name_key))
        return rf'\{{\s{{0,8}}"{key}"\s{{0,8}}:\s{{0,8}}"'

    def _heads(self, rule: str, first: str) -> Iterator[str]:
        """Yield rules of calls up to their arguments, with `first` in place of the opening."""
        yield f"{rule}: {' | '.join(f'{rule}_{n}' for n in range(len(self._functions)))}"
        for number, function in enumerate(self._functions):
            head = self._segments((first, *self.shape.call_open[1:]), function["name"])
            yield f"{rule}_{number}: {head} arguments_{number}"

    def literal(self, text: str) -> str:
        """Return a Lark literal, with names of special tokens replaced by token references."""
        names = sorted(self.token_ids, key=len, reverse=True)
        parts = re.split(f"({'|'.join(map(re.escape, names))})", text) if names else [text]
        ids = self.token_ids
        written = (f"<[{ids[part]}]>" if part in ids else _quoted(part) for part in parts if part)
        return " ".join(written)

    def _trigger(self) -> str:
        """Special token or first word that starts a call; empty if the opening has neither."""
        opening = self._opening
        found = next((name for name in self.token_ids if opening.startswith(name)), "")
        if found:
            return found
        word = trigger_of(opening)
        if not opening.startswith(word) or len(word) < 3:
            return ""
        places = (place for name in self.token_ids if (place := word.find(name)) > 0)
        return word[: min(places, default=len(word))]

    @property
    def _more(self) -> str:
        """Rule body of further calls, each after its own trigger."""
        first = self.shape.call_open[0]
        assert isinstance(first, str)
        space = first[: len(first) - len(first.lstrip())]
        gap = self._joined(self.shape.separator + space, self.literal(self.trigger))
        return f"({gap} calls)*"

    @property
    def _object_start(self) -> str:
        """Text of a JSON call from its brace on."""
        return "{" + self._opening.rpartition("{")[2]

    @property
    def _after_object(self) -> str:
        """Text that closes a call after its JSON object."""
        last = self.shape.call_close[-1] if self.shape.call_close else ""
        return last.rpartition("}")[2] if isinstance(last, str) else ""

    def _joined(self, text: str, rule: str) -> str:
        """Return a sequence of a literal and a rule."""
        return f"{self.literal(text)} {rule}".strip()

    def _segments(self, segments: Sequence[Segment], name: str = "") -> str:
        """Return the rule body of a call's opening or closing, with the name filled in."""
        written = _escaped(name) if self.shape.name_key else name
        rules, text = [], ""
        for segment in segments:
            if isinstance(segment, str):
                text += segment
            elif segment is Slot.NAME:
                text += written
            else:
                rules += [self.literal(text), segment.name]
                text = ""
        return " ".join(filter(None, (*rules, self.literal(text))))

    def _arguments(self, number: int, schema: Mapping[str, Any]) -> Iterator[str]:
        """Yield the rules of a function's arguments."""
        rule = f"arguments_{number}"
        style = self.shape.style
        if style is ArgumentStyle.JSON:
            yield f"{rule}: {arguments_rule(schema)}"
        elif style is ArgumentStyle.BARE_KEYS:
            yield from _BareKeys(self, schema, rule).lines()
        else:
            yield from _Tags(self, schema, rule).lines()


class _Chain:
    """Rules of a sequence of arguments in the schema's order; optional ones may be left out."""

    def __init__(self, grammar: ToolCallGrammar, root: Mapping[str, Any], rule: str) -> None:
        self.grammar, self.root, self.rule = grammar, root, rule
        self.tags = grammar.shape.tags

    def chain(
        self, rule: str, names: Sequence[str], required: Sequence[str], arguments: Sequence[str]
    ) -> Iterator[str]:
        """Yield the rules of a sequence of arguments.

        Args:
            rule: Name of the rule; prefix of the names of its auxiliary rules.
            names: Names of the arguments.
            required: Names of arguments that may not be left out.
            arguments: Rule body of each argument, in the order of `names`.
        """
        separator = self.grammar.literal(self.tags.separator)
        yield f"{rule}: {rule}_first_0"
        for state, before in (("first", ""), ("next", f"{separator} ")):
            for place, (name, argument) in enumerate(zip(names, arguments, strict=True)):
                options = [f"{before}{argument} {rule}_next_{place + 1}".strip()]
                if name not in required:
                    options.append(f"{rule}_{state}_{place + 1}")
                yield f"{rule}_{state}_{place}: {' | '.join(options)}"
            yield f'{rule}_{state}_{len(names)}: ""'

    def schema_of(self, schema: Any) -> Any:
        """Return a subschema together with the definitions that it may refer to."""
        definitions = {key: self.root[key] for key in ("$defs", "definitions") if key in self.root}
        return {**definitions, **schema} if isinstance(schema, dict) else schema


class _Tags(_Chain):
    """Rules of arguments between tags, or in Python syntax."""

    def lines(self) -> Iterator[str]:
        """Yield the rules of the arguments."""
        properties = self.root.get("properties")
        if not isinstance(properties, dict):
            yield from self._any()
            return
        names = list(properties)
        rules = [f"{self.rule}_{place}" for place in range(len(names))]
        yield from self.chain(self.rule, names, _required(self.root), rules)
        for rule, name in zip(rules, names, strict=True):
            yield from self._argument(rule, name, properties[name])

    def _argument(self, rule: str, name: str, schema: Any) -> Iterator[str]:
        """Yield the grammar rules of one argument with its tags; the last one is `rule`."""
        schema = resolved(schema, self.root)
        literal, tags = self.grammar.literal, self.tags
        others = dict(tags.after_key_of_others)
        types = types_of(schema, self.root) or frozenset(_TYPES)
        options: dict[str, list[str]] = {}
        for kind in sorted(types):
            mark = others.get(kind, others.get("integer", tags.after_key))
            options.setdefault(tags.after_key if kind == "string" else mark, []).append(kind)
        forms = []
        for number, (mark, kinds) in enumerate(options.items()):
            value = f"{rule}_value_{number}"
            forms.append(f"{literal(tags.before_key + name + mark)} {value}")
            yield from self._value(value, name, kinds, schema)
        yield f"{rule}: {' | '.join(forms)}"

    def _value(self, rule: str, name: str, kinds: Sequence[str], schema: Any) -> Iterator[str]:
        """Yield the rules of a value with its closing tag."""
        after = self.tags.after_value.replace(KEY, name)
        literal = self.grammar.literal
        is_python = self.grammar.shape.style is ArgumentStyle.PYTHON
        is_nested = KEY in self.tags.after_value and not {"array", "object"}.isdisjoint(kinds)
        is_text = set(kinds) == {"string"}
        texts = _scalar_texts(schema, kinds, is_python=is_python)
        if texts:
            written = [literal(text) or '""' for text in texts]
            choices = f"({' | '.join(written)})"
            has_token = any(mark in text for mark in self.grammar.token_ids for text in texts)
            if len(texts) > _MOST_ITEMS and not has_token:
                yield f"{rule.upper()}: {choices}"
                choices = rule.upper()
            yield f"{rule}: {choices} {literal(after)}"
        elif is_python:
            strings = _python_strings(schema) if is_text else {}
            names = {mark: f"{rule}_{place}".upper() for place, mark in enumerate(strings)}
            text = list(names.values()) or (["PYTHON_TEXT"] if "string" in kinds else [])
            value = [] if is_text else [f"{rule}_json"]
            yield f"{rule}: {' | '.join((*text, *value))}"
            for mark, name in names.items():
                yield f"{name}: /{mark}/ {name}_TEXT /{mark}/"
                yield f"{name}_TEXT: {strings[mark]}"
            if value:
                yield f"{rule}_json: {_json_but_text(self.schema_of(schema), kinds)}"
        elif "string" in kinds or is_nested:
            excluded = after.strip()
            yield from self._text(rule, after, string_expression(schema, excluded) * is_text)
        else:
            yield f"{rule}: {rule}_json {literal(after)}"
            yield f"{rule}_json: {value_rule(self.schema_of(schema))}"

    def _text(self, rule: str, after: str, expression: str = "") -> Iterator[str]:
        """Yield the rules of a text up to a closing tag.

        Args:
            rule: Name of the rule.
            after: The closing tag.
            expression: Lark expression of the text; empty for any.
        """
        token = next((name for name in self.grammar.token_ids if name in after), "")
        # Text before the first token can't be told from the value's own: it is in one lexeme.
        before, _, _ = after.partition(token) if token else (after, "", "")
        end = self.grammar.literal(after[len(before) :])
        terminal = rule.upper()
        yield f"{rule}: {terminal} {end}" if token else f"{rule}[lazy]: {terminal}"
        if expression:
            yield f"{terminal}: {terminal}_TEXT{f' /{text_pattern(before)}/' if before else ''}"
            yield f"{terminal}_TEXT: {expression}"
        elif token:
            yield f"{terminal}: /(.|\\n)*/"
        else:
            yield f"{terminal}: /(.|\\n)*{text_pattern(before)}/"

    def _any(self) -> Iterator[str]:
        """Yield the rules of any arguments, for a function without declared parameters."""
        tags, rule, literal = self.tags, self.rule, self.grammar.literal
        is_python = self.grammar.shape.style is ArgumentStyle.PYTHON
        if KEY in tags.after_value:
            yield f'{rule}: ""'
            return
        key, value = f"{rule}_key".upper(), f"{rule}_value"
        argument = f"{literal(tags.before_key)} {key} {literal(tags.after_key)} {value}"
        yield f'{rule}: ({argument} {literal(tags.separator)} )* {argument} | ""'
        yield f"{key}: {_ANY_KEY}"
        if is_python:
            yield f"{value}: PYTHON_TEXT | {value}_json"
            yield f"{value}_json: {value_rule(_NO_TEXT)}"
        else:
            yield from self._text(value, tags.after_value)


class _BareKeys(_Chain):
    """Rules of an object with unquoted keys and the format's own quotation mark."""

    def lines(self) -> Iterator[str]:
        """Yield the rules of the arguments."""
        yield from self._value(self.rule, {**self.root, "type": "object"}, _MOST_LEVELS)

    def _value(self, rule: str, schema: Any, levels: int) -> Iterator[str]:
        """Yield the rules of a value of the schema, nested at most `levels` deep."""
        schema = resolved(schema, self.root)
        kinds = types_of(schema, self.root)
        if choices := _choices(schema):
            yield f"{rule}: {' | '.join(map(self._constant, choices))}"
        elif kinds == {"string"}:
            yield from self._string(rule, schema)
        elif kinds == {"object"} and isinstance(schema.get("properties"), dict) and levels:
            yield from self._object(rule, schema, levels)
        elif kinds == {"array"} and schema.get("items") and levels:
            comma = self.grammar.literal(self.tags.separator)
            yield f'{rule}: "[" ({rule}_item ({comma} {rule}_item)*)? "]"'
            yield from self._value(f"{rule}_item", schema["items"], levels - 1)
        elif kinds and kinds <= {"integer", "number", "boolean", "null"}:
            yield f"{rule}: {value_rule(self.schema_of(schema))}"
        else:
            shown = {"object": "bare_object", "array": "bare_array", "string": "quoted"}
            names = [name for kind, name in shown.items() if not kinds or kind in kinds]
            scalars = not kinds or not kinds <= shown.keys()
            yield f"{rule}: {' | '.join((*names, *(['bare_scalar'] if scalars else [])))}"

    def _string(self, rule: str, schema: Any) -> Iterator[str]:
        """Yield the rules of a string in the format's own quotation marks."""
        quote, terminal = self.tags.quote, rule.upper()
        expression, mark = string_expression(schema, quote), self.grammar.literal(self.tags.quote)
        if not expression:
            yield f"{rule}: quoted"
        elif quote in self.grammar.token_ids:
            yield f"{rule}: {mark} {terminal} {mark}"
            yield f"{terminal}: {expression}"
        else:
            yield f"{rule}: {mark} {rule}_end"
            yield f"{rule}_end[lazy]: {terminal}"
            yield f"{terminal}: {terminal}_TEXT /{text_pattern(quote)}/"
            yield f"{terminal}_TEXT: {expression}"

    def _object(self, rule: str, schema: Mapping[str, Any], levels: int) -> Iterator[str]:
        """Yield the rules of an object with declared properties."""
        # The one template of this form that is known writes keys in order of the alphabet.
        properties: dict[str, Any] = dict(sorted(schema["properties"].items()))
        rules = [f"{rule}_{place}" for place in range(len(properties))]
        yield f'{rule}: "{{" {rule}_all "}}"'
        yield from self.chain(f"{rule}_all", list(properties), _required(schema), rules)
        for one, (name, inner) in zip(rules, properties.items(), strict=True):
            yield f"{one}: {self.grammar.literal(name + self.tags.after_key)} {one}_value"
            yield from self._value(f"{one}_value", inner, levels - 1)

    def _constant(self, value: Any) -> str:
        """Return the literal of a constant value."""
        quote = self.tags.quote
        text = quote + value + quote if isinstance(value, str) else json.dumps(value)
        return self.grammar.literal(text)


def _bare_rules(grammar: ToolCallGrammar) -> Iterator[str]:
    """Yield the rules of values of any type, with unquoted keys in objects."""
    literal, tags = grammar.literal, grammar.shape.tags
    comma, colon = literal(tags.separator), literal(tags.after_key)
    pair = f"BARE_KEY {colon} bare_value"
    yield f'bare_object: "{{" ({pair} ({comma} {pair})*)? "}}"'
    yield f'bare_array: "[" (bare_value ({comma} bare_value)*)? "]"'
    yield "bare_value: bare_object | bare_array | quoted | bare_scalar"
    yield f"bare_scalar: {value_rule(_SCALAR)}"
    yield f"BARE_KEY: {_ANY_KEY}"
    quote = literal(tags.quote)
    if tags.quote in grammar.token_ids:
        yield f"quoted: {quote} QUOTED {quote}"
        yield "QUOTED: /(.|\\n)*/"
    else:
        yield f"quoted: {quote} quoted_end"
        yield "quoted_end[lazy]: QUOTED"
        yield f"QUOTED: /(.|\\n)*{text_pattern(tags.quote)}/"


def _json_but_text(schema: Any, kinds: Sequence[str]) -> str:
    """Return a rule for the JSON values of a schema that aren't strings."""
    others = [kind for kind in kinds if kind != "string"]
    return value_rule({"type": others} if "string" in kinds else schema)


def _quoted(text: str) -> str:
    """Return a Lark string literal."""
    return json.dumps(text, ensure_ascii=False)


def _escaped(text: str) -> str:
    """Return a text as it is within a JSON string."""
    return _quoted(text)[1:-1]


def _required(schema: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of required properties."""
    names = schema.get("required")
    return names if isinstance(names, list) else ()


def _choices(schema: Any) -> list[Any]:
    """Return the values that `enum` or `const` lists; empty if there are none."""
    if not isinstance(schema, dict):
        return []
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return values if isinstance(values, list) else []


def _python_strings(schema: Any) -> dict[str, str]:
    """Return a Lark expression per quotation mark for a string schema; empty if unrestricted."""
    found = {mark: string_expression(schema, quote=mark) for mark in ('"', "'")}
    return {mark: expression for mark, expression in found.items() if expression}


def _scalar_texts(schema: Any, kinds: Sequence[str], *, is_python: bool) -> list[str]:
    """Return what may be written for a value of `enum` or `const`; empty if it is something else.

    Args:
        schema: Schema of the value.
        kinds: Types of the values that count.
        is_python: Whether strings have quotation marks.
    """
    values = _choices(schema)
    if any(isinstance(one, list | dict) for one in values):
        return []
    texts: list[str] = []
    for value in values:
        written = json.dumps(value, ensure_ascii=False)
        is_text = isinstance(value, str)
        if (is_text and "string" not in kinds) or (not is_text and kinds == ["string"]):
            continue  # it has other tags
        texts.append(value if is_text and not is_python else written)
        if is_text and is_python and written == f'"{value}"' and "'" not in value:
            texts.append(f"'{value}'")
    return texts
