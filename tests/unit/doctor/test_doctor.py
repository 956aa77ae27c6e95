"""The doctor: what works here, in words, and what to do where something doesn't."""

import getpass
import json
import os
import re
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from medusa_core.doctor.check import Check, CheckSpec, run_specs
from medusa_core.doctor.doctor import run_checks
from medusa_core.doctor.packages import package_checks
from medusa_core.doctor.report import redact
from medusa_core.system.components import component_licences
from medusa_core.system.user_folders import places

ROOT = Path(__file__).parents[3]


def by_name(folder: Path) -> dict[str, Check]:
    return {check.name: check for check in run_checks(places(folder))}


def test_a_healthy_computer_passes_and_every_finding_is_a_sentence(tmp_path: Path) -> None:
    checks = by_name(tmp_path)
    assert checks["PyTorch"].ok
    assert checks["Compiled library"].ok
    assert checks["Conversations folder"].ok
    assert all(check.message.endswith(".") for check in checks.values())


def test_every_dependency_is_checked_and_has_a_licence(tmp_path: Path) -> None:
    reported = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = {re.split("[<>=]", one)[0] for one in reported["project"]["dependencies"]} - {"torch"}
    packages = ("Libraries", "Window", "Optional pieces")
    checks = [check for name, check in by_name(tmp_path).items() if name in packages]
    looked_for = "".join(f" {check.message} {check.hint}" for check in checks)
    assert [name for name in names if f" {name} " not in looked_for] == []
    assert names <= component_licences().keys()


def test_libraries_that_only_bench_uses_are_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(package: str) -> str:
        return "" if package in ("transformers", "matplotlib") else "1.0"

    monkeypatch.setattr("medusa_core.doctor.packages.version_of", absent)
    checks = {one.name: one.run() for one in package_checks()}
    assert all(check.ok for check in checks.values())
    assert "transformers (comparing" in checks["Optional pieces"].hint


def test_json_and_exit_status_report_a_failure(tmp_path: Path) -> None:
    def doctor(**environment: str) -> tuple[int, dict[str, dict[str, object]]]:
        reported = subprocess.run(
            [sys.executable, "-m", "medusa_core", "doctor", "--json", "--data-dir", str(tmp_path)],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        checks = json.loads(reported.stdout)["checks"]
        assert {frozenset(c) for c in checks} == {frozenset(("name", "ok", "message", "hint"))}
        return reported.returncode, {check["name"]: check for check in checks}

    status, checks = doctor()
    assert status == (0 if all(check["ok"] for check in checks.values()) else 1)
    status, checks = doctor(MEDUSA_NATIVE="0")
    assert status == 1
    assert "Unset MEDUSA_NATIVE" in str(checks["Compiled library"]["hint"])


def test_a_file_in_place_of_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file where a folder should be")
    check = by_name(tmp_path)["Settings folder"]
    assert not check.ok
    assert check.hint == "Move it away."


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_without_write_permission_is_named_with_its_remedy(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    folder.mkdir(mode=0o500)
    check = by_name(tmp_path)["Settings folder"]
    assert not check.ok
    assert "right to write" in check.hint


def test_a_damaged_history_is_reported(tmp_path: Path) -> None:
    path = places(tmp_path).history
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(20000));")
    assert by_name(tmp_path)["History"].ok
    content = bytearray(path.read_bytes())
    content[4096:8192] = os.urandom(4096)
    path.write_bytes(content)
    assert not by_name(tmp_path)["History"].ok


def test_a_check_that_raises_is_a_finding_and_stops_no_other() -> None:
    def broken() -> Check:
        raise OSError("no such luck")

    found = run_specs((CheckSpec("one", broken), CheckSpec("two", lambda: Check("two", True, ""))))
    assert [check.ok for check in found] == [False, True]
    assert "no such luck" in found[0].message


def test_tokens_are_redacted() -> None:
    named = ("token=abcdefghijklmnop1234", '"password": "correct-horse-battery"')
    bare = ("hf_aBcDeFgHiJkLmNoPqRsT", "ghp_0123456789abcdefghij")
    for secret in (*named, *bare, "Bearer abcdefghijklmnopqrstuvwx"):
        reported = redact(f"before {secret} after")
        assert secret.split()[-1].strip('"').split("=")[-1] not in reported, secret
        assert reported.startswith("before ")
        assert reported.endswith("after")


def test_home_folders_and_names_are_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/people/maria")
    monkeypatch.setattr(getpass, "getuser", lambda: "maria")
    reported = redact(
        "/srv/people/maria/.cache and /home/jo/x, C:\\Users\\Jo\\y, https://jo:pw@host/z maria"
    )
    for name in ("maria", "jo/", "Jo", "pw@"):
        assert name not in reported, reported
    assert "~/.cache" in reported


def test_ordinary_sentences_stay_as_they_are() -> None:
    reported = "The token works: it is of use. 1.5 tokens/step at 12:30 in /usr/lib/python3."
    assert redact(reported) == reported
