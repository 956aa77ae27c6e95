"""Built-in tools: calculator, date and time."""

import json
import math
import time
from datetime import UTC, datetime

import pytest

from medusa_core.errors import RequestError
from medusa_core.tools.builtin.calculator import evaluate
from medusa_core.tools.builtin.date_time import describe_time
from medusa_core.tools.builtin_tool import builtin_tools, run_builtin

VALUES = {
    "2 + 3 * 4": 14,
    "(2 + 3) * 4": 20,
    "7 // 2 + 7 % 2": 4,
    "-2 ** 2": -4,
    "2^10": 1024,
    "3 × 4 ÷ 6 − 1": 1.0,
    "2 ** 0.5": math.sqrt(2),
    "sin(pi / 2) + log(e)": 2.0,
    "factorial(20)": math.factorial(20),
    "round(2.567, 2)": 2.57,
    "max(1, 2, 3) - min(4, 5)": -1,
    "10 ** 100": 10**100,
    "factorial(400) // factorial(399)": 400,
    "2 ** 4000 % 1000": 2**4000 % 1000,
    "(-1) ** 5001": -1,
    "round(7, -1000000000)": 0,
}
REFUSED = (
    *("", "1 +", "1 / 0", "2 ** 1e400", "9 ** 9 ** 9", "factorial(1e9)", "sqrt(-1)", "(-8) ** 0.5"),
    *("__import__('os')", "(1).__class__", "x", "True + 1", "'a' * 9", "[1]", "lambda: 1", "1 < 2"),
    *(
        "max(*[1])",
        "round(number=1)",
        "1e999",
        "1 " * 600,
        "-" * 900 + "1",
        "(" * 400,
        "0x" + "f" * 990 + "* 16 ** 40",
    ),
    "*".join(["10**1000"] * 9),
)


@pytest.mark.parametrize("expression", VALUES)
def test_expressions_have_values(expression: str) -> None:
    assert evaluate(expression) == pytest.approx(VALUES[expression], rel=1e-15)


@pytest.mark.parametrize("expression", REFUSED)
def test_all_else_is_refused_at_once(expression: str) -> None:
    start_s = time.process_time()
    with pytest.raises(ValueError, match=r"expression|value"):
        evaluate(expression)
    assert time.process_time() - start_s < 1.0


def test_results_are_texts_for_the_model() -> None:
    result = run_builtin("calculate", json.dumps({"expression": "1 / 3"}))
    assert (result.text, result.is_error) == ("0.333333333333333", False)
    whole = run_builtin("calculate", json.dumps({"expression": "2 ** 64"}))
    assert whole.text == "18446744073709551616"


@pytest.mark.parametrize(
    "arguments",
    ["", "[]", "no JSON", '{"expression": 5}', '{"expression": "1", "x": 1}', "[" * 9999],
)
def test_invalid_arguments_are_an_error_that_the_model_reads(arguments: str) -> None:
    result = run_builtin("calculate", arguments)
    assert result.is_error
    assert result.text.startswith("The call failed: ")


def test_the_time_is_told_in_any_zone() -> None:
    noon = datetime(2026, 11, 29, 12, 0, 5, tzinfo=UTC)
    assert describe_time({"zone": "UTC"}, lambda: noon) == "Sunday, 2026-11-29T12:00:05+00:00 (UTC)"
    pytest.importorskip("zoneinfo").ZoneInfo("Asia/Tokyo")
    tokyo = describe_time({"zone": "Asia/Tokyo"}, lambda: noon)
    assert tokyo == "Sunday, 2026-11-29T21:00:05+09:00 (Asia/Tokyo)"
    assert "2026-11-29" in describe_time({}, lambda: noon)
    for zone in ("Atlantis", "../../etc/passwd", "a\0b", "x" * 9999):
        assert run_builtin("date_time", json.dumps({"zone": zone})).is_error


def test_tools_are_described_by_schemas_in_a_stable_order() -> None:
    specs = builtin_tools().specs
    assert [spec.name for spec in specs] == ["calculate", "date_time", "web_page", "web_search"]
    for spec in specs:
        described = json.loads(spec.tool.as_text)
        assert described["name"] == spec.name
        assert described["parameters"]["type"] == "object"
        assert spec.tool.as_text == spec.tool.as_text
    with pytest.raises(RequestError, match="no tool"):
        run_builtin("shell", "{}")
