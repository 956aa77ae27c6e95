"""A phrase table of any texts, for any model."""

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from medusa_core.cli.train import add_train_arguments
from medusa_core.errors import MedusaError, TrainingError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.models.datastore.phrases import (
    FILE,
    read_phrases,
)
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.system.resources import demo_model_dir
from medusa_core.system.user_folders import places
from medusa_core.training import ngrams
from medusa_core.training.answers import TrainingQuestion, own_answers
from medusa_core.training.ngrams import count_texts
from medusa_core.training.phrase_counts import OwnText, PhraseRecipe, count_phrases
from medusa_core.training.texts import _PART_CHARS, read_texts
from tests.support.engine.laws import decode, plainly, user_says
from tests.support.models.tiny import TinySpec, write_tiny

OUTPUT = "The lighthouse keeper counted the ships again. "


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("model") / "m", TinySpec())


def run(*words: object) -> int:
    """`train` with these words."""
    parser = argparse.ArgumentParser()
    add_train_arguments(parser)
    args = parser.parse_args([str(word) for word in words])
    code: int = args.run(args)
    return code


def test_texts_of_every_common_format_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.md").write_text("# three")
    (tmp_path / "skipped.csv").write_text("no;text")
    rows = [
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "four"}]},
        {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "five"}]},
        {"text": "six"},
        {"instruction": "q", "output": "seven"},
        {"messages": [{"role": "user", "content": "nobody answered"}]},
        "eight",
    ]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "d.json").write_text(json.dumps([{"response": "nine"}]))
    found = list(read_texts([tmp_path]))
    assert found == ["one\ntwo\n", "# three", *["four", "five", "six", "seven", "eight", "nine"]]


def test_long_texts_are_read_completely_in_parts_that_end_with_lines(tmp_path: Path) -> None:
    path, text = tmp_path / "a.txt", "".join(f"line {n} {'x' * (n % 90)}\n" for n in range(900))
    path.write_text(text)
    parts = list(read_texts([path]))
    assert "".join(parts) == text
    assert len(parts) > 5
    assert all(part.endswith("\n") and len(part) <= _PART_CHARS for part in parts)
    path.write_text("y" * 10_000)
    assert "".join(read_texts([path])) == "y" * 10_000


