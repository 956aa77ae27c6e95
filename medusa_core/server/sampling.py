"""How a request wants its answer decoded: the fields that all APIs share."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from medusa_core.messages import AUTO_GROWTH, GROWTHS, Advice, GenerateSettings
from medusa_core.server.fields import Fields
from medusa_core.server.limits import Limits

_MOST_SEED = (1 << 63) - 1
_LEAST_TOP_P = 1e-6  # 0 means the best token alone
_REPEATS = ("repetition_penalty", "repeat_penalty")  # vLLM's name, llama-server's
_NONE = "none"  # the drafter that never guesses


class RequestedSettings(NamedTuple):
    """What a request says of decoding.

    Attributes:
        settings: How to decode.
        open_settings: Names of settings that it leaves to the model's makers; see `ChatRequest`.
    """

    settings: GenerateSettings
    open_settings: frozenset[str]


def read_settings(
    fields: Fields, limits: Limits, max_tokens: int, stop: tuple[str, ...]
) -> RequestedSettings:
    """Read temperature, filters, penalties, biases, seed, thinking and `medusa`.

    Args:
        fields: The request.
        limits: What it may cost.
        max_tokens: Longest answer; 0 for what the context leaves.
        stop: Strings that end the answer.

    Raises:
        ApiError: A field has another type, or is out of range.
    """
    given: dict[str, float | int] = {}
    for name, low, high in (("temperature", 0, 2), ("top_p", 0, 1), ("min_p", 0, 1)):
        value = fields.number(name, low, high)
        given |= {} if value is None else {name: value}
    if "top_p" in given:
        given["top_p"] = max(_LEAST_TOP_P, given["top_p"])
    top_k = fields.whole("top_k", -1, 1 << 31)
    given |= {} if top_k is None else {"top_k": max(0, top_k)}
    for name in _REPEATS:
        repeats = fields.number(name, 0.01, 10)
        given |= {} if repeats is None else {"repetition_penalty": repeats}
    medusa = fields.record("medusa") or Fields({}, "medusa.")
    rule = medusa.text("rule")
    settings = GenerateSettings(
        **given,  # type: ignore[arg-type]
        rule=rule or "sample",
        drafter=medusa.text("drafter") if medusa.flag("drafts", default=True) else _NONE,
        tree_rows=medusa.whole("rows", 1, 1 << 16) or 0,
        growth=_growth(medusa),
        presence_penalty=fields.number("presence_penalty", -2, 2) or 0.0,
        frequency_penalty=fields.number("frequency_penalty", -2, 2) or 0.0,
        logit_bias=_biases(fields, limits),
        seed=_seed(fields),
        max_new_tokens=max_tokens,
        stop=stop,
        thinks=_thinks(fields),
    )
    open_settings = set(Advice._fields) - set(given) | (set() if rule else {"rule"})
    return RequestedSettings(settings, frozenset(open_settings))


def read_max_tokens(fields: Fields, limits: Limits, *names: str) -> int:
    """The longest answer that a request wants, under one of these names; 0 for any.

    Raises:
        ApiError: It is no such number.
    """
    for name in names:
        value = fields.whole(name, -1, limits.most_tokens)
        if value == 0:
            raise fields.invalid(name, "1 or more")
        if value is not None:
            return max(0, value)
    return 0


def read_stops(fields: Fields, limits: Limits, name: str) -> tuple[str, ...]:
    """The strings that end an answer.

    Raises:
        ApiError: They are none, or too many or too long.
    """
    stops = tuple(stop for stop in fields.texts(name, limits.most_stops) if stop)
    if any(len(stop) > limits.stop_chars for stop in stops):
        raise fields.invalid(name, f"at most {limits.stop_chars} characters long")
    return stops


def _seed(fields: Fields) -> int:
    """The seed; a new one where none is given, or a negative one, as llama-server has it."""
    seed = fields.whole("seed", -_MOST_SEED, _MOST_SEED)
    return secrets.randbits(62) if seed is None or seed < 0 else seed


def _growth(medusa: Fields) -> str:
    growth = medusa.text("growth", AUTO_GROWTH)
    if growth not in GROWTHS:
        raise medusa.invalid("growth", f"one of {', '.join(GROWTHS)}")
    return growth


def _thinks(fields: Fields) -> bool | None:
    template = fields.record("chat_template_kwargs") or Fields({})
    for place in (fields, template):
        if place.has("enable_thinking"):
            return place.flag("enable_thinking")
    return None


def _biases(fields: Fields, limits: Limits) -> tuple[tuple[int, float], ...]:
    biases = fields.record("logit_bias")
    if biases is None:
        return ()
    if len(biases.values) > limits.most_biases:
        raise fields.invalid("logit_bias", f"of at most {limits.most_biases} tokens")
    found = []
    for token in biases.values:
        if not token.isascii() or not token.isdigit() or len(token) > 9:
            raise fields.invalid("logit_bias", "an object of token ids and numbers")
        bias = biases.number(token, -100, 100)
        found += [] if bias is None else [(int(token), bias)]
    return tuple(found)
