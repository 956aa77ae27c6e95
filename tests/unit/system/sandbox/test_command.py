"""Commands that a program starts tell it what failed."""

import argparse

import pytest

from medusa_core.cli.program import run
from medusa_core.errors import MedusaError
from medusa_core.i18n import tr
from medusa_core.system.sandbox.command import JSON_ERRORS, problem_of

MESSAGE = tr("{0} holds no batch.", "folder")


def fail(_: argparse.Namespace) -> int:
    raise MedusaError(MESSAGE, "Choose another one.")


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    parser = argparse.ArgumentParser()
    parser.set_defaults(run=fail, checks=(), verbose=False)
    assert run(parser, []) == 1
    return capsys.readouterr().err


def test_an_error_keeps_its_template_for_the_program_that_started_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(JSON_ERRORS, "1")
    problem = problem_of(f"Loading\n{printed(capsys)}")
    assert problem == (MESSAGE, "Choose another one.")
    assert getattr(problem[0], "template", "") == MESSAGE.template


def test_an_error_is_printed_as_sentences_for_people(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(JSON_ERRORS, raising=False)
    output = printed(capsys)
    assert output == "error: folder holds no batch.\n  Choose another one.\n"
    assert problem_of(output) == (MESSAGE, "Choose another one.")
