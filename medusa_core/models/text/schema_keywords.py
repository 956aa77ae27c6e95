"""Remove and report the keywords of a JSON schema that a grammar can't enforce."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

# Formats that llguidance enforces; the standard calls all others annotations.
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"}
    | {"unknown"}
)
_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_MOST_BOUND = 1 << 62  # llguidance fails near the ends of int64

# Where subschemas are: an object of them, a list of them, or one (of `items`, also a list).
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLE = ("items", "additionalProperties", "additionalItems")

# Keywords that llguidance doesn't have, with the values that say nothing.
_SILENT: Mapping[str, tuple[Any, ...]] = {
    "uniqueItems": (False,),
    "unevaluatedProperties": (True, {}),
    "unevaluatedItems": (True, {}),
    "propertyNames": (True, {}),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "dependencies": ({},),
    "$recursiveAnchor": (True, False),
    "not": (False,),
    "$dynamicRef": (),
    "$recursiveRef": (),
    "contains": (),
    "minContains": (),
    "maxContains": (),
    "if": (),
    "then": (),
    "else": (),
}
# Keywords that say nothing where all of others are absent.
_PARTNERS = {
    "if": ("then", "else"),
    "then": ("if",),
    "else": ("if",),
    "minContains": ("contains",),
    "maxContains": ("contains",),
}
_LOOK_AROUND = re.compile(r"\(\?<?[=!]")
_ESCAPES = re.compile(r"\\(.)", re.DOTALL)
_CLASSES = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
# What Rust's regular expressions have and Python's don't.
_UNICODE_CLASS = re.compile(r"\\(?:[pP](?:\{[^}]*\}|.)|[ux]\{[^}]*\}|z)")
_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")


class Unenforced(NamedTuple):
    """A keyword that can't be enforced.

    Attributes:
        path: Path in the schema, such as `properties.name.pattern`.
        reason: Why not, as the end of a sentence; empty if grammars don't support the keyword.
    """

    path: str
    reason: str = ""

    @property
    def text(self) -> str:
        """Path and reason, as shown to users."""
        return f"`{self.path}` ({self.reason})" if self.reason else f"`{self.path}`"


class EnforcedSchema(NamedTuple):
    """The part of a schema that a grammar can enforce.

    Attributes:
        schema: The schema without keywords that constrain nothing or can't be enforced.
        unenforced: Removed keywords that would constrain values.
    """

    schema: Any
    unenforced: tuple[Unenforced, ...]


def enforced_schema(schema: Any, *, is_lenient: bool) -> EnforcedSchema:
    """Remove the keywords of a schema that a grammar can't enforce.

    Args:
        schema: The schema, of which size and depth have been checked.
        is_lenient: Also remove regular expressions that Python's `re` can't compile. Otherwise they
            are kept for the grammar compiler to accept or refuse, since its dialect differs.
    """
    cleaner = _Cleaner(schema, is_lenient)
    return EnforcedSchema(cleaner.clean(schema, ""), tuple(cleaner.unenforced))


class _Cleaner:
    """Traverses a schema and collects the removed keywords.

    Attributes:
        unenforced: As in `EnforcedSchema`.
    """

    def __init__(self, root: Any, is_lenient: bool) -> None:
        self.unenforced: list[Unenforced] = []
        self._root, self._is_lenient = root, is_lenient
        # References are relative to the nearest `$id`: then they aren't looked up.
        self._has_bases = any("$id" in one for one in _objects(root, is_root=True))

    def clean(self, schema: Any, path: str) -> Any:
        """Return a schema or subschema without the keywords; other values are returned as given."""
        if not isinstance(schema, dict):
            return schema
        found: dict[str, Any] = {}
        for keyword, value in schema.items():
            place = f"{path}.{keyword}" if path else keyword
            if _is_silent(keyword, value, schema):
                continue
            reason = self._obstacle(keyword, value)
            if reason is not None:
                self.unenforced.append(Unenforced(place, reason))
                continue
            found[keyword] = self._within(keyword, _bounded(keyword, value), place)
        return found

    def _within(self, keyword: str, value: Any, path: str) -> Any:
        """Return a keyword's value, with the subschemas in it cleaned."""
        if keyword in _MAPS and isinstance(value, dict):
            return self._map(keyword, value, path)
        if keyword in _LISTS and isinstance(value, list):
            return [self.clean(one, f"{path}[{index}]") for index, one in enumerate(value)]
        if keyword in _SINGLE:
            return self.clean(value, path)
        return value

    def _map(self, keyword: str, schemas: dict[str, Any], path: str) -> dict[str, Any]:
        """Clean the subschemas of a keyword such as `properties`; drop unusable patterns."""
        found = {}
        for name, schema in schemas.items():
            reason = self._pattern_obstacle(name) if keyword == "patternProperties" else None
            if reason is None:
                found[name] = self.clean(schema, f"{path}.{name}")
            else:
                self.unenforced.append(Unenforced(f"{path}.{name}", reason))
        return found

    def _obstacle(self, keyword: str, value: Any) -> str | None:
        """Return why a keyword can't be enforced; None if it can."""
        if keyword in _SILENT:
            return ""
        if keyword == "pattern" and isinstance(value, str):
            return self._pattern_obstacle(value)
        if keyword == "enum" and value == []:
            return "no value is allowed"
        if keyword == "type":
            kinds = value if isinstance(value, list) else [value]
            unknown = [kind for kind in kinds if kind not in _TYPES]
            return f"no such type: {str(unknown[0])[:40]}" if unknown else None
        if keyword == "$ref" and isinstance(value, str) and self._is_dangling(value):
            return f"nothing is at {value[:80]}"
        if keyword in ("minimum", "exclusiveMinimum") and _is_beyond(value, 1):
            return "too large"
        if keyword in ("maximum", "exclusiveMaximum") and _is_beyond(value, -1):
            return "too small"
        return None

    def _pattern_obstacle(self, pattern: str) -> str | None:
        """Return why a regular expression can't be enforced; None if it can."""
        outside = _CLASSES.sub("", re.sub(r"\\[\[\]]", "", pattern))
        if _LOOK_AROUND.search(re.sub(r"\\[\\(]", "", outside)):
            return "look-around"
        for name in _ESCAPES.findall(outside):
            if name in "bB":
                return "word boundaries"
            if name in "123456789k":
                return "back-references"
        if self._is_lenient and not _is_regex(pattern):
            return "no regular expression"
        return None

    def _is_dangling(self, reference: str) -> bool:
        """Whether a JSON pointer resolves to nothing; other references aren't looked up."""
        if self._has_bases or not reference.startswith("#/"):
            return False
        found = self._root
        for step in reference[2:].split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name in map(str, range(len(found))):
                found = found[int(name)]
            else:
                return True
        return False


