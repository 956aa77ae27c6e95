"""Addresses that a user connects, and their keys."""

import os
import threading
from pathlib import Path

import pytest

from medusa_core.errors import EndpointKeyError, OfflineError, RequestError, StorageError
from medusa_core.remote.address import endpoint_url, is_readable_by_others
from medusa_core.remote.connecting import connect_endpoint, disconnect_endpoint, refresh_endpoint
from medusa_core.remote.endpoints import Endpoint, Endpoints
from medusa_core.remote.keys import saved_key
from medusa_core.system.key_store import KeyStore
from medusa_core.system.loopback import is_loopback_url
from tests.support.remote.fake_endpoint import FakeEndpoint, as_reply

URL = "https://host.example/v1"


class Passwords:
    """A keyring in memory."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class Broken(Passwords):
    """A keyring without a backend."""

    def get_password(self, service: str, username: str) -> str | None:
        raise RuntimeError("no backend")

    set_password = delete_password = get_password  # type: ignore[assignment]


class Forgetful(Passwords):
    """Keyring that accepts everything and stores nothing."""

    def set_password(self, service: str, username: str, password: str) -> None:
        pass


class Hanging(Passwords):
    """Keyring that waits forever."""

    def __init__(self) -> None:
        super().__init__()
        self.num_asked = 0
        self.somebody_came = threading.Event()

    def get_password(self, service: str, username: str) -> str | None:
        self.num_asked += 1
        self.somebody_came.wait(10)
        return None

    def set_password(self, service: str, username: str, password: str) -> None:
        self.get_password(service, username)


def test_an_address_is_accepted_as_people_write_it() -> None:
    for written, url in (
        ("localhost:8080", "http://localhost:8080/v1"),
        ("192.168.1.5:11434", "http://192.168.1.5:11434/v1"),
        ("studio.local:1234", "http://studio.local:1234/v1"),
        (" https://host.example/ ", "https://host.example/v1"),
        ("host.example", "https://host.example/v1"),
        ("http://host/api/v1/chat/completions", "http://host/api/v1"),
        ("https://host.example/v1/models", "https://host.example/v1"),
        ("[::1]:8080", "http://[::1]:8080/v1"),
    ):
        assert endpoint_url(written) == url
        assert endpoint_url(url) == url


def test_an_invalid_address_is_refused() -> None:
    for written in (
        *("", "ftp://host/v1", "file:///etc/passwd", "http://", "host:99999", "a b", "x\ny"),
        *("https://user:word@host/v1", "https://host/v1?key=abc", "https://host/v1#k", "[::1"),
        *("http://a\\b", "h" * 600),
    ):
        with pytest.raises(RequestError, match="address"):
            endpoint_url(written)


def test_unencrypted_connections_are_recognised() -> None:
    assert is_readable_by_others("http://192.168.1.5/v1")
    assert not is_readable_by_others("https://host.example/v1")
    assert not is_readable_by_others("http://127.0.0.1:8080/v1")
    assert is_loopback_url("http://localhost:1/v1")
    assert not is_loopback_url("http://localhost.example/v1")


def test_connections_are_restored_at_the_next_start(tmp_path: Path) -> None:
    endpoints = Endpoints(tmp_path / "config")
    lab = Endpoint(URL, "Lab", True, ("a", "b"))
    endpoints.add(lab)
    endpoints.add(Endpoint("http://localhost/v1", "Here"))
    endpoints.add(Endpoint("http://localhost/v1", "Again"))
    found = Endpoints(tmp_path / "config")
    assert [one.name for one in found.all] == ["Lab", "Again"]
    assert found.find(URL) == lab
    assert [m.place for m in lab.remote_models] == ["Lab", "Lab"]
    found.remove(URL)
    assert [one.name for one in Endpoints(tmp_path / "config").all] == ["Again"]


DAMAGES = ("{", '{"endpoints": 3}', '{"endpoints": [{"url": 1}]}')
NO_ADDRESS = '{"endpoints": [{"url": "http://[::1/", "name": "x", "has_key": false, "models": []}]}'


@pytest.mark.parametrize("damage", [*DAMAGES, NO_ADDRESS])
def test_a_damaged_list_is_set_aside(tmp_path: Path, damage: str) -> None:
    (tmp_path / "endpoints.json").write_text(damage)
    assert Endpoints(tmp_path).all == ()
    assert (tmp_path / "endpoints.damaged").read_text() == damage


def test_a_list_that_cant_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file")
    with pytest.raises(StorageError, match="can't be written"):
        Endpoints(tmp_path / "config").add(Endpoint(URL, "Lab"))


def test_keys_are_stored_in_the_keyring_and_in_no_file(tmp_path: Path) -> None:
    keyring = Passwords()
    store = KeyStore(tmp_path, keyring)
    assert store.key_of(URL) == ""
    assert store.save_key(URL, "secret")
    assert keyring.kept == {("Medusa Chat", URL): "secret"}
    assert KeyStore(tmp_path, keyring).key_of(URL) == "secret"
    assert not list(tmp_path.iterdir())
    store.remove_key(URL)
    assert (keyring.kept, store.key_of(URL)) == ({}, "")


@pytest.mark.parametrize("keyring", [Broken(), Forgetful()])
def test_without_a_keyring_keys_are_in_a_file_readable_by_the_user_only(
    tmp_path: Path, keyring: Passwords
) -> None:
    store = KeyStore(tmp_path / "config", keyring)
    assert not store.save_key(URL, "secret")
    assert not store.save_key("http://other/v1", "else")
    (path,) = (tmp_path / "config").iterdir()
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
    assert KeyStore(tmp_path / "config", keyring).key_of(URL) == "secret"
    store.remove_key(URL)
    assert (store.key_of(URL), store.key_of("http://other/v1")) == ("", "else")
    store.remove_key("http://other/v1")
    assert not path.exists()


def test_a_hanging_keyring_is_given_up_once(tmp_path: Path) -> None:
    keyring = Hanging()
    store = KeyStore(tmp_path, keyring, timeout_s=0.1)
    assert not store.save_key(URL, "secret")
    assert store.key_of(URL) == "secret"
    assert store.key_of("http://other/v1") == ""
    assert keyring.num_asked == 1
    keyring.somebody_came.set()


def test_a_key_moved_to_the_keyring_is_removed_from_the_file(tmp_path: Path) -> None:
    KeyStore(tmp_path, Broken()).save_key(URL, "old")
    keyring = Passwords()
    KeyStore(tmp_path, keyring).save_key(URL, "new")
    assert not list(tmp_path.iterdir())
    assert KeyStore(tmp_path, keyring).key_of(URL) == "new"


def test_connecting_queries_the_models_before_it_saves(
    endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    endpoints = Endpoints(tmp_path)
    endpoint.key = "secret"
    with pytest.raises(EndpointKeyError):
        connect_endpoint(endpoints, endpoint.url, key="wrong")
    assert (endpoints.all, list(tmp_path.iterdir())) == ((), [])
    made = connect_endpoint(endpoints, endpoint.url, name="Lab", key=" secret ")
    assert made == Endpoint(endpoint.url, "Lab", True, ("small", "other"))
    assert saved_key(tmp_path, endpoint.url) == "secret"
    endpoint.models = as_reply({"data": [{"id": "new"}]})
    assert refresh_endpoint(endpoints, made).models == ("new",)
    assert endpoint.asked[-1].headers["authorization"] == "Bearer secret"
    again = connect_endpoint(endpoints, endpoint.url)
    assert (again.name, again.has_key) == ("Lab", True)
    disconnect_endpoint(endpoints, again)
    assert Endpoints(tmp_path).all == ()
    assert saved_key(tmp_path, endpoint.url) == ""


def test_offline_no_request_is_sent(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    endpoints = Endpoints(tmp_path)
    with pytest.raises(OfflineError):
        connect_endpoint(endpoints, endpoint.url, is_offline=True)
    assert (endpoint.asked, endpoints.all) == ([], ())


def test_no_key_is_looked_up_if_none_was_entered(tmp_path: Path) -> None:
    Endpoints(tmp_path).add(Endpoint(URL, "Lab"))
    KeyStore(tmp_path, Broken()).save_key(URL, "of another time")
    assert saved_key(tmp_path, URL) == ""
    assert saved_key(None, URL) == ""
