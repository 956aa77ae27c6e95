"""Whatever the Hub answers, the error is ours, says what to do, and nothing is written."""

import gzip
import json
import zlib
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from medusa_core.errors import AnswerError, CheckpointError, HubError, MedusaError, NetworkError
from medusa_core.hub import hub_api
from medusa_core.hub.job import Pair
from medusa_core.hub.listing import list_repo
from medusa_core.hub.remote import look_at_heads, look_at_model
from medusa_core.hub.search import search
from medusa_core.hub.settings import HubSettings
from tests.support.hub.pairs import fetch
from tests.support.hub.scripted import SHA, Answer, ScriptedHub, listing_of, scripted_hub, send

REPO = "o/model"
FILES = {"config.json": b"{}", "model.safetensors": b"weights" * 100}
LISTING = f"/api/models/{REPO}/revision/main"
DEEP = b"[" * 100_000
BODIES = [
    b"",
    b"<!doctype html><html>Sign in to this network</html>",
    b'{"sha": "',
    b"null",
    b"7",
    b'"text"',
    b"[]",
    b"[1, 2]",
    b"{}",
    b"NaN",
    b"\0\0\0",
    b"\xff\xfe\xfa",
    DEEP,
    b'{"a":' * 100_000,
    DEEP + b"]" * 100_000,
    b"9" * 5000,
    b'{"sha": ' + b"9" * 5000 + b"}",
    b'{"sha": "\\ud800"}',
    b'{"error": "Internal"}',
    json.dumps({"sha": SHA}).encode(),
    json.dumps({"sha": SHA, "siblings": None}).encode(),
    json.dumps({"sha": SHA, "siblings": {"rfilename": "x"}}).encode(),
    json.dumps({"sha": SHA, "siblings": "model.safetensors"}).encode(),
    json.dumps({"sha": SHA, "siblings": [None]}).encode(),
    json.dumps({"sha": SHA, "siblings": [[]]}).encode(),
    json.dumps({"sha": SHA, "siblings": [{"rfilename": "x"}]}).encode(),
    json.dumps({"sha": SHA, "siblings": [{"rfilename": {"deep": [[[]]]}}]}).encode(),
    b'{"sha": "%s", "siblings": [{"rfilename": %s}]}' % (SHA.encode(), b"[" * 400 + b"]" * 400),
    json.dumps({"sha": [[SHA]], "siblings": []}).encode(),
    *(
        json.dumps({"sha": SHA, "siblings": [{**listing_of(FILES)["siblings"][1], "lfs": lfs}]})
        .encode()
        for lfs in (7, "x", [], {}, {"sha256": None}, {"oid": "a" * 64}, False)
    ),
]  # fmt: skip


def check(error: MedusaError, settings: HubSettings) -> None:
    """It is one that people can read, and there is no trace of it."""
    assert 0 < len(error.message) <= 500
    assert len(error.hint) <= 500
    assert error.message.isprintable()
    assert not settings.cache_dir.exists()


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:40]))
def test_a_listing_of_another_kind_can_not_be_read(
    body: bytes, scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.answers[LISTING] = Answer(body)
    with pytest.raises(AnswerError, match="can't be read") as caught:
        fetch(scripted_settings, Pair(REPO))
    check(caught.value, scripted_settings)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:40]))
