"""Calculator: evaluates an arithmetic expression."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from medusa_core.tools.builtin_tool import BuiltinTool, CallContext

Number = int | float

_MOST_CHARS = 1_000
_MOST_DEPTH = 60
_MOST_BITS = 4_096  # of an integer
_MOST_FACTORIAL = 400
_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "expression": {
            "type": "string",
            "description": "Such as 2 * (3 + 4) ** 2 / sqrt(7), with the names pi and e.",
        }
    },
    "required": ["expression"],
    "additionalProperties": False,
}


def _power(base: Number, exponent: Number) -> Number:
    """Raise to a power, unless the result is a huge integer."""
    is_whole = isinstance(exponent, int) and exponent > 0
    if is_whole and isinstance(base, int) and (base.bit_length() - 1) * exponent > _MOST_BITS:
        raise OverflowError("the power is too large")
    result = base**exponent
    if isinstance(result, complex):
        raise ValueError("the result is no real number")  # noqa: TRY004 - as for math's domains
    return result


def _round(number: Number, *digits: int) -> Number:
    """Round; Python would compute the power of ten of a negative number of digits."""
    return round(number, *(max(-_MOST_BITS, min(count, _MOST_BITS)) for count in digits))


def _factorial(number: Number) -> Number:
    """Return a factorial, unless it is huge."""
    if number > _MOST_FACTORIAL:
        raise OverflowError("the factorial is too large")
    return math.factorial(int(number)) if number == int(number) else math.gamma(number + 1)


_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_UNARY: dict[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_NAMES: dict[str, Number] = {"pi": math.pi, "e": math.e, "tau": math.tau}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan")},
    **{name: getattr(math, name) for name in ("sinh", "cosh", "tanh", "exp", "log", "log2")},
    **{name: getattr(math, name) for name in ("log10", "sqrt", "floor", "ceil", "hypot")},
    **{name: getattr(math, name) for name in ("degrees", "radians", "gcd", "lcm", "atan2")},
    "factorial": _factorial,
    "abs": abs,
    "round": _round,
    "min": min,
    "max": max,
}


def evaluate(expression: str) -> Number:
    """Return the value of an expression of numbers, operators and the functions above.

    Raises:
        ValueError: It is no such expression, or has no finite value.
    """
    text = expression.strip().replace("^", "**").replace("×", "*").replace("÷", "/")
    text = text.replace("−", "-")
    if len(text) > _MOST_CHARS:
        raise ValueError("the expression is too long: calculate it in parts")
    try:
        value = _value(ast.parse(text, mode="eval").body, 0)
        if isinstance(value, float) and not math.isfinite(value):
            raise OverflowError("the result is infinite or undefined")
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError("this is no expression of + - * / ** and ()") from error
    except (ArithmeticError, ValueError, TypeError) as error:
        raise ValueError(f"the expression has no value: {error}") from error
    return value


def _value(node: ast.expr, depth: int) -> Number:
    """Evaluate a node of the expression's syntax tree."""
    if depth > _MOST_DEPTH:
        raise ValueError("it is nested too deeply")
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            found: Number = number
        case ast.Name(id=name) if name in _NAMES:
            found = _NAMES[name]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            found = _UNARY[type(op)](_value(operand, depth + 1))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            found = _BINARY[type(sign)](_value(left, depth + 1), _value(right, depth + 1))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            found = _FUNCTIONS[name](*(_value(argument, depth + 1) for argument in args))
        case _:
            raise ValueError("it has something else than numbers, operators and known functions")
    if isinstance(found, int) and found.bit_length() > _MOST_BITS:
        raise OverflowError("a number is too large")
    return found


def _run(arguments: Mapping[str, Any], _: CallContext) -> str:
    """Return the value of the expression as text."""
    value = evaluate(arguments["expression"])
    return repr(value) if isinstance(value, int) else f"{value:.15g}"


SPEC = BuiltinTool(
    "calculate",
    "Calculator",
    "Evaluates an arithmetic expression exactly: + - * / // % ** and functions such as sqrt, log, "
    "sin (radians), factorial, round, min, max.",
    _SCHEMA,
    _run,
)
