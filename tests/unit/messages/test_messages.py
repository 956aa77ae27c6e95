"""Messages are frozen and picklable, so that the worker may become a process."""

import dataclasses
import math
import pickle
from array import array
from typing import Any, get_args

import pytest

from medusa_core import errors, messages
from medusa_core.messages import (
    NO_ODDS,
    TARGET,
    Odds,
    StepDone,
    StepTimes,
    shown_text,
)
from tests.support.messages import DONE, EXAMPLES, IDS, TRACE


def test_every_message_has_an_example() -> None:
    kinds = {*get_args(messages.Command), *get_args(messages.Event)}
    assert {type(example) for example in EXAMPLES} == kinds


def test_a_message_survives_pickling_and_is_immutable() -> None:
    for message in EXAMPLES:
        assert pickle.loads(pickle.dumps(message)) == message  # noqa: S301 - our own bytes
        assert hash(message) == hash(message)
        with pytest.raises(AttributeError):
            message.session_id = "other"  # type: ignore[misc]
        assert not vars_of(message)


def test_traces_of_two_tokenizers_are_equal_if_everything_else_is() -> None:
    other = TRACE._replace(pieces={})
    assert other == TRACE
    assert not other != TRACE  # noqa: SIM202 - tuples have their own
    assert hash(other) == hash(TRACE)
    packed_otherwise = Odds(array("f", [0.1, 0.5]).tobytes(), (1,))
    assert other._replace(odds=packed_otherwise) == TRACE
    unknown = TRACE._replace(odds=NO_ODDS)
    not_finite_error = Odds(array("f", [math.nan]).tobytes(), (0,))  # heads may be damaged
    for odds in (NO_ODDS, Odds(array("f", [0.5]).tobytes(), (-1,)), not_finite_error):
        assert TRACE._replace(odds=odds).nodes[1].probability is None
        assert TRACE._replace(odds=odds) == unknown
    later = TRACE._replace(step=2), TRACE._replace(step_s=0.6)
    for different in (*later, unknown, TRACE._replace(judged=bytes(88)), tuple(TRACE)):
        assert different != TRACE
        assert different != TRACE


def vars_of(message: Any) -> bool:
    """Return whether an object has a `__dict__`."""
    return hasattr(message, "__dict__")


def test_rates_of_an_answer_count_the_documented_steps() -> None:
    assert DONE.mean_acceptance_length == 2.0
    assert DONE.decode_tokens_per_s == 4.0
    assert DONE.tokens_per_s == 3.0
    unstepped = dataclasses.replace(DONE, num_steps=0, accept_lengths=(), decode_s=0.0)
    assert unstepped.mean_acceptance_length == unstepped.decode_tokens_per_s == 0.0


def all_errors(kind: type[errors.MedusaError]) -> list[type[errors.MedusaError]]:
    return [kind, *(below for sub in kind.__subclasses__() for below in all_errors(sub))]


def test_an_error_keeps_its_hint_and_data_when_pickled() -> None:
    for kind in all_errors(errors.MedusaError):
        data = {"num_tokens": 3} | ({"stage": "s0"} if kind is errors.StageLostError else {})
        error = pickle.loads(pickle.dumps(kind("What.", "Do.", **data)))  # noqa: S301
        assert type(error) is kind
        assert (error.message, error.hint, error.data) == ("What.", "Do.", data)
        assert str(error) == "What. Do."


def test_the_tree_in_the_docstring_names_every_error() -> None:
    assert errors.__doc__ is not None
    for kind in all_errors(errors.MedusaError):
        assert kind.__name__ in errors.__doc__


def test_displayable_text_ends_before_a_withheld_or_incomplete_character() -> None:
    times = StepTimes(0.0, 0.0, 0.0, 0.0)
    whole = "One é".encode()

    def step(piece: bytes, num_visible_bytes: int) -> StepDone:
        numbers = (piece,), (TARGET,), num_visible_bytes, 1, (TARGET,), times, 0.1, 1
        return StepDone(*IDS, 1, (1,), *numbers)

    assert shown_text(()) == ""
    assert shown_text((step(whole[:4], 3), step(whole[4:], len(whole)))) == "One é"
    assert shown_text((step(whole[:4], 4), step(whole[4:], 5))) == "One "
    assert shown_text((step(whole, 2),)) == "On"
