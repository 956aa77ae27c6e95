"""Packed rows: documents side by side that don't see each other."""

from pathlib import Path

import numpy as np
import pytest
import torch

from recipe.attention import document_mask, document_runs
from recipe.corpus import Document, Segment
from recipe.packing import PackedRows, make_batch, pack_stream, pack_whole
from recipe.tokenizer import encode_documents, train_tokenizer
from tests.lanes.recipe.toy_recipe import TINY, encoded, random_network


@pytest.mark.parametrize("pack", [pack_stream, pack_whole])
def test_no_token_of_a_packed_row_sees_another_document(pack) -> None:  # type: ignore[no-untyped-def]
    rows: PackedRows = pack(encoded(9, 12, 8, 20, 11), 31)
    batch = make_batch(rows, np.arange(len(rows)), 0.3)
    network = random_network()
    hidden = network.hidden_states(batch.input_ids, document_mask(batch.document_ids))
    first = batch.document_ids == batch.document_ids[:, :1]
    others = (batch.input_ids + 7) % TINY.vocab_size
    changed = torch.where(first, others, batch.input_ids)
    after = network.hidden_states(changed, document_mask(batch.document_ids))
    assert torch.equal(hidden[~first], after[~first])
    assert not torch.equal(hidden[first], after[first])


@pytest.mark.parametrize("pack", [pack_stream, pack_whole])
def test_attention_per_document_equals_the_masked_one(pack) -> None:  # type: ignore[no-untyped-def]
    rows: PackedRows = pack(encoded(9, 12, 8, 20, 11, 3), 31)
    batch = make_batch(rows, np.arange(len(rows)), 0.3)
    runs = document_runs(batch.document_ids)
    assert sum(runs) == batch.document_ids.numel()
    assert len(runs) > len(rows)
    network = random_network()
    masked = network.hidden_states(batch.input_ids, document_mask(batch.document_ids))
    torch.testing.assert_close(network.hidden_states(batch.input_ids, runs), masked)


def test_whole_packing_cuts_no_document_and_omits_only_those_too_long() -> None:
    documents = encoded(9, 40, 12, 8, 20, 11)
    rows = pack_whole(documents, 31)
    packed = {
        tuple(row[numbers == number])
        for row, numbers in zip(rows.ids, rows.document_ids, strict=True)
        for number in range(numbers.max() + 1)
    }
    assert packed == {tuple(d.ids) for d in documents if len(d.ids) <= 32}


def test_only_the_assistants_tokens_and_its_end_carry_loss_in_chat_tuning() -> None:
    tokenizer = train_tokenizer(["one two three four five"], 300)
    segments = (
        Segment("system", "one"),
        Segment("user", "two three"),
        Segment("assistant", "four five"),
        Segment("user", "one"),
        Segment("assistant", "two"),
    )
    rows = pack_whole(encode_documents(tokenizer, [Document("rows", segments)]), 120)
    batch = make_batch(rows, np.array([0]), prompt_weight=0.0)
    learnt = batch.target_ids[0][batch.weights[0] > 0].tolist()
    text = tokenizer.decode(learnt, skip_special_tokens=False)
    assert text == "four five<|end|>two<|end|>"


def test_documents_end_with_their_row_even_if_the_next_has_the_same_number() -> None:
    numbers = torch.tensor([[0, 0, 0], [0, 1, -1]], dtype=torch.int16)
    assert document_runs(numbers) == [3, 1, 1, 1]


def test_no_target_is_in_another_document_than_its_input() -> None:
    rows = pack_stream(encoded(10, 10, 13), 31)
    batch = make_batch(rows, np.array([0]), prompt_weight=1.0)
    assert (batch.weights[0] == 0).nonzero().flatten().tolist() == [9, 19]


def test_unpacked_documents_equal_the_packed_ones(tmp_path: Path) -> None:
    documents = encoded(20, 30, 8, 14)
    pack_whole(documents, 60).save(tmp_path / "rows.npz")
    rows = PackedRows.load(tmp_path / "rows.npz")
    assert len(rows) < len(documents)
    out = sorted(rows.documents(range(len(rows))), key=lambda one: len(one.ids))
    for found, document in zip(out, sorted(documents, key=lambda one: len(one.ids)), strict=True):
        assert found.ids.tolist() == document.ids.tolist()
        assert found.kinds.tolist() == document.kinds.tolist()
