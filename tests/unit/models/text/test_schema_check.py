"""JSON schemas that a user wrote into the settings of a chat."""

import pytest

from medusa_core.errors import GrammarError
from medusa_core.models.text.schema_check import check_json_schema


def test_a_usable_schema_passes() -> None:
    check_json_schema('{"type": "object", "properties": {"name": {"type": "string"}}}')
    check_json_schema("{}")


@pytest.mark.parametrize(
    ("text", "reason", "hint"),
    [
        ('{\n  "type": }', "line 2, at character 11", "Correct it"),
        ("", "line 1, at character 1", "Correct it"),
        ("[1]", "no JSON object", "Begin it with a brace"),
        ("[" * 100_000, "nested too deeply", "smaller"),
        ('{"items": ' * 40 + "{}" + "}" * 40, "nested too deeply", "smaller"),
        ('{"$ref": "http://example.com/a"}', "isn't fetched", r"\$defs"),
        ('{"type": "objekt"}', "no such type: objekt", "Leave them out"),
        ('{"uniqueItems": true}', "uniqueItems", "Leave them out"),
    ],
)
def test_an_unusable_one_is_refused_with_what_to_do(text: str, reason: str, hint: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        check_json_schema(text)
    assert hint.replace("\\", "") in caught.value.hint