def _is_silent(keyword: str, value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a keyword constrains nothing, although llguidance would refuse it."""
    if keyword == "format":
        return isinstance(value, str) and value not in _FORMATS
    if keyword == "$schema":
        return not (isinstance(value, str) and "//json-schema.org/" in value)
    if any(value is one or (value == one and one == {}) for one in _SILENT.get(keyword, ())):
        return True
    return keyword in _PARTNERS and not any(one in schema for one in _PARTNERS[keyword])


def _bounded(keyword: str, value: Any) -> Any:
    """Return a numeric bound that llguidance can compile: ±2⁶² in place of int64's limits."""
    if keyword in ("minimum", "exclusiveMinimum") and _is_beyond(value, -1):
        return -_MOST_BOUND
    if keyword in ("maximum", "exclusiveMaximum") and _is_beyond(value, 1):
        return _MOST_BOUND
    return value


def _is_beyond(value: Any, sign: int) -> bool:
    """Whether a bound is a number beyond what llguidance compiles, in the direction of `sign`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and value * sign > _MOST_BOUND


def _is_regex(pattern: str) -> bool:
    """Whether a JSON Schema pattern also compiles in Python's dialect."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sets that Python will read otherwise one day
        try:
            re.compile(_NAMED_GROUP.sub("(?P<", _UNICODE_CLASS.sub("x", pattern)))
        except (re.error, RecursionError, OverflowError):
            return False
    return True


def _objects(value: Any, *, is_root: bool) -> Iterator[Mapping[str, Any]]:
    """Yield the objects nested in a schema."""
    if isinstance(value, dict):
        if not is_root:
            yield value
        for one in value.values():
            yield from _objects(one, is_root=False)
    elif isinstance(value, list):
        for one in value:
            yield from _objects(one, is_root=False)
