"""Whatever the Hub answers, the error is ours, says what to do, and nothing is written."""

import gzip
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any
from unittest.mock import patch

import pytest

from medusa_core.errors import AnswerError, CheckpointError, HubError, MedusaError, NetworkError
from medusa_core.hub import hub_api
from medusa_core.hub import search as search_module
from medusa_core.hub.boundary import is_repo
from medusa_core.hub.job import Pair
from medusa_core.hub.listing import list_repo
from medusa_core.hub.remote import look_at_heads, look_at_model
from medusa_core.hub.search import SearchResult, search
from medusa_core.hub.settings import HubSettings
from tests.support.hub.pairs import fetch
from tests.support.hub.scripted import SHA, Answer, ScriptedHub, listing_of, scripted_hub, send
from tests.support.spoiled_json import spoiled

REPO = "o/model"
FILES = {"config.json": b"{}", "model.safetensors": b"weights" * 100}
LISTING, RESULTS = f"/api/models/{REPO}/revision/main", "/api/models"
CONFIG, WEIGHTS = (f"/{REPO}/resolve/{SHA}/{name}" for name in FILES)
DEEP = b"[" * 100_000
NO_JSON = (
    *(b"", b"<!doctype html><html>Sign in to this network</html>", b'{"sha": "', b"NaN", b"\0\0"),
    *(b"\xff\xfe\xfa", DEEP, b'{"a":' * 100_000, DEEP + b"]" * 100_000, b"9" * 5000),
    *(b'{"sha": ' + b"9" * 5000 + b"}", b"null", b"7", b'"text"', b"[1, 2]", b"{}"),
    b'{"sha": "\\ud800"}',
)
RESULT = {"id": "o/x", "downloads": 5, "likes": 2, "lastModified": "2026-01-02", "gated": False}


def check(
    settings: HubSettings,
    ask: Callable[[], object],
    kind: type[MedusaError],
    words: str | None = None,
) -> str:
    """The request fails with an error that people can read, and nothing is written."""
    with pytest.raises(kind, match=words) as caught:
        ask()
    assert 0 < len(caught.value.message) <= 500
    assert len(caught.value.hint) <= 500
    assert caught.value.message.isprintable()
    assert not settings.cache_dir.exists()
    return caught.value.message