BAD: dict[str, tuple[str, Callable[[Path], object]]] = {
    "missing": ("There is no file", lambda path: None),
    "bytes": ("can't be read", lambda path: path.write_bytes(b"\xff\xfe\xff")),
    "zeros": ("is no text", lambda path: path.write_bytes(bytes(50))),
    "no JSON": ("line 2, is no JSON", lambda path: path.write_text('{"text": "a"}\n{oops')),
    "deep": ("is no JSON", lambda path: path.write_text("[" * 100_000)),
    "no text": ("line 1 holds no text", lambda path: path.write_text('{"n": 1}')),
    "number": ("line 1 holds no text", lambda path: path.write_text("7")),
    "empty": ("hold no text", lambda path: path.write_text("")),
    "once": ("said twice", lambda path: path.write_text('{"text": "abc"}')),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files_are_reported_by_name(model: Path, tmp_path: Path, kind: str) -> None:
    path, (reported, write) = tmp_path / "odd.jsonl", BAD[kind]
    write(path)
    with pytest.raises(TrainingError, match=reported) as caught:
        run("ngrams", "--data", path, "--model", model, "--out", tmp_path / "out")
    assert caught.value.hint
    assert not (tmp_path / "out" / FILE).exists()


def test_bad_models_limits_and_folders_are_reported(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(OUTPUT * 5)
    with pytest.raises(MedusaError):
        run("ngrams", "--data", path, "--model", tmp_path, "--out", tmp_path / "out")
    bounded = ("ngrams", "--data", path, "--model", model, "--out", tmp_path / "out")
    with pytest.raises(TrainingError, match="nothing"):
        run(*bounded, "--most-tokens", 0)
    with pytest.raises(TrainingError, match="can't be written"):
        run(*bounded[:-1], path)


def test_a_phrase_table_has_the_texts_counts(model: Path) -> None:
    texts = [OUTPUT * 3, "Nobody came. " + OUTPUT] * 30
    recipe = PhraseRecipe(longest=4)
    found = count_texts(model, texts, recipe, 1 << 30)
    encode = ModelFiles.open(model).tokenizer.encode
    counted = [OwnText(tuple(encode(t)), 0) for n, t in enumerate(texts, 1) if n % 20]
    wanted = count_phrases(counted, recipe)
    assert (found.phrases.keys == wanted.keys).all()
    assert (found.phrases.tokens == wanted.tokens).all()
    assert found.is_whole
    assert found.num_tokens == sum(len(encode(text)) for text in texts)
    assert sum(found.phrases.accuracies[0.0][0]) > 0.9  # held-out texts say the same


def test_a_phrase_table_stays_within_its_limits(model: Path) -> None:
    texts = [f"Number {n} of {n * 7} and {n % 5}. " * 3 for n in range(200)]
    whole = count_texts(model, texts, PhraseRecipe(), 1 << 30)
    few = count_texts(model, texts, PhraseRecipe(most_contexts=20), 1 << 30)
    assert len(whole.phrases) > 100
    assert len(few.phrases) == 20
    assert set(few.phrases.keys) < set(whole.phrases.keys)
    cut = count_texts(model, texts, PhraseRecipe(), 500)
    assert (cut.num_tokens, cut.is_whole) == (500, False)


def test_tokens_outside_of_the_vocabulary_split_the_text(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = {"a": [5, 6, 7, 1 << 19, 8, 9]}
    monkeypatch.setattr(Tokenizer, "encode", lambda _, text: lines[text])
    found = count_texts(model, ["a"] * 4, PhraseRecipe(longest=2), 1 << 30)
    assert set(found.phrases.tokens.tolist()) == {6, 7, 9}


def test_a_trained_table_drafts_and_doesnt_change_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pebble = load_target(demo_model_dir(), options=LoadOptions("float32"))
    settings = GenerateSettings(max_new_tokens=80)
    requested = user_says("Tell me a story about a brave little boat")
    plain = decode(pebble, plainly(settings), requested)
    rows = "\n".join([json.dumps({"text": plain.done.text})] * 3)
    (tmp_path / "said.jsonl").write_text(rows)
    assert run("ngrams", "--data", tmp_path / "said.jsonl", "--out", tmp_path / "table") == 0
    assert "contexts" in capsys.readouterr().out
    assert read_phrases(tmp_path / "table", pebble.config.vocab_size) is not None
    options = LoadOptions("float32", phrases_dir=tmp_path / "table")
    target = load_target(demo_model_dir(), options=options)
    drafted = decode(target, replace(settings, drafter="phrases"), requested)
    assert drafted.token_ids == plain.token_ids
    # It has read this very answer.
    assert drafted.done.num_steps < plain.done.num_steps / 3


def numbers_in(file: Path) -> set[int]:
    """Return the numbers of the questions whose answers a file holds."""
    return {number for number, answered in ngrams._read_answers(file).items() if answered.token_ids}


def test_a_model_drafts_from_a_table_of_its_own_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table is made by a run that goes on after the first, and found without being named."""
    monkeypatch.setattr(os, "nice", lambda _: 0)
    model = write_tiny(tmp_path / "m", TinySpec())
    asked = ("ngrams", "--model", model, "--max-new-tokens", 24, "--own-answers")
    answered: list[int] = []

    def answer(target: Target, questions: Sequence[TrainingQuestion], *rest: Any) -> Iterator[Any]:
        answered.extend(question.number for question in questions)
        yield from own_answers(target, questions, *rest)

    monkeypatch.setattr(ngrams, "own_answers", answer)
    assert run(*asked, 3) == 0
    (file,) = places().learned.glob(f"*/{ngrams.ANSWERS_FILE}")
    kept = numbers_in(file)
    with file.open("a") as cut_off:
        cut_off.write("[99, 8, [1, 2")
    answered.clear()
    assert run(*asked, 6) == 0
    assert not kept & set(answered), "those of the first run are kept"
    assert numbers_in(file) >= kept | {3, 4, 5}
    assert f"in {len(numbers_in(file))} texts" in capsys.readouterr().out
    options = LoadOptions(datastore_dir=places().learned)
    assert load_target(model, options=options).phrases is not None
    assert load_target(model, options=LoadOptions()).phrases is None
    (file.parent / FILE).write_bytes(b"damaged")
    assert load_target(model, options=options).phrases is None


def test_answers_of_another_model_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "nice", lambda _: 0)
    counted: list[list[OwnText]] = []

    def note(texts: list[OwnText], recipe: PhraseRecipe) -> None:
        counted.append([text for text in texts if text.token_ids])
        raise TrainingError("Enough.")

    monkeypatch.setattr(ngrams, "count_answers", note)
    for seed in (1, 2):
        model = write_tiny(tmp_path / f"m{seed}", TinySpec(seed=seed))
        asked = ("ngrams", "--model", model, "--max-new-tokens", 8, "--own-answers", 6)
        with pytest.raises(TrainingError, match="Enough"):
            run(*asked, "--out", tmp_path / "out")
    assert all(counted)
    assert not set(counted[0]) & set(counted[1])


@pytest.mark.parametrize(
    "words", [(), ("--data", "x", "--own-answers", 3), ("--data", "x"), ("--own-answers", 0)]
)
def test_a_table_of_nothing_is_refused(words: tuple[object, ...]) -> None:
    with pytest.raises(TrainingError):
        run("ngrams", *words)
