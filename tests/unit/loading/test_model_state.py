"""Which model is loaded, told from events alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.loading.choice import (
    ModelChoice,
    demo_choice,
)
from medusa_core.loading.state import (
    ModelState,
    Phase,
)
from medusa_core.messages import (
    Calibrate,
    Calibrated,
    DrafterChoice,
    DrafterSpeed,
    Failed,
    ModelLoaded,
    Race,
    Raced,
    Unloaded,
)
from tests.support.messages import EXAMPLES

NAMES = ("composite", "none")
CHOICES = tuple(DrafterChoice(name, name, name) for name in NAMES)
SPEEDS = tuple(DrafterSpeed(name, 1.0, 9.0, 1.0, 0.0) for name in reversed(NAMES))
EXAMPLE = next(example for example in EXAMPLES if isinstance(example, ModelLoaded))


def loaded(state: ModelState, drafters: tuple[DrafterChoice, ...]) -> Calibrate:
    """The model comes, and is to be measured."""
    command = state.load()
    ids = {"session_id": command.session_id, "request_id": command.request_id}
    follows = state.handle(replace(EXAMPLE, drafters=drafters, **ids))
    assert isinstance(follows, Calibrate)
    return follows


@pytest.mark.parametrize(
    ("name", "path", "shown"),
    [
        ("x-q4_0.gguf", "x-q4_0.gguf", EXAMPLE.name),
        ("x-q4_0", "x-q4_0.gguf", EXAMPLE.name),
        ("Tiny Chat Q4_0", "x-q4_0.gguf", "Tiny Chat Q4_0"),
        ("tiny", "tiny", "tiny"),
    ],
)
def test_a_loaded_file_is_named_by_its_metadata(name: str, path: str, shown: str) -> None:
    state = ModelState(ModelChoice(name, Path(path)))
    loaded(state, CHOICES)
    assert state.choice.name == shown
    assert state.choice.model_dir == Path(path)


def test_after_calibration_drafters_are_compared_and_the_fastest_becomes_the_default(
    tmp_path: Path,
) -> None:
    state = ModelState(demo_choice(), calibrations_dir=tmp_path)
    calibrate = loaded(state, CHOICES)
    race = state.handle(Calibrated(calibrate.session_id, calibrate.request_id, ((1, 0.1),), 0.1))
    assert isinstance(race, Race)
    raced = Raced(race.session_id, race.request_id, CHOICES[::-1], SPEEDS)
    assert state.handle(raced) is None
    assert state.status.loaded is not None
    assert [drafter.name for drafter in state.status.loaded.drafters] == ["none", "composite"]
    assert state.status.loaded.speeds == SPEEDS


def test_measurements_can_be_repeated(tmp_path: Path) -> None:
    state = ModelState(demo_choice(), calibrations_dir=tmp_path)
    assert state.measure_again() is None, "no model is loaded"
    first = loaded(state, CHOICES)
    race = state.handle(Calibrated(first.session_id, first.request_id, ((1, 0.1),), 0.1))
    assert isinstance(race, Race)
    state.handle(Raced(race.session_id, race.request_id, CHOICES, SPEEDS))
    again = state.measure_again()
    assert isinstance(again, Calibrate)
    assert again.is_anew
    assert state.status.calibrated is None
    assert state.status.loaded is not None
    assert state.status.loaded.speeds == ()
    calibrated = Calibrated(again.session_id, again.request_id, ((1, 0.2),), 0.2)
    assert isinstance(state.handle(calibrated), Race)


@pytest.mark.parametrize(("keeps", "drafters"), [(False, CHOICES), (True, CHOICES[:1])])
def test_drafters_are_not_compared_if_nothing_is_saved_or_only_one_drafts(
    tmp_path: Path, keeps: bool, drafters: tuple[DrafterChoice, ...]
) -> None:
    state = ModelState(demo_choice(), calibrations_dir=tmp_path if keeps else None)
    calibrate = loaded(state, drafters)
    measured = Calibrated(calibrate.session_id, calibrate.request_id, ((1, 0.1),), 0.1)
    assert state.handle(measured) is None


def _loads(state: ModelState, request_id: str) -> Calibrate | None:
    follows = state.handle(replace(EXAMPLE, session_id="model", request_id=request_id))
    assert follows is None or isinstance(follows, Calibrate)
    return follows


def test_only_the_demo_model_drafts_although_it_is_slower() -> None:
    state = ModelState(demo_choice())
    assert state.load().shows_drafts
    assert not state.load(ModelChoice("Other", Path("/other"))).shows_drafts


def test_a_refused_model_is_replaced_by_the_previous_one() -> None:
    state = ModelState(demo_choice())
    first = state.load()
    _loads(state, first.request_id)
    other = ModelChoice("Other", Path("/other"))
    second = state.load(other)
    assert state.choice == other
    state.handle(Failed(second.session_id, second.request_id, "ModelError", "No.", ""))
    assert state.status.phase is Phase.FAILED
    assert _loads(state, first.request_id) is not None
    assert (state.status.phase, state.choice) == (Phase.READY, demo_choice())
    assert state.status.failed is not None, "it can still be told why"
    assert state.choice_of(second.request_id) == other
    assert state.choice_of("unknown") is None


def test_a_refusal_stays_shown_if_the_previous_model_cannot_be_restored() -> None:
    state = ModelState(demo_choice())
    first = state.load()
    _loads(state, first.request_id)
    second = state.load(ModelChoice("Other", Path("/other")))
    failed = Failed(second.session_id, second.request_id, "ModelError", "No.", "")
    state.handle(failed)
    gone = Unloaded(first.session_id, first.request_id, 0)
    state.handle(gone)
    assert (state.status.phase, state.status.failed) == (Phase.FAILED, failed)


def test_of_two_requested_models_the_last_one_is_loaded() -> None:
    state = ModelState(demo_choice())
    choices = [ModelChoice(name, Path(f"/{name}")) for name in ("first", "second")]
    first, second = (state.load(choice) for choice in choices)
    assert _loads(state, first.request_id) is None
    assert (state.status.phase, state.choice) == (Phase.LOADING, choices[1])
    assert _loads(state, second.request_id) is not None
    assert (state.status.phase, state.choice) == (Phase.READY, choices[1])
    assert [state.choice_of(load.request_id) for load in (first, second)] == choices


def test_the_first_of_two_requested_models_answers_if_the_last_is_refused() -> None:
    state = ModelState(demo_choice())
    first, second = (state.load(ModelChoice(name, Path(f"/{name}"))) for name in "AB")
    _loads(state, first.request_id)
    state.handle(Failed(second.session_id, second.request_id, "ModelError", "No.", ""))
    _loads(state, first.request_id)
    assert (state.status.phase, state.choice.name) == (Phase.READY, "A")