def test_results_of_another_kind_can_not_be_read(
    body: bytes, scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.answers["/api/models"] = Answer(body)
    if body == b"[]":
        assert search(scripted_settings, "x") == ()
        return
    with pytest.raises(AnswerError, match="can't be read") as caught:
        search(scripted_settings, "x")
    check(caught.value, scripted_settings)


@pytest.mark.parametrize(
    "result",
    [
        {"id": "o/x"},
        {"id": "o/x", "downloads": "many", "likes": None, "lastModified": 7, "gated": "manual"},
        {"id": "o/x", "downloads": -5, "likes": 1.5, "lastModified": "\ud800", "gated": None},
        {"id": "o/x", "downloads": True, "likes": [], "lastModified": "tomorrow", "tags": 3},
    ],
)
def test_a_result_that_lacks_details_is_shown_without(
    result: dict[str, Any], scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.answers["/api/models"] = Answer(json.dumps([result] * 60).encode())
    found = search(scripted_settings, "x", limit=40)
    assert len(found) == 40, "no more than were asked for"
    assert (found[0].repo, found[0].downloads, found[0].likes, found[0].changed) == (
        "o/x",
        0,
        0,
        "",
    )


@pytest.mark.parametrize("status", [201, 202, 204, 206, 300, 304])
def test_a_status_that_brings_no_answer_can_not_be_read(
    status: int, scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.publish(REPO, FILES)
    body = json.dumps(listing_of(FILES)).encode()
    scripted.answers[LISTING] = Answer(body, status)
    with pytest.raises(AnswerError, match=f"status is {status}") as caught:
        list_repo(scripted_settings, REPO)
    check(caught.value, scripted_settings)


@pytest.mark.parametrize("status", [400, 402, 405, 418, 429, 500, 502, 503, 504, 599])
def test_a_status_of_failure_is_said(
    status: int, scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.answers[LISTING] = Answer(b"<html>", status)
    with pytest.raises(NetworkError, match=f"status is {status}") as caught:
        list_repo(scripted_settings, REPO)
    check(caught.value, scripted_settings)


@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "ftp://x/", "http://[", "//", "http://" + "x" * 5000, LISTING, "\x7f"],
)
def test_a_redirection_to_nowhere_is_said(
    location: str, scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.answers[LISTING] = Answer(status=302, headers={"Location": location})
    with pytest.raises(HubError) as caught:
        list_repo(scripted_settings, REPO)
    check(caught.value, scripted_settings)


def chunked(handler: BaseHTTPRequestHandler) -> None:
    """Chunks that are none."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"zz\r\n{}\r\n")
    handler.close_connection = True


def cut(handler: BaseHTTPRequestHandler) -> None:
    """Less than is announced."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"sha"')
    handler.close_connection = True


def no_http(handler: BaseHTTPRequestHandler) -> None:
    """Another protocol."""
    handler.wfile.write(b"220 mail.example ESMTP\r\n\r\n")
    handler.close_connection = True


def nothing(handler: BaseHTTPRequestHandler) -> None:
    """It hangs up."""
    handler.close_connection = True


def long_headers(handler: BaseHTTPRequestHandler) -> None:
    """Headers of 2 MB."""
    handler.send_response(200)
    handler.send_header("X-Long", "x" * (2 << 20))
    handler.end_headers()
    handler.close_connection = True


@pytest.mark.parametrize("script", [chunked, cut, no_http, nothing, long_headers])
def test_a_connection_that_breaks_is_said(
    script: Any, scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.answers[LISTING] = script
    with pytest.raises(NetworkError, match="Can't reach") as caught:
        list_repo(scripted_settings, REPO)
    check(caught.value, scripted_settings)


def zeros(count: int) -> bytes:
    """So many megabytes of JSON, compressed to thousandths."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    pieces = [packer.compress(b'{"a": "')]
    pieces += [packer.compress(b"0" * (1 << 20)) for _ in range(count)]
    return b"".join([*pieces, packer.compress(b'"}'), packer.flush()])


UNFOLDER = zlib.decompressobj


class Counted:
    """An unfolder that counts what it gives, so that no machine's memory is in question."""

    num_bytes = 0
    most_at_a_time = 0

    def __init__(self, wbits: int) -> None:
        self._real = UNFOLDER(wbits)

    def decompress(self, data: bytes, most: int = 0) -> bytes:
        found = self._real.decompress(data, most)
        Counted.num_bytes += len(found)
        Counted.most_at_a_time = max(Counted.most_at_a_time, len(found))
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def test_json_that_unfolds_beyond_bounds_is_left_unread(
    scripted: ScriptedHub, scripted_settings: HubSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_api.zlib, "decompressobj", Counted)
    scripted.answers[LISTING] = Answer(zeros(200), headers={"Content-Encoding": "gzip"})
    with pytest.raises(AnswerError, match="longer than 64 MB") as caught:
        list_repo(scripted_settings, REPO)
    assert Counted.num_bytes <= 66 << 20
    assert Counted.most_at_a_time <= 1 << 20
    check(caught.value, scripted_settings)


def test_plain_json_beyond_bounds_is_left_unread(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    written = 0

    def endless(handler: BaseHTTPRequestHandler) -> None:
        nonlocal written
        handler.send_response(200)
        handler.end_headers()
        while written < 1 << 30:
            written += handler.wfile.write(b" " * (1 << 20))

    scripted.answers[LISTING] = endless
    with pytest.raises(AnswerError, match="longer than 64 MB"):
        list_repo(scripted_settings, REPO)
    assert written < 128 << 20


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("br", b"{}"),
        ("zstd", b"{}"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0)),
        ("gzip", b"{}"),
        ("gzip", gzip.compress(b"{}" * 1000, mtime=0)[:-9]),
        ("deflate", b"\xff" * 50),
    ],
)
def test_an_encoding_that_was_not_asked_for_can_not_be_read(
    encoding: str, body: bytes, scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.answers[LISTING] = Answer(body, headers={"Content-Encoding": encoding})
    with pytest.raises(AnswerError, match="can't be read") as caught:
        list_repo(scripted_settings, REPO)
    check(caught.value, scripted_settings)


def test_a_listing_may_come_compressed(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    body = gzip.compress(json.dumps(scripted.publish(REPO, FILES)).encode())
    scripted.answers[LISTING] = Answer(body, headers={"Content-Encoding": "gzip"})
    assert [file.path for file in list_repo(scripted_settings, REPO).files] == list(FILES)


@pytest.mark.parametrize("body", [*BODIES[:5], DEEP, b"9" * 5000, b'{"hidden_size": "\\ud800"}'])
def test_a_configuration_of_another_kind_is_said(
    body: bytes, scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.publish(REPO, FILES)
    scripted.answers[f"/{REPO}/resolve/{SHA}/config.json"] = Answer(body)
    with pytest.raises(MedusaError) as caught:
        look_at_model(scripted_settings, REPO)
    check(caught.value, scripted_settings)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"", 204),
        Answer(b"", 304),
        Answer(b"", 416),
        Answer(b"<html>" * 99),
        Answer(b"\xff" * 99),
        Answer(b"\x10" + b"\0" * 7 + DEEP, 206),
        Answer((50 << 20).to_bytes(8, "little") + DEEP, 206),
    ],
)
def test_a_header_of_another_kind_is_said(
    answer: Answer, scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.publish(REPO, FILES)
    scripted.answers[f"/{REPO}/resolve/{SHA}/model.safetensors"] = answer
    with pytest.raises(MedusaError) as caught:
        look_at_heads(scripted_settings, REPO)
    check(caught.value, scripted_settings)


def test_a_configuration_that_never_ends_is_read_to_its_bound(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.publish(REPO, FILES)

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.connection.settimeout(1.0)  # of a write that nobody reads any more
        while not scripted.over.is_set():
            handler.wfile.write(b" " * (1 << 20))

    scripted.answers[f"/{REPO}/resolve/{SHA}/config.json"] = endless
    with pytest.raises(CheckpointError, match="no JSON"):
        look_at_model(scripted_settings, REPO)


def test_who_asks_is_told_to_the_hub_alone(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    seen: list[str | None] = []
    with scripted_hub() as elsewhere:

        def note(handler: BaseHTTPRequestHandler) -> None:
            seen.append(handler.headers.get("Authorization"))
            send(handler, Answer(json.dumps(listing_of(FILES)).encode()))

        elsewhere.answers["/there"] = note
        away = elsewhere.endpoint.replace("127.0.0.1", "localhost") + "/there"
        scripted.answers[LISTING] = Answer(status=302, headers={"Location": away})
        list_repo(replace(scripted_settings, token="secret"), REPO)
    assert seen == [None]