def test_an_answer_that_is_no_json_object_is_refused(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    for body in NO_JSON:
        scripted.answers |= {LISTING: Answer(body), RESULTS: Answer(body)}
        for ask in (
            lambda: fetch(scripted_settings, Pair(REPO)),
            lambda: search(scripted_settings, "x"),
        ):
            check(scripted_settings, ask, AnswerError, "can't be read")
    scripted.answers[RESULTS] = Answer(b"[]")
    assert search(scripted_settings, "x") == ()


def test_search_results_of_any_shape_are_read_or_refused() -> None:
    for result in spoiled(RESULT):
        check_result(result)


def check_result(result: object) -> None:
    """Check a law of `search`: no other error, and no unchecked value in results."""
    with patch.object(search_module, "query_hub", lambda *_: [result] * 60):
        try:
            found = search(HubSettings(), "x", limit=40)
        except AnswerError as error:
            refusal = error.message
            found = ()
    if not found:
        assert refusal.isprintable()
        return
    assert len(found) == 40, "no more than were asked for"
    assert is_repo(found[0].repo)
    for count in (found[0].downloads, found[0].likes):
        assert type(count) is int
        assert count >= 0
    assert re.fullmatch(r"(\d{4}-\d\d-\d\d)?", found[0].changed, re.ASCII)


def test_a_result_without_details_is_shown_without_them() -> None:
    odd = {"downloads": True, "likes": -5, "lastModified": "tomorrow", "tags": 3}
    with patch.object(search_module, "query_hub", lambda *_: [{"id": "o/x"} | odd, {"id": "o/x"}]):
        assert set(search(HubSettings(), "x")) == {SearchResult("o/x", 0, 0, False, "")}


def test_an_error_status_is_reported(scripted: ScriptedHub, scripted_settings: HubSettings) -> None:
    body = json.dumps(scripted.publish(REPO, FILES)).encode()
    failed = (400, 402, 405, 418, 429, 500, 502, 503, 504, 599)
    for status in (201, 202, 204, 206, 300, 304, *failed):
        scripted.answers[LISTING] = Answer(body, status)
        kind = NetworkError if status in failed else AnswerError
        ask = partial(list_repo, scripted_settings, REPO)
        check(scripted_settings, ask, kind, f"status is {status}")


def test_an_invalid_redirection_is_reported(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    far = "http://" + "x" * 5000
    for place in ("file:///etc/passwd", "ftp://x/", "http://[", "//", far, LISTING, "\x7f"):
        scripted.answers[LISTING] = Answer(status=302, headers={"Location": place})
        check(scripted_settings, partial(list_repo, scripted_settings, REPO), HubError)


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
    """Serve another protocol."""
    handler.wfile.write(b"220 mail.example ESMTP\r\n\r\n")
    handler.close_connection = True


def nothing(handler: BaseHTTPRequestHandler) -> None:
    """Disconnect without a response."""
    handler.close_connection = True


def long_headers(handler: BaseHTTPRequestHandler) -> None:
    """Headers of 2 MB."""
    handler.send_response(200)
    handler.send_header("X-Long", "x" * (2 << 20))
    handler.end_headers()
    handler.close_connection = True


def test_a_broken_connection_is_reported(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    for script in (chunked, cut, no_http, nothing, long_headers):
        scripted.answers[LISTING] = script
        ask = partial(list_repo, scripted_settings, REPO)
        check(scripted_settings, ask, NetworkError, "Can't reach")


def zeros(count: int) -> bytes:
    """Return the given number of megabytes of JSON, compressed to thousandths."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    pieces = [packer.compress(b'{"a": "')]
    pieces += [packer.compress(b"0" * (1 << 20)) for _ in range(count)]
    return b"".join([*pieces, packer.compress(b'"}'), packer.flush()])


UNFOLDER = zlib.decompressobj


class Counted:
    """Decompressor that counts its output, so that no memory is used."""

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


def test_json_that_decompresses_beyond_the_limit_is_refused(
    scripted: ScriptedHub, scripted_settings: HubSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_api.zlib, "decompressobj", Counted)
    scripted.answers[LISTING] = Answer(zeros(80), headers={"Content-Encoding": "gzip"})
    ask = partial(list_repo, scripted_settings, REPO)
    check(scripted_settings, ask, AnswerError, "longer than 64 MB")
    assert Counted.num_bytes <= 66 << 20
    assert Counted.most_at_a_time <= 1 << 20


def test_plain_json_beyond_the_limit_is_refused(
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


def test_an_unrequested_encoding_is_refused(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    for encoding, body in (
        *(("br", b"{}"), ("zstd", b"{}"), ("gzip", b"{}"), ("deflate", b"\xff" * 50)),
        ("gzip, gzip", gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0)),
        ("gzip", gzip.compress(b"{}" * 1000, mtime=0)[:-9]),
    ):
        scripted.answers[LISTING] = Answer(body, headers={"Content-Encoding": encoding})
        ask = partial(list_repo, scripted_settings, REPO)
        check(scripted_settings, ask, AnswerError, "can't be read")


def test_a_compressed_listing_is_accepted(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    body = gzip.compress(json.dumps(scripted.publish(REPO, FILES)).encode())
    scripted.answers[LISTING] = Answer(body, headers={"Content-Encoding": "gzip"})
    assert [file.path for file in list_repo(scripted_settings, REPO).files] == list(FILES)


def test_a_configuration_or_header_of_another_kind_is_reported(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.publish(REPO, FILES)
    for body in (*NO_JSON[:4], b"null", b"7", DEEP, b"9" * 5000, b'{"hidden_size": "\\ud800"}'):
        with patch.dict(scripted.answers, {CONFIG: Answer(body)}):
            check(scripted_settings, partial(look_at_model, scripted_settings, REPO), MedusaError)
    for answer in (
        *(Answer(b"", 204), Answer(b"", 304), Answer(b"", 416)),
        *(Answer(b"<html>" * 99), Answer(b"\xff" * 99), Answer(b"\x10" + b"\0" * 7 + DEEP, 206)),
        Answer((50 << 20).to_bytes(8, "little") + DEEP, 206),
    ):
        with patch.dict(scripted.answers, {WEIGHTS: answer}):
            check(scripted_settings, partial(look_at_heads, scripted_settings, REPO), MedusaError)


def test_an_endless_configuration_is_read_up_to_its_limit(
    scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.publish(REPO, FILES)

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.connection.settimeout(1.0)  # of a write that nobody reads any more
        while not scripted.over.is_set():
            handler.wfile.write(b" " * (1 << 20))

    scripted.answers[CONFIG] = endless
    with pytest.raises(CheckpointError, match="no JSON"):
        look_at_model(scripted_settings, REPO)


def test_the_user_agent_is_sent_only_to_the_hub(
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
