"""The list of downloads on a disk that fails: the model manager opens all the same."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.errors import HubError
from medusa_core.hub.job import JobState, Pair
from medusa_core.hub.job_store import JobStore
from medusa_core.i18n import tr


def made(path: Path) -> None:
    store = JobStore(path)
    store.add(Pair("org/one", "org/heads"))
    store.save(replace(store.add(Pair("org/two")), state=JobState.PAUSED, done_bytes=7))
    store.close()


def models(store: JobStore) -> list[str]:
    found = [job.pair.model for job in store.all()]
    store.close()
    return found


def test_a_damaged_download_list_never_blocks_the_model_manager(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    made(path)
    raw = path.read_bytes()
    for begin in range(0, len(raw), 4096):
        path.write_bytes(raw[:begin] + b"\xff" * 4096 + raw[begin + 4096 :])
        store = JobStore(path)
        assert "damaged" in store.notice
        assert store.add(Pair("org/new")).state is JobState.QUEUED
        assert models(store)[-1] == "org/new"
        for file in tmp_path.iterdir():
            file.unlink()
    for junk in (b"", b"no list", raw[:5000]):
        path.write_bytes(junk)
        assert "damaged" in JobStore(path).notice


def test_senseless_rows_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    made(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE jobs SET state = 'flying' WHERE id = 1")
    assert models(JobStore(path)) == ["org/two"]


def test_a_list_that_cant_be_written_is_kept_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "file" / "jobs.db"
    path.parent.write_text("a file where the folder should be", encoding="utf-8")
    store = JobStore(path)
    assert "won't be remembered" in store.notice
    store.add(Pair("org/one"))
    assert models(store) == ["org/one"]


def test_a_list_of_a_newer_version_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    made(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 7")
    with pytest.raises(HubError, match="newer version"):
        JobStore(path)


def test_a_reason_with_values_can_be_translated_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = JobStore(path)
    reason = tr("{0} is gated: its owner asks who you are.", "org/one")
    failed = replace(store.add(Pair("org/one")), state=JobState.FAILED, reason=reason)
    store.save(failed)
    store.save(replace(store.add(Pair("org/two")), reason="A sentence.", hint='["no JSON'))
    store.close()
    store = JobStore(path)
    first, second = store.all()
    store.close()
    assert first.reason == reason
    assert getattr(first.reason, "template", None) == reason.template
    assert getattr(first.reason, "values", None) == ("org/one",)
    assert (second.reason, second.hint) == ("A sentence.", '["no JSON')
