"""Addresses of clusters, and the token that opens them."""

import os
from pathlib import Path

import pytest

from medusa_core.errors import ClusterError
from medusa_core.runtime.cluster.address import split_address
from medusa_core.runtime.cluster.ray_setup import (
    TOKEN_FILE_VARIABLE,
    make_token,
)


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state" / "cluster-token"
    monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(path))
    return path


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("[::1]:6379", "::1"),
        ("[2001:db8::7]:6379", "2001:db8::7"),
        ("192.168.1.5:6379", "192.168.1.5"),
        ("localhost:6379", "127.0.0.1"),
    ],
)
def test_an_ipv6_host_is_an_address_without_brackets(address: str, host: str) -> None:
    assert split_address(address) == (host, 6379)


@pytest.mark.parametrize(
    "address",
    ["[::1]", "[::1:6379", "::1]:6379", "[]:6379", "[[::1]]:6379", "[::1]:0", "[::1]:x", ""],
)
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(ClusterError, match="no address"):
        split_address(address)


def test_a_token_is_made_once_and_readable_by_its_user_only(token: Path) -> None:
    assert make_token() == token
    made = token.read_text(encoding="ascii")
    assert len(made) == 64
    assert os.name != "posix" or token.stat().st_mode & 0o777 == 0o600
    make_token()
    assert token.read_text(encoding="ascii") == made
    assert list(token.parent.iterdir()) == [token]


def test_an_empty_token_of_a_killed_program_is_replaced(token: Path) -> None:
    token.parent.mkdir()
    token.touch()
    make_token()
    assert len(token.read_text(encoding="ascii")) == 64


def test_of_two_concurrently_made_tokens_the_first_is_used(
    token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def other_first(source: Path, to: Path) -> None:
        to.write_text("theirs", encoding="ascii")
        link(source, to)

    monkeypatch.setattr(os, "link", other_first)
    make_token()
    assert token.read_text(encoding="ascii") == "theirs"
