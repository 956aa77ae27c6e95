"""Texts keep their template and values: in errors, pickles and JSON."""

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from medusa_core.errors import HubError, MedusaError
from medusa_core.i18n import Translatable, text_from_json, text_to_json, tr

NESTED = tr("{0} isn't complete: {1}.", "a/b", tr("{0:,} of {1:,} bytes", 1_500, 2_000))


def parts(text: str) -> object:
    """Template and values, down to the innermost text."""
    if not isinstance(text, Translatable):
        return text
    return text.template, [parts(v) if isinstance(v, str) else v for v in text.values]


def test_a_texts_string_is_its_formatted_template() -> None:
    assert NESTED == "a/b isn't complete: 1,500 of 2,000 bytes."
    assert tr("Names in {braces} stay.") == "Names in {braces} stay."
    assert tr("{0:.40}", "x" * 50) == "x" * 40


def test_values_of_a_text_are_numbers_or_strings() -> None:
    text = tr("{0} {1} {2} {3} {4:,}", Path("a"), 1.5, None, ValueError("b"), np.int64(1_000))
    assert text == "a 1.5 None b 1,000"
    assert text.values == ("a", 1.5, "None", "b", 1_000)
    assert json.dumps(text_to_json(text))


@pytest.mark.parametrize("text", [NESTED, tr("No model is loaded."), "plain", ""])
def test_a_text_survives_pickles_copies_and_json(text: str) -> None:
    assert parts(pickle.loads(pickle.dumps(text))) == parts(text)  # noqa: S301
    assert parts(copy.deepcopy(text)) == parts(text)
    loaded = text_from_json(json.loads(json.dumps(text_to_json(text))))
    assert loaded == text
    assert not getattr(text, "values", ()) or parts(loaded) == parts(text)


@pytest.mark.parametrize("raw", [["{0} {1}", "a"], ["{", 1], ["{0:,}", "a"], ["{0.x}", 1], [1, 2]])
def test_json_that_cannot_be_formatted_is_shown_as_it_is(raw: list[object]) -> None:
    assert text_from_json(raw) == str(raw[0])
    assert text_from_json([]) == ""


def test_an_error_passes_its_template_to_the_text_that_quotes_it() -> None:
    error = HubError(NESTED, tr("Choose {0}.", "c"))
    quoting = tr("It failed: {0}", error)
    assert quoting == "It failed: a/b isn't complete: 1,500 of 2,000 bytes. Choose c."
    assert parts(quoting.values[0]) == ("{0} {1}", [parts(error.message), parts(error.hint)])
    assert parts(pickle.loads(pickle.dumps(error)).message) == parts(NESTED)  # noqa: S301
    assert parts(tr("{0}", ValueError(NESTED)).values[0]) == parts(NESTED)
    literal = tr("{0}: {1}", "a", HubError("No model is loaded."))
    assert parts(literal.values[1]) == ("No model is loaded.", [])


def test_an_error_shortens_values_and_not_the_template() -> None:
    message = MedusaError(tr("{0} isn't complete: {1}.", "a\udc80", "x" * 2_000)).message
    assert isinstance(message, Translatable)
    assert message.template == "{0} isn't complete: {1}."
    assert message.startswith("a\\udc80 isn't complete: xxx")
    assert message.endswith("x.")
    assert " … " in message
    assert 200 < len(message) <= 500
    assert len(MedusaError(tr("{0}", 10**600)).message) == 500
